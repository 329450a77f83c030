"""What the arguments of a loader come to, and what is refused in a sentence."""

from __future__ import annotations

import dataclasses
import inspect
import io
import json
import logging
import re
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import write_tree
from packtrain import choices

IMAGE = pt.CenterCrop(8, 8)


@pytest.fixture
def train(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed, split="train")


@pytest.fixture(scope="module")
def several_fields(tmp_path_factory: pytest.TempPathFactory) -> pt.Dataset:
    """Twelve samples: text, JSON, an array of one shape, one of several, and a field that half have."""
    files = {}
    for number in range(12):

        def npy(shape: tuple[int, ...], value: int = number) -> bytes:
            buffer = io.BytesIO()
            np.save(buffer, np.full(shape, value, np.float32))
            return buffer.getvalue()

        stem = f"{number:03}"
        files[f"{stem}.txt"] = f"käse {number}".encode()
        files[f"{stem}.meta.json"] = json.dumps({"number": number}).encode()
        files[f"{stem}.even.npy"] = npy((2, 3))
        files[f"{stem}.uneven.npy"] = npy((number + 1,))
        if number % 2:
            files[f"{stem}.odd"] = bytes([number])
    folder = tmp_path_factory.mktemp("fields")
    write_tree(folder / "tree", files)
    pt.pack(folder / "tree", folder / "out", sync=False, order="source")
    return pt.Dataset(folder / "out")


# Dataset, batch size, order


def test_a_dataset_may_be_a_path_or_open(packed: Path, train: pt.Dataset) -> None:
    for dataset in (packed, str(packed), pt.Dataset(packed)):
        assert len(pt.Loader(dataset, split="val", batch_size=2)) == 2
    assert len(pt.Loader(train, batch_size=4)) == 9
    assert len(pt.Loader(pt.Dataset(packed), batch_size=4)) == 10
    with pytest.raises(pt.InvalidError, match="train, val: say which to load with split="):
        pt.Loader(packed, batch_size=4)
    with pytest.raises(pt.NotFoundError, match="train, val"):
        pt.Loader(packed, split="test", batch_size=4)


@pytest.mark.parametrize(
    ("sizes", "world_size", "says"),
    [
        ({}, 1, "either batch_size"),
        ({"batch_size": 4, "global_batch_size": 4}, 1, "either batch_size"),
        ({"batch_size": 0}, 1, "batch_size= is a whole number of at least 1, not 0"),
        ({"global_batch_size": -1}, 1, "^global_batch_size= is .* not -1"),
        ({"global_batch_size": 10}, 4, "nearest that can: 8 and 12"),
        ({"global_batch_size": 3}, 4, "nearest that can: 4$"),
    ],
)
def test_batch_sizes_that_cannot_be(
    train: pt.Dataset, sizes: dict[str, int], world_size: int, says: str
) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        pt.Loader(train, **sizes, rank=0, world_size=world_size)  # type: ignore[arg-type]


def test_batch_size_is_of_a_rank_and_global_batch_size_of_all(train: pt.Dataset) -> None:
    for sizes in ({"batch_size": 3}, {"global_batch_size": 12}):
        loader = pt.Loader(train, **sizes, rank=1, world_size=4)  # type: ignore[arg-type]
        assert (loader.batch_size, loader.global_batch_size, len(loader)) == (3, 12, 3)


def test_ranks_come_from_the_environment(
    train: pt.Dataset, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "packtrain")
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = pt.Loader(train, batch_size=4)
    assert (loader.rank, loader.world_size) == (2, 3)


