"""Dataset: samples by position and key, and what is known without reading them."""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, write_tree


@pytest.fixture(scope="module")
def data(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed)


def test_a_sample_is_its_bytes_its_label_and_its_key(data: pt.Dataset, photos: Path) -> None:
    for position in range(len(data)):
        sample = data[position]
        assert set(sample) == {"__key__", "jpg", "cls"}
        assert sample["jpg"] == (photos / data.source(position, "jpg")).read_bytes()
        assert sample["cls"] == data.labels[position]
        assert type(sample["cls"]) is int
        assert data.classes[sample["cls"]] == Path(data.source(position, "jpg")).parent.name
        assert sample["__key__"] == data.keys[position]


def test_every_file_of_the_source_is_there_once(data: pt.Dataset, photos: Path) -> None:
    assert sorted(data.source(i, "jpg") for i in range(len(data))) == sorted(read_tree(photos))


def test_positions_are_those_of_a_list(data: pt.Dataset) -> None:
    assert data[-1] == data[len(data) - 1]
    assert data[-len(data)] == data[0]
    assert data[np.int64(3)] == data[3]
    for position in (len(data), -len(data) - 1, 2**63 - 1, -(2**63)):
        with pytest.raises(IndexError):
            data[position]
    with pytest.raises(TypeError):
        data[1.5]  # type: ignore[call-overload]


def test_slices_are_lists_of_samples(data: pt.Dataset) -> None:
    everything = list(data)
    assert len(everything) == len(data)
    for part in (slice(3, 9), slice(None, None, -7), slice(-5, None), slice(50, 60), slice(2, 30, 9)):
        assert data[part] == everything[part]


def test_keys_lead_to_their_samples(data: pt.Dataset) -> None:
    keys = data.keys
    assert len(keys) == len(data)
    assert len(set(keys)) == len(data)
    assert keys[-1] == keys[len(keys) - 1]
    assert keys[2:5] == [keys[2], keys[3], keys[4]]
    for position in (0, 7, len(data) - 1):
        assert data[keys[position]] == data[position]
        assert keys.index(keys[position]) == position
        assert keys[position] in keys
        assert keys[position] in data
    assert "no such key" not in data
    assert 5 not in data  # as of a list: no error
    assert None not in data.keys
    with pytest.raises(KeyError):
        data["no such key"]
    with pytest.raises(IndexError):
        keys[len(keys)]


def test_labels_are_a_read_only_view_that_outlives_the_dataset(packed: Path) -> None:
    data = pt.Dataset(packed)
    labels = data.labels
    assert labels.dtype == np.int64
    assert not labels.flags.writeable
    assert not labels.flags.owndata
    expected = labels.tolist()
    del data
    gc.collect()
    assert labels.tolist() == expected
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = 1


def test_splits_are_ranges_of_their_own(data: pt.Dataset, packed: Path) -> None:
    assert data.splits == {"train": 36, "val": 4}
    assert data.split is None
    parts = [pt.Dataset(packed, split=name) for name in data.splits]
    assert [len(part) for part in parts] == [36, 4]
    assert [sample for part in parts for sample in part] == list(data)
    assert np.concatenate([part.labels for part in parts]).tolist() == data.labels.tolist()
    train, val = parts
    assert val.split == "val"
    assert val[0]["__key__"] in val
    assert val[0]["__key__"] not in train
    assert val.keys.index(val.keys[3]) == 3
    with pytest.raises(KeyError):
        train[val.keys[0]]
    with pytest.raises(pt.NotFoundError, match="train, val"):
        pt.Dataset(packed, split="test")


def test_many_samples_arrive_in_the_order_asked(data: pt.Dataset) -> None:
    positions = [5, 0, -1, 5, 39, 17]
    assert data.read(positions) == [data[position] for position in positions]
    assert data.read(np.array(positions)) == data.read(positions)
    assert data.read(range(len(data))) == list(data)
    assert data.read([]) == []
    assert data.__getitems__([2, 1]) == [data[2], data[1]]
    with pytest.raises(IndexError):
        data.read([0, 40])


def test_fields_may_be_chosen(data: pt.Dataset) -> None:
    assert data.fields == ["cls", "jpg"]
    assert data.read([1, 2], fields=["jpg"]) == [{"jpg": data[1]["jpg"]}, {"jpg": data[2]["jpg"]}]
    assert data.read([1], ["cls", "__key__"]) == [{"cls": data[1]["cls"], "__key__": data[1]["__key__"]}]
    assert data.field(1, "jpg") == data[1]["jpg"]
    assert data.field(1, "cls") == str(data[1]["cls"]).encode()
    with pytest.raises(pt.NotFoundError, match="cls, jpg"):
        data.field(1, "png")
    with pytest.raises(pt.NotFoundError):
        data.read([1], fields=["png"])
    with pytest.raises(TypeError):
        data.read([1], fields="jpg")


