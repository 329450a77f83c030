"""Arguments of the wrong kind or size: refused in a sentence that names them; NumPy's are welcome."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import write_tree


@pytest.fixture
def train(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed, split="train")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"batch_size": 8.0}, r"batch_size= is a whole number of at least 1, not 8\.0"),
        ({"batch_size": "8"}, "batch_size= is a whole number of at least 1, not '8'"),
        ({"batch_size": True}, "batch_size= .* not True"),
        ({"batch_size": 2**70}, "batch_size= is a whole number up to 4294967295"),
        ({"seed": -1}, "seed= is a whole number of at least 0, not -1"),
        ({"seed": None}, "seed= .* not None"),
        ({"seed": 2**64}, "seed= is a whole number up to 18446744073709551615"),
        ({"max_errors": -1}, "max_errors= is a whole number of at least 0, not -1"),
        ({"max_errors": "1GB"}, "max_errors= .* not '1GB'"),
        *(
            ({name: wrong}, f'{name}= is "auto" or a whole number from 1 to .*, not {wrong!r}')
            for name in ("threads", "prefetch", "memory")
            for wrong in (-1, 0, None, "1GB", 1.5, 2**65)
        ),
        ({"last": None}, "last= is one of 'drop', 'pad', 'keep', not None"),
        ({"on_error": ["skip"]}, r"on_error= is one of .* not \['skip'\]"),
        ({"order": 3}, "order= is one of .* not 3"),
        ({"shuffle": "False"}, "shuffle= is True or False, not 'False'"),
        ({"shuffle": None}, "shuffle= is True or False, not None"),
        ({"rank": "0", "world_size": 1}, "rank= is a whole number of at least 0, not '0'"),
        ({"rank": 0, "world_size": 0}, "world_size= is a whole number of at least 1, not 0"),
        ({"split": 3}, "split= is a name, not 3"),
        ({"image": 224}, r"image= is a transform, such as packtrain\.RandomResizedCrop\(224\), not 224"),
        ({"image": pt.Resize}, "image= is a transform, .* not <class"),
        ({"image": pt.Resize(8), "image_field": b"jpg"}, "image_field= is a name, not b'jpg'"),
        ({"fields": {"jpg": pt.Audio}}, r"the field 'jpg' is read as Audio\(\), with parentheses"),
        ({"fields": 3}, "fields= is a list of names.* 3 is no name"),
        ({"fields": [1]}, "fields= is a list of names.* 1 is no name"),
        ({"transform": "brighter"}, "transform= is a function of a sample, not 'brighter'"),
        ({"indices": lambda data: None}, "indices= is a list of positions or a mask.* not None"),
        ({"indices": {1, 2}}, "indices= is a list of positions or a mask"),
        ({"indices": [[1], [2, 3]]}, "indices= is a list of positions or a mask"),
        ({"indices": [3, 36]}, "indices= has 36, and there are 36 samples"),
        ({"weights": "1234"}, "weights= is a number for each of the 4 classes.* not '1234'"),
        ({"weights": 3}, "weights= is a number for each of the 4 classes.* not 3"),
        ({"weights": []}, "for each of the 4 classes.*; 0 were given"),
        ({"weights": [1, 2, 3]}, "for each of the 4 classes.*; 3 were given"),
        ({"weights": [1, 2, 3, 4, 5]}, "for each of the 4 classes.*; 5 were given"),
        ({"weights": [1, 2, 3, None]}, "the weight of a class is a number, not None"),
        ({"weights": {0: 1.0}}, "weights= must have every class, and has none for"),
        ({"weights": {0: 1, 1: 1, 2: 1, 4: 1}}, "a class in weights= is a whole number up to 3, not 4"),
        ({"weights": [1, 2, 3, -1]}, "at least 0"),
    ],
)
def test_wrong_kinds_and_sizes(train: pt.Dataset, options: dict[str, Any], says: str) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        pt.Loader(train, **{"batch_size": 4, **options})


KINDS: dict[str, Any] = {
    "none": None,
    "flag": True,
    "negative": -1,
    "zero": 0,
    "fraction": 1.5,
    "nan": float("nan"),
    "huge": 2**70,
    "word": "x",
    "no word": "",
    "bytes": b"x",
    "empty list": [],
    "list": [1],
    "list of words": ["x"],
    "set": {1, 2},
    "mapping": {"x": 1},
    "object": object(),
    "function": lambda data: None,
    "array": np.arange(3.0),
    "array without axes": np.array("x"),
}
# Which kinds an argument takes; every other one is refused.
TAKES = {
    "batch_size": (),
    "global_batch_size": (),
    "split": ("none",),
    "seed": ("zero",),
    "shuffle": ("flag",),
    "order": (),
    "image": ("none",),
    "image_field": ("none",),
    "fields": ("none", "empty list"),
    "transform": ("none", "function"),
    "indices": ("none", "empty list", "list"),
    "weights": ("none", "function"),
    "rank": ("zero",),
    "world_size": (),
    "last": (),
    "on_error": (),
    "max_errors": ("none", "zero"),
    "threads": (),
    "prefetch": (),
    "memory": (),
    "window": (),
    "stage": ("none",),
}


def test_every_argument_is_swept() -> None:
    assert ["self", "dataset", *TAKES] == list(inspect.signature(pt.Loader.__init__).parameters)


@pytest.mark.filterwarnings("ignore:a batch of")
@pytest.mark.parametrize("argument", [*TAKES])
def test_every_kind_of_value_is_taken_or_refused_by_name(train: pt.Dataset, argument: str) -> None:
    for kind, value in KINDS.items():
        options: dict[str, Any] = {"batch_size": 4, "rank": 0, "world_size": 1, argument: value}
        if argument == "global_batch_size":
            del options["batch_size"]
        if kind in TAKES[argument]:
            pt.Loader(train, **options)
            continue
        refused = (pt.InvalidError, pt.NotFoundError, pt.UnsupportedError)
        with pytest.raises(refused, match=argument.rstrip("s")):  # "there is no field 'x'"
            pt.Loader(train, **options)


def test_the_field_of_an_image_needs_an_image(train: pt.Dataset) -> None:
    with pytest.raises(pt.InvalidError, match="image_field='jpg' says which field image= reads"):
        pt.Loader(train, batch_size=4, image_field="jpg")
    with pytest.raises(pt.NotFoundError, match="no field ''"):
        pt.Loader(train, batch_size=4, image=pt.Resize(8), image_field="")


def test_what_is_no_dataset() -> None:
    for wrong in (None, 3, ["a.tar", "b.tar"]):
        with pytest.raises(pt.InvalidError, match=r"the path of a dataset, a packtrain\.Dataset or a"):
            pt.Loader(wrong, batch_size=4)  # type: ignore[arg-type]


def test_numpy_numbers_are_welcome(train: pt.Dataset) -> None:
    number = np.int64
    options: dict[str, Any] = {
        "batch_size": np.uint8(4),
        "seed": number(7),
        "shuffle": np.bool_(True),
        "rank": np.int32(1),
        "world_size": np.int16(2),
        "max_errors": number(3),
        "threads": number(1),
        "prefetch": number(2),
        "memory": number(1 << 28),
    }
    plain: dict[str, Any] = {"batch_size": 4, "seed": 7, "rank": 1, "world_size": 2}
    with pt.Loader(train, **options) as loader, pt.Loader(train, **plain) as other:
        assert [batch["index"].tolist() for batch in loader] == [batch["index"].tolist() for batch in other]
        json.dumps(loader.state_dict())
        loader.epoch = number(5)  # type: ignore[assignment]
        assert json.dumps(loader.state_dict()["epoch"]) == "5"


def test_an_epoch_that_cannot_be_is_refused_where_it_is_set(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=4)
    wrongs: tuple[Any, ...] = (-1, 1.5, None)
    for wrong in wrongs:
        with pytest.raises(pt.InvalidError, match="epoch= is a whole number of at least 0"):
            loader.epoch = wrong
    assert loader.epoch == 0


def test_weights_by_number_are_those_by_name(train: pt.Dataset) -> None:
    weights = [0.0, 1.0, 0.0, 3.0]
    all_ways: tuple[Any, ...] = (
        np.array(weights),
        dict(enumerate(weights)),
        {np.int64(number): weight for number, weight in enumerate(weights)},
        dict(zip(train.classes, weights)),
        {train.classes[0]: 0, 1: 1, train.classes[2]: 0, 3: 3},
    )
    expected = [batch["index"].tolist() for batch in pt.Loader(train, batch_size=4, weights=weights)]
    for way in all_ways:
        loader = pt.Loader(train, batch_size=4, weights=way)
        assert [batch["index"].tolist() for batch in loader] == expected


def test_weights_need_labels_of_the_samples_that_are_loaded(tmp_path: Path) -> None:
    files = {f"{number}.txt": b"words" for number in range(6)}
    files |= {f"{number}.cls": str(number % 2).encode() for number in range(4)}
    pt.pack(write_tree(tmp_path / "tree", files), tmp_path / "out", sync=False, order="source")
    data = pt.Dataset(tmp_path / "out")
    assert (data.labels == pt.NO_LABEL).sum() == 2
    with pytest.raises(pt.InvalidError, match="2 of 6 have none; leave these out with indices="):
        pt.Loader(data, batch_size=2, weights=[1, 1])
    loader = pt.Loader(
        data, batch_size=4, weights={0: 0, 1: 1}, indices=lambda data: data.labels != pt.NO_LABEL
    )
    assert next(iter(loader))["label"].tolist() == [1, 1, 1, 1]


def test_what_is_no_state(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=4)
    state = loader.state_dict()
    wrongs: tuple[Any, ...] = (json.dumps(state), [], None, 3)
    for wrong in wrongs:
        with pytest.raises(pt.InvalidError, match="takes the dict that state_dict gave, not"):
            loader.load_state_dict(wrong)
    with pytest.raises(pt.InvalidError, match=r"json\.loads first"):
        loader.load_state_dict(json.dumps(state))  # type: ignore[arg-type]
    for name, value in (("seed", -1), ("seed", 2**64), ("chains", 2**40), ("epoch", {}), ("seed", object())):
        with pytest.raises(pt.CorruptError):
            loader.load_state_dict({**state, name: value})  # type: ignore[dict-item]
    of_numpy: dict[str, Any] = {name: np.int64(v) if isinstance(v, int) else v for name, v in state.items()}
    loader.load_state_dict(of_numpy)
    assert loader.state_dict() == state


@pytest.mark.parametrize(
    ("parts", "options", "says"),
    [
        ("small.pt", {}, "a mix is {dataset: fraction}.* not 'small.pt'"),
        (Path("small.pt"), {}, "a mix is {dataset: fraction}"),
        (["ab", "cd"], {}, "the fraction of a dataset in a mix is a number above 0, not 'b'"),
        (["a", "b"], {}, "a mix is {dataset: fraction}"),
        (None, {}, "a mix is {dataset: fraction}.* not None"),
        ({}, {}, "a mix is {dataset: fraction} of at least one dataset"),
        ({3: 1.0}, {}, r"a dataset of a mix is a path or a packtrain\.Dataset, not 3"),
        ({"a": 1}, {"epoch_length": 1.5}, r"epoch_length= is a whole number of at least 1, not 1\.5"),
        ({"a": 1}, {"epoch_length": 0}, "epoch_length= is a whole number of at least 1, not 0"),
    ],
)
def test_what_is_no_mix(parts: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        pt.Mix(parts, **options)


def test_fractions_of_any_size_are_relative() -> None:
    assert pt.Mix({"a": 1e308, "b": 1e308}).fractions == (0.5, 0.5)
    assert pt.Mix({"a": np.float32(3), "b": 1}).fractions == (0.75, 0.25)
    assert pt.Mix({"a": 1}, epoch_length=np.int64(5)).epoch_length == 5  # type: ignore[arg-type]


def test_what_audio_and_arrays_refuse() -> None:
    with pytest.raises(pt.InvalidError, match="dtype= is one of 'float32', 'int16', not 'float64'"):
        pt.Audio("float64")  # type: ignore[arg-type]
    for kind in (pt.Audio, pt.Array):
        with pytest.raises(pt.InvalidError, match="pad= is a number, not 'x'"):
            kind(pad="x")  # type: ignore[arg-type]


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(pt.InvalidError, match="name a dataset"):
        pt.Dataset("")