@pytest.mark.parametrize(
    ("kind", "options", "order"),
    [
        ("local", {}, "global"),
        ("memory", {}, "global"),
        ("network", {}, "streams"),
        ("fuse", {}, "streams"),
        ("network", {"indices": [1, 2, 3, 4]}, "global"),
        ("network", {"weights": [1, 1, 1, 1]}, "global"),
        ("network", {"shuffle": False}, "source"),
        ("network", {"order": "global"}, "global"),
        ("local", {"order": "streams"}, "streams"),
    ],
)
def test_the_order_follows_the_place(
    train: pt.Dataset, monkeypatch: pytest.MonkeyPatch, kind: str, options: dict[str, Any], order: str
) -> None:
    class Place:
        pass

    place: Any = Place()
    place.kind = kind
    monkeypatch.setattr(choices._core, "place_of", lambda path: place)
    loader = pt.Loader(train, batch_size=4, **options)
    assert loader.order == order
    assert loader.state_dict()["order"] == order


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shuffle": False, "order": "global"}, "contradict"),
        ({"order": "random"}, "'auto', 'global', 'streams', 'source', not 'random'"),
        ({"image": "jpg"}, "image= is a transform"),
        ({"batch_size": "3"}, "whole number"),
        ({"order": "streams", "indices": [1]}, "streams"),
        ({"last": "half"}, "last= is one of 'drop', 'pad', 'keep', not 'half'"),
        ({"on_error": "ignore"}, "on_error= is one of 'raise', 'skip', 'replace', not"),
        ({"indices": [[1]]}, "a list of positions or a mask"),
        ({"indices": [36]}, "36"),
        ({"indices": [-1]}, "negative"),
        ({"indices": [0.5]}, "whole numbers"),
        ({"indices": [True]}, "one entry a sample: 36"),
        ({"weights": {"a": 1}}, "every class"),
        ({"fields": "jpg"}, r'fields=\["jpg"\]'),
        ({"fields": {"jpg": "pixels"}}, "cannot be read as 'pixels'"),
    ],
)
def test_wrong_arguments_are_a_sentence(train: pt.Dataset, options: dict[str, Any], says: str) -> None:
    with pytest.raises((pt.InvalidError, pt.UnsupportedError), match=says):
        pt.Loader(train, **{"batch_size": 4, **options})


def test_unknown_arguments_are_errors(train: pt.Dataset) -> None:
    with pytest.raises(TypeError):
        pt.Loader(train, batch_size=4, num_workers=2)  # type: ignore[call-arg]


def test_too_little_memory_is_refused_at_once(train: pt.Dataset) -> None:
    with pytest.raises(pt.NoRoomError, match="memory="):
        pt.Loader(train, batch_size=4, image=IMAGE, memory=1000)


# Selections


@pytest.mark.parametrize(
    "selection",
    [
        [1, 5, 8],
        np.array([1, 5, 8]),
        np.isin(np.arange(36), [1, 5, 8]),
        lambda data: [1, 5, 8],
        lambda data: np.isin(np.arange(len(data)), [1, 5, 8]),
    ],
)
def test_indices_choose_samples(train: pt.Dataset, selection: Any) -> None:
    loader = pt.Loader(train, batch_size=1, indices=selection)
    assert sorted(int(batch["index"][0]) for batch in loader) == [1, 5, 8]


def test_a_predicate_looks_at_the_index(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=2, indices=lambda data: data.labels == 2, last="keep")
    labels = [label for batch in loader for label in batch["label"]]
    assert labels == [2] * int((train.labels == 2).sum())


def test_weights_say_how_often_classes_come(train: pt.Dataset) -> None:
    for weights in ([0, 1, 0, 3], dict(zip(train.classes, [0, 1, 0, 3]))):
        loader = pt.Loader(train, batch_size=36, weights=weights, seed=1, fields=[])
        labels = np.concatenate([batch["label"] for _ in range(20) for batch in loader])
        counts = np.bincount(labels, minlength=4)
        assert counts[[0, 2]].tolist() == [0, 0]
        assert 0.65 < counts[3] / counts.sum() < 0.85


# The image's field


def test_the_image_is_found_by_its_content(photos: Path, tmp_path: Path) -> None:
    photo = next(photos.rglob("*.jpg")).read_bytes()
    write_tree(tmp_path / "odd", {"a.picture": photo, "a.jpg": b"not a photograph", "a.txt": b"words"})
    pt.pack(tmp_path / "odd", tmp_path / "odd.pt", sync=False)
    batch = next(iter(pt.Loader(tmp_path / "odd.pt", batch_size=1, image=IMAGE)))
    assert np.array_equal(batch["image"][0], IMAGE(photo))

    write_tree(tmp_path / "two", {"a.left": photo, "a.right": photo})
    pt.pack(tmp_path / "two", tmp_path / "two.pt", sync=False)
    with pytest.raises(pt.InvalidError, match="several: left, right"):
        pt.Loader(tmp_path / "two.pt", batch_size=1, image=IMAGE)
    assert len(list(pt.Loader(tmp_path / "two.pt", batch_size=1, image=IMAGE, image_field="right"))) == 1

    # Each sample has its image under one of the usual extensions.
    write_tree(tmp_path / "mixed", {"x/a.jpg": photo, "x/b.jpeg": photo, "y/c.JPEG": photo, "y/d.png": photo})
    pt.pack(tmp_path / "mixed", tmp_path / "mixed.pt", sync=False)
    (batch,) = pt.Loader(tmp_path / "mixed.pt", batch_size=4, image=IMAGE)
    assert all(np.array_equal(image, IMAGE(photo)) for image in batch["image"])

    write_tree(tmp_path / "none", {"a.txt": b"words"})
    pt.pack(tmp_path / "none", tmp_path / "none.pt", sync=False)
    with pytest.raises(pt.InvalidError, match=r"none; say which .* \(there are: .*txt"):
        pt.Loader(tmp_path / "none.pt", batch_size=1, image=IMAGE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mean": pt.IMAGENET_MEAN},
        {"dtype": "float64"},
        {"layout": "NCHW"},
        {"flip": 1.5},
        {"scale": (1.0, 0.5)},
        {"ratio": (0.0, 1.0)},
    ],
)
def test_wrong_image_specs_are_refused_where_they_are_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(pt.InvalidError):
        pt.RandomResizedCrop(224, **wrong)