def test_damage_is_an_error_unless_checks_are_off(copy: Path) -> None:
    data = pt.Dataset(copy)
    victim = data[3]["jpg"]
    for shard in copy.glob("*.tar"):
        content = bytearray(shard.read_bytes())
        at = content.find(victim)
        if at >= 0:
            content[at + 1000] ^= 1
            shard.write_bytes(content)
    with pytest.raises(pt.CorruptError, match=r"\.tar @ \d+") as caught:
        data[3]
    assert data.keys[3] in str(caught.value)
    with pytest.raises(pt.CorruptError):
        data.read(range(len(data)))
    with pytest.raises(pt.CorruptError):
        data.field(3, "jpg")
    wrong = data.read([3], check=False)[0]["jpg"]
    assert wrong == data.field(3, "jpg", check=False)
    assert sum(a != b for a, b in zip(wrong, victim)) == 1
    assert data[4]["jpg"]


def test_samples_need_not_have_every_field(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", small_tree())
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False, order="source")
    data = pt.Dataset(tmp_path / "out")
    assert sorted(data.fields) == ["cls", "jpg", "json"]
    for position, sample in enumerate(data):
        source = data.source(position, "jpg")
        assert ("json" in sample) == (int(Path(source).stem) % 2 == 1)
        if "json" not in sample:
            assert data.read([position], fields=["json"]) == [{}]
            with pytest.raises(pt.NotFoundError):
                data.field(position, "json")


def test_a_bare_container_is_a_dataset_too(packed: Path, cache: Path) -> None:
    shards = sorted(packed.glob("train-*.tar"))
    with pytest.warns(UserWarning, match="index"):
        data = pt.Dataset(str(packed / "train-*.tar"))
    assert len(data) == 36
    assert [shard.path for shard in data.shards] == [str(shard) for shard in shards]
    assert list(data) == list(pt.Dataset(packed, split="train"))
    assert any(cache.iterdir())
    last = len(shards) - 1
    again = pt.Dataset(f"{packed}/train-{{000000..{last:06}}}.tar", cache=True)
    assert list(again) == list(data)


