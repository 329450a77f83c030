"""What a foreign container means is mapped, told or refused, and never lost without a word."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command


def named_table(columns: dict[str, Any], classes: dict[str, list[str]]) -> Any:
    pa = pytest.importorskip("pyarrow")
    features = {name: {"names": names, "_type": "ClassLabel"} for name, names in classes.items()}
    about = json.dumps({"info": {"features": features}})
    return pa.table(columns).replace_schema_metadata({"huggingface": about})


def write_table(path: Path, table: Any) -> Path:
    pa = pytest.importorskip("pyarrow")
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
        return path
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def names_of_labels(data: pt.Dataset) -> list[str | None]:
    return [None if label == pt.NO_LABEL else data.classes[label] for label in data.labels.tolist()]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_that_number_their_classes_differently_are_mapped_by_name(tmp_path: Path, suffix: str) -> None:
    columns = {"text": ["a", "b", "c"], "label": [0, 1, -1]}
    a = write_table(tmp_path / f"a.{suffix}", named_table(columns, {"label": ["cat", "dog"]}))
    b = write_table(tmp_path / f"b.{suffix}", named_table(columns, {"label": ["dog", "cat"]}))
    c = write_table(tmp_path / f"c.{suffix}", named_table(columns, {"label": ["eel", "dog"]}))
    expected = ["cat", "dog", None, "dog", "cat", None]
    assert names_of_labels(pt.Dataset(f"{tmp_path}/{{a,b}}.{suffix}")) == expected
    pt.index([a, b, c], out=tmp_path / "abc")
    data = pt.Dataset(tmp_path / "abc")
    assert data.classes == ["cat", "dog", "eel"]
    assert names_of_labels(data) == [*expected, "eel", "dog", None]
    assert pt.verify(tmp_path / "abc").ok
    tree = write_tar(tmp_path / "tree.tar", {"ant/1.txt": b"1", "cat/2.txt": b"2"})
    one = write_tar(tmp_path / "one.tar", {"dog/3.txt": b"3"})
    pt.index([b, tree, one], out=tmp_path / "mixed")
    assert names_of_labels(pt.Dataset(tmp_path / "mixed")) == ["dog", "cat", None, "ant", "cat", "dog"]
    numbers = write_tar(tmp_path / "numbers.tar", {"1.txt": b"1", "1.cls": b"1"})
    with pytest.raises(pt.UnsupportedError, match=r"numbers.tar: has labels without names.*a\..*b\."):
        pt.index([a, b, numbers], out=tmp_path / "refused")
    assert any(
        "numbers.tar have no names" in note for note in pt.index([a, numbers], out=tmp_path / "told").notes
    )
    more = write_tar(tmp_path / "more.tar", {"1.txt": b"1", "1.cls": b"2"})
    with pytest.raises(pt.UnsupportedError, match=r"more.tar: has the label 2.*names 2 classes"):
        pt.index([a, more], out=tmp_path / "refused")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_columns_of_named_classes_are_labels_before_those_only_called_so(tmp_path: Path, suffix: str) -> None:
    names = {"animal": ["cat", "dog"]}
    columns: dict[str, Any] = {"text": ["a", "b"], "label": [7, 7], "animal": [1, 0]}
    path = write_table(tmp_path / f"odd.{suffix}", named_table(columns, names))
    report = pt.index(path)
    assert any("`label` holds labels too" in note for note in report.notes)
    assert names_of_labels(pt.Dataset(report.folder)) == ["dog", "cat"]
    columns = {"text": ["a", "b"], "coarse_label": [0, 0], "fine_label": [1, 0]}
    two = named_table(columns, {"coarse_label": ["x"], "fine_label": ["ant", "bee"]})
    report = pt.index(write_table(tmp_path / f"two.{suffix}", two))
    assert names_of_labels(pt.Dataset(report.folder)) == ["bee", "ant"]
    assert any("`coarse_label` holds labels too" in note for note in report.notes)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_texts_called_cls_that_are_no_number_are_told_of(tmp_path: Path, suffix: str) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"txt": ["a", "b", "c"], "cls": [" 3\n", "cat", None], "key": ["x", "y", "z"]})
    path = write_table(tmp_path / f"a.{suffix}", table)
    (note,) = pt.index(path).notes
    assert "1 sample has no label, as its cls is no whole number: y; classes with names are folders" in note
    assert pt.Dataset(path).labels.tolist() == [3, pt.NO_LABEL, pt.NO_LABEL]


def write_arrays(path: Path, arrays: dict[str, Any]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".zarr":
        root = pytest.importorskip("zarr").create_group(path)
        for name, array in arrays.items():
            root.create_array(name, data=array, chunks=array.shape)
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    return path


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_an_array_for_each_sample_is_no_table_of_their_rows(tmp_path: Path, suffix: str) -> None:
    image = np.zeros((64, 4, 3), np.uint8)
    for number, pattern in enumerate(("img_{:05}", "s{}")):
        arrays: dict[str, Any] = {pattern.format(i): image for i in range(30)}
        path = write_arrays(tmp_path / f"each{number}.{suffix}", arrays)
        with pytest.raises(pt.UnsupportedError, match=r"30 arrays of one type and shape.*numpy\.stack"):
            pt.index(path)
    levels = {f"z{level}": image for level in (50, 100, 200, 250, 300, 400, 500, 850, 1000)}
    report = pt.index(write_arrays(tmp_path / f"levels.{suffix}", levels))
    assert report.samples == 64, "numbers that are not counted up tell columns apart"
    arrays = {f"band{i}": image for i in range(12)} | {"labels": np.arange(64)}
    assert pt.index(write_arrays(tmp_path / f"bands.{suffix}", arrays)).samples == 64, (
        "labels say what rows are"
    )


def test_labels_of_another_length_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((12, 4)), y=np.arange(5))
    report = pt.index(tmp_path / "a.npz")
    assert any("no labels: `y` holds 5 numbers" in note for note in report.notes)
    np.save(tmp_path / "x.npy", np.zeros((12, 4)))
    np.save(tmp_path / "y.npy", np.arange(5))
    (note,) = pt.index(tmp_path / "x.npy").notes
    assert "y.npy is not taken for labels: it has 5 rows" in note
    np.save(tmp_path / "y.npy", np.arange(12))
    assert pt.index(tmp_path / "x.npy").notes == []


def test_hdf5_that_cannot_be_read_as_it_is_says_why(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    write_arrays(tmp_path / "wide.h5", {"x": np.zeros((2, 3)), "y": np.array([1, 1 << 63], np.uint64)})
    with pytest.raises(pt.UnsupportedError, match="more than 63 bits; save it as int64"):
        pt.index(tmp_path / "wide.h5")
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file["data/train/x"] = np.zeros((4, 3))
    with pytest.raises(pt.UnsupportedError, match=r"the groups data/train below, which are not read"):
        pt.index(tmp_path / "deep.h5")


def test_extract_by_key_names_a_way_out_that_is_one(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "equal.h5", "w") as file:
        file["x"] = np.arange(6).reshape(3, 2)
        file["keys"] = np.array([b"a", b"a", b"b"])
    report = pt.index(tmp_path / "equal.h5")
    assert any("1 sample" in note and "packtrain pack" in note for note in report.notes)
    with pytest.raises(pt.InvalidError, match="packtrain pack SET OUT") as caught:
        pt.extract(report.folder, tmp_path / "files", by_key=True)
    assert "--by-key" not in str(caught.value)
    pt.pack(tmp_path / "equal.h5", tmp_path / "packed")
    pt.extract(tmp_path / "packed", tmp_path / "files", by_key=True)
    assert len(list((tmp_path / "files").rglob("*.x"))) == 3


def test_a_database_of_text_recognition_has_one_sample_for_each_number(tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path / "words.lmdb"), map_size=1 << 24) as env, env.begin(write=True) as txn:
        for number in range(1, 12):
            txn.put(f"image-{number:09}".encode(), b"\xff\xd8\xff\xe0 picture %d" % number)
            txn.put(f"label-{number:09}".encode(), b"word %d" % number)
        txn.put(b"num-samples", b"11")
    report = pt.index(tmp_path / "words.lmdb")
    (note,) = report.notes
    assert "num-samples" in note
    data = pt.Dataset(report.folder)
    assert len(data) == 11
    assert data.fields == ["jpg", "label"]
    assert data[0]["__key__"] == "000000001"
    assert data[10]["label"] == b"word 11"
    assert data[10]["jpg"].endswith(b"picture 11")
    assert pt.verify(report.folder).ok


def test_a_zarr_with_an_array_for_each_sample_is_refused(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "each.zarr"), mode="w")
    for number in range(10):
        group.create_array(f"img_{number:03}", data=np.zeros((16, 4), np.uint8))
    with pytest.raises(pt.UnsupportedError, match="10 arrays of one type and shape"):
        pt.index(tmp_path / "each.zarr")


def test_archives_without_samples_are_told(tmp_path: Path) -> None:
    report = pt.index(write_tar(tmp_path / "empty.tar", {}))
    assert report.samples == 0
    assert any("no samples" in note for note in report.notes)


ASIDE = {"classes": np.arange(3), "mean": np.zeros((5, 4), np.float32)}


def write_splits(path: Path, kind: str, sizes: dict[str, int], beside: dict[str, Any]) -> Path:
    """Rows and labels of each split, under names (x_train) or in groups (train/x)."""
    arrays, first = dict(beside), 0
    for split, size in sizes.items():
        name = "{1}/{0}" if kind == "groups" else "{0}_{1}"
        rows = np.arange(first, first + size)
        arrays[name.format("x", split)] = np.repeat(rows.astype(np.float32), 4).reshape(size, 4)
        arrays[name.format("y", split)] = rows
        first += size
    return write_arrays(path, arrays)


@pytest.mark.parametrize("sizes", [(12, 8), (10, 10)], ids=str)
@pytest.mark.parametrize("beside", [*ASIDE, "both"])
@pytest.mark.parametrize(
    ("suffix", "kind"),
    [("npz", "names"), ("h5", "names"), ("h5", "groups"), ("zarr", "names"), ("zarr", "groups")],
)
def test_an_array_beside_those_of_splits_is_left_out(
    tmp_path: Path, suffix: str, kind: str, beside: str, sizes: tuple[int, int]
) -> None:
    more = ASIDE if beside == "both" else {beside: ASIDE[beside]}
    of_splits = dict(zip(("train", "test"), sizes, strict=True))
    path = write_splits(tmp_path / f"a.{suffix}", kind, of_splits, more)
    assert pt.index(path).columns_left_out == list(more)
    data = pt.Dataset(path)
    assert dict(data.splits) == of_splits
    assert data.fields == ["x"]
    assert sorted(data.labels.tolist()) == list(range(20))
    for number, label in enumerate(data.labels.tolist()):
        assert data.field(number, "x") == np.full(4, label, np.float32).tobytes()


@pytest.mark.parametrize("suffix", ["npz", "h5", "zarr"])
def test_an_array_that_may_belong_to_all_splits_is_refused(tmp_path: Path, suffix: str) -> None:
    more = {"ids": np.arange(10)}
    path = write_splits(tmp_path / f"a.{suffix}", "names", {"train": 10, "test": 10}, more)
    with pytest.raises(pt.UnsupportedError, match="it is not clear whether there is a table for each split"):
        pt.Dataset(path, cache=False)


@pytest.mark.parametrize("suffix", ["npz", "h5", "zarr"])
def test_masks_named_after_splits_are_columns(tmp_path: Path, suffix: str) -> None:
    masks = {
        f"{split}_mask": np.arange(6) % 3 == number for number, split in enumerate(("train", "val", "test"))
    }
    path = write_arrays(tmp_path / f"a.{suffix}", {"x": np.eye(6), "y": np.arange(6), **masks})
    data = pt.Dataset(path, cache=False)
    assert len(data) == 6
    assert data.fields == sorted(["x", *masks])
    assert data.labels.tolist() == list(range(6))
    assert data.field(1, "val_mask") == b"\1"


def test_offsets_go_with_the_bytes_of_their_split(tmp_path: Path) -> None:
    arrays = {}
    for split, blobs in (("train", [b"ab", b"c"]), ("test", [b"", b"def"])):
        arrays[f"jpg_{split}"] = np.frombuffer(b"".join(blobs), np.uint8)
        arrays[f"jpg_{split}_offsets"] = np.cumsum([0] + [len(blob) for blob in blobs])
    for suffix in ("npz", "h5"):
        data = pt.Dataset(write_arrays(tmp_path / f"a.{suffix}", arrays), cache=False)
        assert data.splits == {"train": 2, "test": 2}
        assert [data.field(number, "jpg") for number in range(4)] == [b"ab", b"c", b"", b"def"]


def write_saved(folder: Path, rows: dict[str, Any]) -> None:
    """What save_to_disk of Hugging Face writes of one dataset; the cache comes with its first use."""
    pa = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    for name in ("data-00000-of-00001.arrow", "cache-1a2b.arrow"):
        with (
            pa.OSFile(str(folder / name), "wb") as sink,
            pa.ipc.new_stream(sink, pa.table(rows).schema) as out,
        ):
            out.write_table(pa.table(rows))
    for name in ("state.json", "dataset_info.json"):
        (folder / name).write_text("{}")


def test_a_saved_dataset_of_hugging_face_is_refused_with_the_command_that_works(
    tmp_path: Path, command: Command
) -> None:
    write_saved(tmp_path / "dd/train", {"text": ["a", "b"], "label": [0, 1]})
    write_saved(tmp_path / "dd/test", {"text": ["c"], "label": [1]})
    (tmp_path / "dd/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for folder, splits in (("dd", {"train": 2, "test": 1}), ("dd/train", {"all": 2})):
        for verb in ("index", "pack"):
            out = ["OUT"] if verb == "pack" else []
            refused = command(verb, folder, *out, cwd=tmp_path)
            assert refused.code == 2
            assert "save_to_disk" in refused.last_line
            advised = refused.last_line[refused.last_line.index(f"packtrain {verb} ") :]
            words = shlex.split(advised)[1:]
            made = tmp_path / folder.replace("/", "-") / verb
            if verb == "pack":
                words[-1] = str(made)
            else:
                words[words.index("--out") + 1] = str(made)
            assert command(*words, cwd=tmp_path).code == 0
            expected = splits if verb == "index" or len(splits) > 1 else {"train": 2}
            assert dict(pt.Dataset(made).splits) == expected
            assert sum(pt.Dataset(made).labels.tolist()) == len(splits)


def test_a_tree_of_containers_is_told_of(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    (tmp_path / "tables/deep").mkdir(parents=True)
    for number in range(3):
        write_table(tmp_path / f"tables/deep/{number}.arrow", pa.table({"text": ["a"]}))
    (tmp_path / "tables/deep/readme.txt").write_text("x")
    report = pt.pack(tmp_path / "tables", tmp_path / "out", sync=False)
    told = "holds 3 .arrow files, which are packed as they are, a sample each; to pack what is in them, give"
    assert any(f'{told} "{tmp_path}/tables/deep/*.arrow"' in warning for warning in report.warnings)


@pytest.mark.parametrize("suffix", ["npz", "h5", "zarr"])
def test_a_second_array_of_labels_is_told_of(tmp_path: Path, suffix: str) -> None:
    arrays = {"x": np.eye(4), "label": np.arange(4), "y": np.arange(4) + 5}
    report = pt.index(write_arrays(tmp_path / f"a.{suffix}", arrays))
    assert report.notes == ["the labels are those of `label`; `y` holds labels too and is a field"]


@pytest.mark.parametrize(
    "rows", [np.arange(3).astype("datetime64[s]"), np.array(["a", "bc", "d"])], ids=["M", "U"]
)
def test_rows_that_lose_their_type_are_told_of(tmp_path: Path, rows: Any) -> None:
    (note,) = pt.index(write_arrays(tmp_path / "a.npz", {"x": np.eye(3), "when": rows})).notes
    assert note.startswith("rows of when are no plain numbers")


@pytest.mark.parametrize(
    ("kind", "words"), [("view", "views, which are not read"), ("dictionary", "a dictionary")]
)
def test_an_arrow_file_that_is_all_views_or_dictionaries_says_so(
    tmp_path: Path, kind: str, words: str
) -> None:
    pa = pytest.importorskip("pyarrow")
    plain = pa.array([b"a", b"b", b"a"])
    column = plain.dictionary_encode() if kind == "dictionary" else plain.cast(pa.binary_view())
    path = write_table(tmp_path / "a.arrow", pa.table({"image": column, "label": [0, 1, 0]}))
    with pytest.raises(pt.UnsupportedError, match=f"column image is kept as {words}.*pyarrow.binary"):
        pt.index(path)
    again = write_table(
        tmp_path / "b.arrow", pa.table({"image": column.cast(pa.binary()), "label": [0, 1, 0]})
    )
    assert pt.index(again).samples == 3


@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_with_arrays_in_deeper_groups_says_which(tmp_path: Path, version: Any) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=version).create_group("some/where")
    group.create_array("x", data=np.eye(3), chunks=(1, 3))
    with pytest.raises(
        pt.UnsupportedError, match=r"such as some/where; index one of those: packtrain index .*where"
    ):
        pt.index(tmp_path / "a.zarr")
    assert pt.index(tmp_path / "a.zarr/some/where", out=tmp_path / "index").samples == 3