def test_image_specs_are_plain_values() -> None:
    spec = pt.RandomResizedCrop(224, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
    assert spec == pt.RandomResizedCrop(224, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
    assert spec != pt.RandomResizedCrop(192, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
    assert "scale=(0.08, 1.0)" in repr(spec)
    with pytest.raises(AttributeError):
        spec.size = 3  # type: ignore[misc]


# Fields and transforms


def test_fields_are_decoded_as_asked(several_fields: pt.Dataset) -> None:
    kinds: dict[str, Any] = {
        "txt": "str",
        "meta.json": "json",
        "even.npy": "npy",
        "uneven.npy": "npy",
        "odd": lambda content: content[0],
    }
    loader = pt.Loader(several_fields, batch_size=4, shuffle=False, fields=kinds)
    batch = next(iter(loader))
    assert list(batch) == ["label", "index", *kinds]
    assert batch["txt"] == [f"käse {number}" for number in range(4)]
    assert batch["meta.json"] == [{"number": number} for number in range(4)]
    assert batch["even.npy"].shape == (4, 2, 3)
    assert batch["even.npy"][:, 0, 0].tolist() == [0, 1, 2, 3]
    assert [value.shape for value in batch["uneven.npy"]] == [(1,), (2,), (3,), (4,)]
    assert batch["odd"] == [None, 1, None, 3]
    assert loader.report().python_seconds > 0
    with pytest.raises(pt.NotFoundError, match=r"even\.npy"):
        pt.Loader(several_fields, batch_size=4, fields=["even"])
    with pytest.raises(pt.CorruptError, match=r"sample \d+ \(.*\): field 'txt': it is no \.npy file"):
        list(pt.Loader(several_fields, batch_size=4, fields={"txt": "npy"}))


def test_all_fields_come_by_default(several_fields: pt.Dataset) -> None:
    batch = next(iter(pt.Loader(several_fields, batch_size=4, shuffle=False)))
    assert set(batch) == {"label", "index", *several_fields.fields}
    assert batch["label"].tolist() == [pt.NO_LABEL] * 4
    assert batch["odd"].tolist() == [None, b"\1", None, b"\3"]
    assert batch["odd"][0] is None


def test_a_field_cannot_hide_what_the_loader_gives(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {"a.label": b"7", "a.txt": b"words"})
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    with pytest.raises(pt.InvalidError, match="'label' cannot be delivered under its name"):
        pt.Loader(tmp_path / "out", batch_size=1)
    assert list(next(iter(pt.Loader(tmp_path / "out", batch_size=1, fields=["txt"])))) == [
        "label",
        "index",
        "txt",
    ]


def test_a_transform_gets_and_gives_samples(train: pt.Dataset) -> None:
    seen: list[dict[str, Any]] = []

    def brighter(sample: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(sample))
        size = len(sample.pop("jpg"))
        return {**sample, "bright": sample["image"] * 2, "size": size, "name": f"sample {sample['index']}"}

    options: dict[str, Any] = {"batch_size": 4, "image": IMAGE, "fields": ["jpg"], "shuffle": False}
    plain = next(iter(pt.Loader(train, **options)))
    loader = pt.Loader(train, **options, transform=brighter)
    batch = next(iter(loader))
    assert list(batch) == ["image", "label", "index", "bright", "size", "name"]
    assert type(seen[0]["label"]) is int
    assert type(seen[0]["jpg"]) is bytes
    assert not batch["image"].flags.owndata  # handed through: the batch's own memory
    assert np.array_equal(batch["image"], plain["image"])
    assert np.array_equal(batch["bright"], plain["image"] * 2)
    assert batch["size"].tolist() == [len(value) for value in plain["jpg"].tolist()]
    assert batch["name"] == [f"sample {index}" for index in range(4)]
    assert batch["label"].tolist() == plain["label"].tolist()


def test_what_a_transform_costs_is_said(train: pt.Dataset) -> None:
    def slow(sample: dict[str, Any]) -> dict[str, Any]:
        sum(range(200_000))
        return sample

    loader = pt.Loader(train, batch_size=4, fields=["jpg"], transform=slow)
    list(loader)
    report = loader.report()
    assert report.python_seconds > 0.02
    assert "Python functions on samples took" in str(report)
    assert report.limit == "transform"
    verdicts = [line for line in str(report).splitlines() if line.startswith("limit:")]
    assert len(verdicts) == 1
    assert verdicts[0].startswith("limit: transform.")


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        (lambda sample: None, "returned a NoneType"),
        (lambda sample: {} if sample["index"] == 2 else sample, "always with the same names"),
    ],
)
def test_a_transform_must_give_dicts_of_one_kind(train: pt.Dataset, transform: Any, says: str) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        list(pt.Loader(train, batch_size=36, transform=transform))


def test_what_a_transform_raises_is_raised(train: pt.Dataset) -> None:
    def wrong(sample: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("my own trouble")

    with pytest.raises(RuntimeError, match="my own trouble"):
        next(iter(pt.Loader(train, batch_size=4, transform=wrong)))


@pytest.mark.parametrize("on_error", ["raise", "replace"])
def test_what_python_functions_fail_on_is_raised_unless_it_is_skipped(
    train: pt.Dataset, on_error: Any
) -> None:
    def picky(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["index"] == 5:
            raise KeyError("five")
        return sample

    with pytest.raises(KeyError, match="five"):
        list(pt.Loader(train, batch_size=4, transform=picky, on_error=on_error))


def test_samples_that_python_functions_fail_on_are_skipped(train: pt.Dataset) -> None:
    jpgs = [train[index]["jpg"] for index in range(len(train))]

    def decode(content: bytes) -> int:
        if content == jpgs[5]:
            raise ValueError("no fives")
        return len(content)

    def picky(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["index"] in (6, 20):
            raise KeyError("six")
        return {"size": sample["jpg"], "image": sample["image"], "index": sample["index"]}

    options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "image": IMAGE, "on_error": "skip"}
    loader = pt.Loader(train, **options, fields={"jpg": decode}, transform=picky)
    batches = list(loader)
    assert len(batches) == len(loader) == len(train) // 4
    assert [len(batch["index"]) for batch in batches[:6]] == [4, 2, 4, 4, 4, 3]
    assert batches[1]["index"].tolist() == [4, 7]
    for batch in batches:
        for index, size, image in zip(batch["index"], batch["size"], batch["image"]):
            assert size == len(jpgs[index])
            assert np.array_equal(image, IMAGE(jpgs[index]))
    report = loader.report()
    assert report.errors == 3
    assert report.samples == len(loader) * 4 - 3
    assert [(bad.index, bad.key, bad.what) for bad in report.bad] == [
        (5, train.keys[5], "the field 'jpg' cannot be decoded: no fives"),
        (6, train.keys[6], "KeyError: 'six'"),
        (20, train.keys[20], "KeyError: 'six'"),
    ]

    with pytest.raises(pt.CorruptError, match=r"sample 6 .*six.*2 bad samples.*max_errors") as caught:
        list(pt.Loader(train, **options, fields={"jpg": decode}, transform=picky, max_errors=1))
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_batch_without_samples_has_the_columns_of_the_others(train: pt.Dataset) -> None:
    def picky(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["index"] < 4:
            raise ValueError("none of the first batch")
        half = np.zeros((2, 3), np.float16)
        return {"n": sample["index"], "half": half, "name": "a word", "jpg": sample["jpg"]}

    loader = pt.Loader(train, batch_size=4, shuffle=False, transform=picky, on_error="skip")
    empty, full, *_ = loader
    assert list(empty) == ["label", "index", "jpg"]  # what it makes of a sample is not known yet
    assert [len(column) for column in empty.values()] == [0, 0, 0]
    assert list(full) == ["n", "half", "name", "jpg"]

    empty = next(iter(loader))
    assert list(empty) == list(full)
    assert (empty["n"].shape, empty["n"].dtype) == ((0,), full["n"].dtype)
    assert (empty["half"].shape, empty["half"].dtype) == ((0, 2, 3), np.float16)
    assert empty["name"] == []
    assert empty["jpg"].tolist() == []


def test_fields_of_a_batch_with_skipped_samples_are_their_own(train: pt.Dataset) -> None:
    def picky(sample: dict[str, Any]) -> dict[str, Any]:
        if sample["index"] % 2:
            raise ValueError("odd")
        return sample

    loader = pt.Loader(train, batch_size=4, shuffle=False, transform=picky, on_error="skip", max_errors=100)
    for batch in loader:
        kept = batch["index"].tolist()
        assert [index % 2 for index in kept] == [0, 0]
        assert batch["jpg"].tolist() == [train[index]["jpg"] for index in kept]
        assert bytes(batch["jpg"][1]) == train[kept[1]]["jpg"]
        with pytest.raises(IndexError):
            batch["jpg"].take([2])


def test_tensors_need_torch(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(pt.InvalidError, match="read by torch, which is not installed here"):
        pt.Loader(packed, split="train", batch_size=4, fields={"jpg": "torch"})


def test_what_a_loader_is_cannot_be_changed(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=4)
    for name, value in (
        ("batch_size", 50),
        ("rank", 1),
        ("order", "global"),
        ("dataset", None),
        ("report", 1),
    ):
        with pytest.raises(AttributeError, match=f"{name} of a loader cannot be changed: make a new one"):
            setattr(loader, name, value)
    for name in ("epcoh", "memory", "seed"):
        with pytest.raises(AttributeError, match=f"a loader has no attribute {name} to be set"):
            setattr(loader, name, 3)
    loader.epoch = 2
    assert (loader.epoch, loader.batch_size) == (2, 4)


def test_classes_of_a_users_own_have_attributes_of_their_own(train: pt.Dataset) -> None:
    class Counted(pt.Loader):
        steps_in_all = 0

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.name = "before"
            super().__init__(*arguments, **options)
            self.kind = "after"

    loader = Counted(train, batch_size=4)
    loader.steps_in_all += len(loader)
    assert (loader.name, loader.kind, loader.steps_in_all) == ("before", "after", 9)
    with pytest.raises(AttributeError, match="cannot be changed"):
        loader.batch_size = 8


def test_a_dataset_without_samples_is_warned_of(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {"a.txt": b"a"})
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    with pytest.warns(UserWarning, match=r"there is no sample in .*empty.*, so there is no batch at all"):
        assert list(pt.Loader(pt.Dataset(tmp_path / "empty.tar", cache=False), batch_size=4)) == []


def test_staging_is_not_in_this_version(packed: Path) -> None:
    pt.Loader(packed, split="train", batch_size=4, stage=None)
    with pytest.raises(pt.UnsupportedError, match="stage='/tmp': this version stages nothing"):
        pt.Loader(packed, split="train", batch_size=4, stage="/tmp")  # type: ignore[arg-type]


def test_the_page_of_the_loader_has_every_argument_and_figure() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "loader.md").read_text()
    table = page.partition("## Every argument")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\|([^|]*)\|", table))))
    assert named == set(inspect.signature(pt.Loader).parameters)
    images = page.partition("## Images")[2].partition("\n## ")[0]
    for spec in (pt.RandomResizedCrop, pt.CenterCrop, pt.Resize):
        for name in inspect.signature(spec).parameters:
            assert re.search(rf"\b{name}\b", images), f"{spec.__name__}({name}=)"
    values = page.partition("### Fields that are decoded")[2].partition("\n## ")[0]
    for kind in (pt.Array, pt.Audio, pt.Image):
        for name in inspect.signature(kind).parameters:
            assert re.search(rf"\b{name}=|\({name}\b|pt.Array\(\"uint16\"\)", values), (
                f"{kind.__name__}({name}=)"
            )
    report = page.partition("## The report")[2].partition("\n## ")[0]
    for field in dataclasses.fields(pt.LoadReport):
        if not field.name.startswith("engine_"):
            assert f"`{field.name}`" in report, field.name