def test_relative_paths_are_resolved_once(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(packed.parent)
    data = pt.Dataset(packed.name)
    monkeypatch.chdir("/")
    assert data.path == str(packed)
    assert data[0] == pt.Dataset(packed)[0]


def test_info_counts_without_reading(packed: Path, data: pt.Dataset) -> None:
    report = pt.info(packed)
    assert report == pt.info(data)
    assert (report.samples, report.labelled) == (40, 40)
    assert report.fields == ["cls", "jpg"]
    assert report.splits == {"train": 36, "val": 4}
    assert sum(report.classes.values()) == 40
    assert list(report.classes) == data.classes
    assert report.bytes == sum(path.stat().st_size for path in packed.glob("*.tar"))
    assert report.formats == ["webdataset"]
    with pytest.raises(AttributeError):
        report.samples = 3  # type: ignore[misc]


def test_what_it_prints(data: pt.Dataset, packed: Path) -> None:
    assert repr(data) == f"packtrain.Dataset('{packed}', split=None, samples=40)"
    assert "40" in repr(data.keys)
    assert repr(data.shards[0]).startswith("Shard(path='train-000000.tar', format='webdataset', bytes=")


@pytest.mark.parametrize("wrong", [{"splits": "train"}, {"check": True}, {"shuffle": True}])
def test_unknown_arguments_are_errors(packed: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        pt.Dataset(packed, **wrong)


def test_opening_says_nothing_where_nothing_is_to_say(packed: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pt.Dataset(packed)


def test_widths_heights_and_sizes_are_arrays_of_the_index(packed: Path) -> None:
    for split in ("train", "val", None):
        data = pt.Dataset(packed, split=split)
        sizes = [data.image_size(position) for position in range(len(data))]
        assert data.widths.tolist() == [width for width, _ in sizes]
        assert data.heights.tolist() == [height for _, height in sizes]
        assert min(data.widths) > 0
        assert data.sizes("jpg").tolist() == [len(sample["jpg"]) for sample in data]
        assert data.widths.dtype == data.sizes("jpg").dtype == np.int64
    with pytest.raises(pt.NotFoundError, match="png"):
        data.sizes("png")


def test_what_a_sample_lacks_has_no_size(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {"a.txt": b"12345", "a.json": b"{}", "b.txt": b"", "c.json": b"[]"})
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False, order="source")
    data = pt.Dataset(tmp_path / "out")
    assert data.sizes("txt").tolist() == [5, 0, 0]
    assert data.sizes("json").tolist() == [2, 0, 2]
    assert data.widths.tolist() == [0, 0, 0]


def test_samples_are_chosen_by_what_the_index_knows(packed: Path) -> None:
    def wide(data: pt.Dataset) -> np.ndarray:
        return (data.widths > data.heights) & (data.sizes("jpg") < np.median(data.sizes("jpg")))

    loader = pt.Loader(packed, split="train", batch_size=1, indices=wide)
    data = loader.dataset
    expected = [
        position
        for position in range(len(data))
        if data.image_size(position)[0] > data.image_size(position)[1]
        and len(data[position]["jpg"]) < np.median(data.sizes("jpg"))
    ]
    assert expected
    assert sorted(int(batch["index"][0]) for batch in loader) == expected


def test_the_index_alone_answers_for_labels_keys_and_facts(
    command: Command, copy: Path, packed: Path
) -> None:
    for shard in copy.glob("*.tar"):
        shard.unlink()
    whole, data = pt.Dataset(packed), pt.Dataset(copy)
    assert np.array_equal(data.labels, whole.labels)
    assert list(data.keys) == list(whole.keys)
    assert (len(data), data.classes, data.splits) == (len(whole), whole.classes, whole.splits)
    assert pt.info(copy).classes == pt.info(packed).classes
    facts, expected = (command("info", path, "--json").json() for path in (copy, packed))
    for name in ("samples", "payload_bytes", "fields", "classes", "sample_bytes", "shards"):
        assert facts[name] == expected[name]
    assert command("ls", copy).out.splitlines() == list(whole.keys)
    with pytest.raises(pt.CorruptError, match="is missing; restore it"):
        data[0]


def test_other_threads_run_while_samples_are_read(tmp_path: Path) -> None:
    """With the GIL held, a thread that counts would stand still for as long as a read takes."""
    write_tree(tmp_path / "tree", {f"{n % 2}/{n}.bin": bytes(2_000_000) for n in range(60)})
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    data = pt.Dataset(tmp_path / "out")
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # gives up the GIL at every step

    old = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # only who gives up the GIL lets others run
    counting = threading.Thread(target=count)
    try:
        during = []
        for read in (lambda: data.read(range(60)), lambda: data[7], lambda: data.field(3, "bin")):
            before = counted[0]
            if not counting.is_alive():
                counting.start()
            for _ in range(200):  # a thread that may run need not: others want the cores too
                read()
                if counted[0] > before:
                    break
            during.append(counted[0] - before)
    finally:
        stop.set()
        sys.setswitchinterval(old)
        counting.join()
    assert all(count > 0 for count in during), during


@pytest.mark.parametrize("position", [10**30, -(10**30), 2**63, 2**64])
def test_a_position_beyond_all_numbers_is_outside_like_any_other(packed: Path, position: int) -> None:
    data = pt.Dataset(packed)
    for take in (
        lambda: data[position],
        lambda: data.keys[position],
        lambda: data.read([0, position]),
        lambda: data.field(position, "jpg"),
        lambda: data.image_size(position),
    ):
        with pytest.raises(IndexError, match="there is no sample"):
            take()


def test_what_is_no_position_is_refused_in_a_sentence(packed: Path) -> None:
    data = pt.Dataset(packed)
    for take, says in (
        (lambda: data[1.0], r"what is in \[ \] is a whole number, a text or a slice, not 1\.0"),
        (lambda: data.keys["a"], r"what is in \[ \] is a whole number or a slice, not 'a'"),
        (lambda: data.read(["a"]), r"positions= is a list of whole numbers, not \['a'\]"),
        (lambda: data.read(3), "positions= is a list of whole numbers, not 3"),
        (lambda: data.read([0], fields=3), "fields= is .* or None, not 3"),
        (lambda: data.field(data.keys[0], "jpg"), "position= is a whole number, not '"),
        (lambda: data.field(0), r"field\(\) needs name"),
        (lambda: data.image_size("a"), "position= is a whole number, not 'a'"),
        (lambda: data.sizes(3), "field= is a text, not 3"),
        (lambda: pt.Dataset(5), "path= is a path, not 5"),
        (
            lambda: pt.Dataset(packed, splt="train"),
            r"Dataset\(\) has no argument splt=; did you mean split=\?",
        ),
        (lambda: pt.info(5), "path= is a path, not 5"),
        (lambda: pt.doctor(5), "path is a path, not 5"),
    ):
        with pytest.raises(TypeError, match=says) as caught:
            take()
        assert len(str(caught.value)) < 150


def test_a_key_that_is_not_there_is_told_in_terms_of_python(packed: Path) -> None:
    with pytest.raises(pt.NotFoundError, match=r"there is no sample with the key 'none'; `keys` has those"):
        pt.Dataset(packed)["none"]
