"""NumPy reads the .npz files that packtrain writes, and packtrain those of NumPy, row by row."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, write_tree

pytestmark = pytest.mark.filterwarnings("ignore:.*index.*:UserWarning")

RNG = np.random.default_rng(5)


def rows(path: Path, field: str) -> list[bytes]:
    return [sample[field] for sample in pt.Dataset(path, cache=False)]


def same_rows(path: Path, field: str, array: np.ndarray) -> bool:
    return rows(path, field) == [row.tobytes() for row in array]


# What NumPy writes


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64", "complex64", "bool"])
def test_rows_of_numpys_arrays_are_samples(tmp_path: Path, save: Any, dtype: str) -> None:
    x = RNG.integers(0, 200, (20, 3, 5)).astype(dtype)
    y = RNG.integers(0, 9, 20)
    save(tmp_path / "a.npz", x=x, labels=y)
    assert same_rows(tmp_path / "a.npz", "x", x)
    assert pt.Dataset(tmp_path / "a.npz", cache=False).labels.tolist() == y.tolist()


@pytest.mark.parametrize("names", [np.array(["a", "größe", "数据"]), np.array([b"a", b"bb", b"ccc"])])
def test_texts_give_the_keys(tmp_path: Path, names: np.ndarray) -> None:
    np.savez(tmp_path / "a.npz", x=np.eye(3), keys=names)
    expected = [name if isinstance(name, str) else name.decode() for name in names.tolist()]
    assert [sample["__key__"] for sample in pt.Dataset(tmp_path / "a.npz", cache=False)] == expected


def test_bytes_with_offsets(tmp_path: Path) -> None:
    blobs = [RNG.bytes(int(size)) for size in RNG.integers(0, 1000, 30)]
    offsets = np.cumsum([0] + [len(blob) for blob in blobs])
    for dtype in ("int64", "uint32"):
        flat = np.frombuffer(b"".join(blobs), np.uint8)
        np.savez(tmp_path / "a.npz", speech=flat, speech_offsets=offsets.astype(dtype))
        assert rows(tmp_path / "a.npz", "speech") == blobs


def test_keras_and_medmnist_layouts_are_splits(tmp_path: Path) -> None:
    sets = {"train": 7, "test": 3}
    for front in (False, True):
        arrays = {}
        for split, count in sets.items():
            for column, shape in (("images", (count, 4, 4)), ("labels", (count, 1))):
                name = f"{split}_{column}" if front else f"{column}_{split}"
                arrays[name] = RNG.integers(0, 200, shape).astype(np.uint8)
        np.savez_compressed(tmp_path / "a.npz", **arrays)
        data = pt.Dataset(tmp_path / "a.npz", cache=False)
        assert dict(data.splits) == sets
        assert data.labels.tolist() == [
            label
            for split in sets
            for label in arrays[f"{split}_labels" if front else f"labels_{split}"].ravel().tolist()
        ]


def test_an_array_for_each_sample(tmp_path: Path) -> None:
    arrays = {f"s{n:03}": RNG.integers(0, 9, (n % 5 + 1, 2)) for n in range(30)}
    np.savez(tmp_path / "a.npz", **arrays)
    for sample in pt.Dataset(tmp_path / "a.npz", cache=False):
        assert (np.load(io.BytesIO(sample["npy"])) == arrays[sample["__key__"]]).all()


@pytest.mark.parametrize("labels", ["x_labels", "labels"])
def test_a_bare_array_and_its_labels(tmp_path: Path, labels: str, command: Command) -> None:
    x = RNG.normal(size=(50, 7)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / f"{labels}.npy", np.arange(50) % 4)
    assert command("index", tmp_path / "x.npy").code == 0
    data = pt.Dataset(tmp_path / "x.npy")
    assert [sample["data"] for sample in data] == [row.tobytes() for row in x]
    assert data.labels.tolist() == (np.arange(50) % 4).tolist()


def test_records_are_rows_too(tmp_path: Path) -> None:
    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "<i4"), ("b", "<f8")])
    np.save(tmp_path / "a.npy", records)
    assert same_rows(tmp_path / "a.npy", "data", records)


def test_the_loader_takes_rows_as_numbers(tmp_path: Path) -> None:
    x = RNG.normal(size=(10, 3, 4)).astype(np.float32)
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(10))
    loader = pt.Loader(tmp_path / "a.npz", batch_size=5, fields={"x": "raw:float32"}, shuffle=False)
    batches = list(loader)
    assert (np.concatenate([batch["x"] for batch in batches]).reshape(10, 3, 4) == x).all()
    assert np.concatenate([batch["label"] for batch in batches]).tolist() == list(range(10))


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.array([{"a": 1}, None], dtype=object), "allow_pickle"),
        (np.asfortranarray(np.ones((3, 4))), "ascontiguousarray"),
        (np.ones((3, 4), ">f4"), "newbyteorder"),
    ],
)
def test_what_cannot_be_rows_is_refused_in_a_sentence(tmp_path: Path, array: np.ndarray, word: str) -> None:
    np.savez(tmp_path / "a.npz", x=array)
    np.save(tmp_path / "a.npy", array)
    for name in ("a.npz", "a.npy"):
        with pytest.raises(pt.UnsupportedError, match=word):
            pt.index(tmp_path / name)


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones((3, 4)), labels=np.arange(4))
    with pytest.raises(pt.UnsupportedError, match="one row for each sample"):
        pt.index(tmp_path / "a.npz")


# What packtrain writes


def tree(folder: Path) -> dict[str, bytes]:
    files = {}
    for number in range(40):
        stem = f"{'abc'[number % 3]}/{number:03}"
        files[f"{stem}.jpg"] = b"\xff\xd8\xff" + RNG.bytes(int(RNG.integers(0, 900)))
        array = io.BytesIO()
        np.save(array, RNG.normal(size=(2, 3)).astype(np.float32))
        files[f"{stem}.npy"] = array.getvalue()
        if number % 4:
            files[f"{stem}.txt"] = "grüße".encode() * (number % 3)
    write_tree(folder, files)
    return files


def test_numpy_reads_what_we_write(tmp_path: Path) -> None:
    files = tree(tmp_path / "tree")
    pt.pack(tmp_path / "tree", tmp_path / "out", format="npz", shards=2, sync=False)
    data = pt.Dataset(tmp_path / "out")
    got: dict[str, bytes] = {}
    labels: dict[str, int] = {}
    for shard in data.shards:
        with zipfile.ZipFile(tmp_path / "out" / shard.path) as archive:
            assert archive.testzip() is None
            assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        with np.load(tmp_path / "out" / shard.path) as arrays:
            keys = np.char.decode(arrays["__key__"], "utf-8").tolist()
            labels.update(zip(keys, arrays["labels"].tolist(), strict=True))
            for number, key in enumerate(keys):
                for field in ("jpg", "txt"):
                    if f"{field}_present" in arrays and not arrays[f"{field}_present"][number]:
                        continue
                    at = arrays[f"{field}_offsets"]
                    got[f"{key}.{field}"] = arrays[field][at[number] : at[number + 1]].tobytes()
                stacked = arrays["npy"]
                assert (stacked.dtype, stacked.shape[1:]) == (np.float32, (2, 3))
                assert (stacked[number] == np.load(io.BytesIO(files[f"{key}.npy"]))).all()
                got[f"{key}.npy"] = arrays["npy_header"].tobytes() + stacked[number].tobytes()
    assert got == files
    assert labels == {name[:-4]: "abc".index(name[0]) for name in files if name.endswith(".jpg")}
    ours = {
        f"{sample['__key__']}.{field}": sample[field]
        for sample in data
        for field in ("jpg", "npy", "txt")
        if field in sample
    }
    assert ours == files


def test_what_we_wrote_is_indexed_in_place(tmp_path: Path) -> None:
    tree(tmp_path / "tree")
    pt.pack(tmp_path / "tree", tmp_path / "out", format="npz", shards=1, sync=False)
    (shard,) = pt.Dataset(tmp_path / "out").shards
    (tmp_path / "alone.npz").write_bytes((tmp_path / "out" / shard.path).read_bytes())
    pt.index(tmp_path / "alone.npz", checksum=True)
    assert list(pt.Dataset(tmp_path / "alone.npz")) == list(pt.Dataset(tmp_path / "out"))
