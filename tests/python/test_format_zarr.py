"""zarr-python and xarray read what packtrain writes, and packtrain reads theirs, of both versions."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, write_tree

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")

pytestmark = pytest.mark.filterwarnings("ignore:.*index.*:UserWarning")

RNG = np.random.default_rng(6)
ROWS = 23

V3_CODECS: dict[str, Callable[[], Any]] = {
    "raw": lambda: None,
    "zstd": lambda: zarr.codecs.ZstdCodec(level=3),
    "gzip": lambda: zarr.codecs.GzipCodec(level=5),
    "blosc-lz4": lambda: zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle"),
    "blosc-lz4hc-bit": lambda: zarr.codecs.BloscCodec(cname="lz4hc", shuffle="bitshuffle"),
    "blosc-zstd": lambda: zarr.codecs.BloscCodec(cname="zstd", shuffle="noshuffle"),
    "blosc-crc32c": lambda: (zarr.codecs.BloscCodec(cname="lz4"), zarr.codecs.Crc32cCodec()),
    "crc32c": lambda: zarr.codecs.Crc32cCodec(),
}
V2_CODECS: dict[str, Callable[[], Any]] = {
    "raw": lambda: None,
    "zstd": lambda: numcodecs.Zstd(level=3),
    "zlib": lambda: numcodecs.Zlib(level=5),
    "gzip": lambda: numcodecs.GZip(level=5),
    "lz4": lambda: numcodecs.LZ4(),
    "blosc": lambda: numcodecs.Blosc(cname="lz4", shuffle=1),
    "blosc-zstd": lambda: numcodecs.Blosc(cname="zstd", clevel=3, shuffle=2),
}


def samples(dtype: str = "float32") -> np.ndarray:
    return RNG.integers(0, 250, (ROWS, 3, 5)).astype(dtype)


def store_of(kind: str, path: Path) -> Any:
    return zarr.storage.ZipStore(path.with_suffix(".zarr.zip"), mode="w") if kind == "zip" else path


def place_of(kind: str, path: Path) -> Path:
    return path.with_suffix(".zarr.zip") if kind == "zip" else path


def index(path: Path) -> pt.Dataset:
    pt.index(path, out=path.parent / "index")
    return pt.Dataset(path.parent / "index")


def rows(data: pt.Dataset, field: str) -> list[bytes]:
    return [sample[field] for sample in data]


# What zarr-python writes


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("codec", V3_CODECS)
def test_version_3(tmp_path: Path, kind: str, sharded: bool, codec: str) -> None:
    x, labels = samples(), RNG.integers(0, 9, ROWS)
    store = store_of(kind, tmp_path / "a.zarr")
    group = zarr.create_group(store, zarr_format=3)
    shards = {"shards": (8, 3, 5)} if sharded else {}
    group.create_array("x", data=x, chunks=(2, 3, 5), compressors=V3_CODECS[codec](), **shards)
    group.create_array("labels", data=labels)
    if kind == "zip":
        store.close()
    data = index(place_of(kind, tmp_path / "a.zarr"))
    assert rows(data, "x") == [row.tobytes() for row in x]
    assert data.labels.tolist() == labels.tolist()


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("codec", V2_CODECS)
@pytest.mark.parametrize("separator", [".", "/"])
def test_version_2(tmp_path: Path, kind: str, codec: str, separator: str) -> None:
    x, labels = samples("int16"), RNG.integers(0, 9, ROWS).astype("uint8")
    store = store_of(kind, tmp_path / "a.zarr")
    group = zarr.create_group(store, zarr_format=2)
    encoding = {"name": "v2", "separator": separator}
    options: dict[str, Any] = {"compressors": V2_CODECS[codec](), "chunk_key_encoding": encoding}
    group.create_array("x", data=x, chunks=(4, 3, 5), **options)
    group.create_array("y", data=labels, **options)
    if kind == "zip":
        store.close()
    data = index(place_of(kind, tmp_path / "a.zarr"))
    assert rows(data, "x") == [row.tobytes() for row in x]
    assert data.labels.tolist() == labels.tolist()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_texts_are_keys(tmp_path: Path, version: int, consolidated: bool) -> None:
    names = [f"größe/{n}/数" for n in range(ROWS)]
    for dtype in (str, "U12"):
        group = zarr.create_group(tmp_path / "a.zarr", zarr_format=version, overwrite=True)
        group.create_array("x", data=samples(), chunks=(5, 3, 5))
        keys = group.create_array("keys", shape=(ROWS,), chunks=(6,), dtype=dtype)
        keys[:] = np.array(names, dtype=object if dtype is str else dtype)
        if consolidated:
            zarr.consolidate_metadata(tmp_path / "a.zarr")
        data = index(tmp_path / "a.zarr")
        assert [sample["__key__"] for sample in data] == names


@pytest.mark.parametrize("sharded", [False, True])
def test_bytes_with_offsets_that_cross_chunks(tmp_path: Path, sharded: bool) -> None:
    blobs = [RNG.bytes(int(size)) for size in RNG.integers(0, 900, 40)]
    group = zarr.create_group(tmp_path / "a.zarr")
    flat = np.frombuffer(b"".join(blobs), np.uint8)
    shards = {"shards": (1000,)} if sharded else {}
    group.create_array("speech", data=flat, chunks=(100,), compressors=None, **shards)
    group.create_array("speech_offsets", data=np.cumsum([0] + [len(blob) for blob in blobs]))
    assert rows(index(tmp_path / "a.zarr"), "speech") == blobs


@pytest.mark.parametrize("fill", [0, 7, np.nan, np.inf], ids=str)
@pytest.mark.parametrize("shards", [{}, {"shards": (8, 3, 5)}], ids=["chunks", "shards"])
@pytest.mark.parametrize("version", [2, 3])
def test_missing_chunks_are_the_fill_value(
    fill: float, shards: dict[str, Any], version: int, tmp_path: Path
) -> None:
    if version == 2 and shards:
        pytest.skip("version 2 has no shards")
    x = samples()
    x[4:12] = fill
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=version)
    options: dict[str, Any] = {"chunks": (2, 3, 5), "dtype": "f4", "fill_value": fill, **shards}
    array = group.create_array("x", shape=x.shape, config={"write_empty_chunks": False}, **options)
    array[:] = x
    expected = [row.tobytes() for row in array[:]]
    assert rows(index(tmp_path / "a.zarr"), "x") == expected
    for format in ("zarr", "webdataset"):
        pt.pack(tmp_path / "a.zarr", tmp_path / format, format=format, order="source", sync=False)
        assert rows(pt.Dataset(tmp_path / format), "x") == expected
        assert pt.verify(tmp_path / format).ok


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("packed", [False, True], ids=["float32", "packed int16"])
def test_a_date_that_is_missing_from_xarrays_store(version: int, packed: bool, tmp_path: Path) -> None:
    """xarray gives every variable of real numbers the fill value NaN, and does not store chunks of it."""
    xarray = pytest.importorskip("xarray")
    values = RNG.normal(size=(12, 6, 7)).astype("f4")
    values[5] = np.nan
    source = xarray.Dataset({"t2m": (("time", "lat", "lon"), values)}, {"time": np.arange(12)})
    encoding: dict[str, Any] = {"chunks": (1, 6, 7)}
    if packed:
        encoding |= {"dtype": "int16", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -32767}
    source.to_zarr(tmp_path / "a.zarr", zarr_format=version, encoding={"t2m": encoding})
    with xarray.open_zarr(tmp_path / "a.zarr", mask_and_scale=False) as opened:
        expected = opened["t2m"].values
    data = index(tmp_path / "a.zarr")
    assert rows(data, "t2m") == [row.tobytes() for row in expected]
    batch = next(iter(pt.Loader(data, batch_size=12, shuffle=False, fields={"t2m": f"raw:{expected.dtype}"})))
    np.testing.assert_array_equal(np.asarray(batch["t2m"]).reshape(expected.shape), expected)


def test_one_group_alone_is_a_split_with_its_labels(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "a.zarr").create_group("train")
    group.create_array("x", data=samples(), chunks=(1, 3, 5))
    group.create_array("labels", data=np.arange(ROWS))
    data = index(tmp_path / "a.zarr")
    assert dict(data.splits) == {"train": ROWS}
    assert data.labels.tolist() == list(range(ROWS))


def test_groups_that_are_splits(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "a.zarr")
    for split, count in (("train", 7), ("val", 3)):
        group = root.create_group(split)
        group.create_array("images", data=samples()[:count], chunks=(1, 3, 5))
        group.create_array("labels", data=np.arange(count))
    data = index(tmp_path / "a.zarr")
    assert dict(data.splits) == {"train": 7, "val": 3}
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]


def test_one_array_is_a_table_of_one_column(tmp_path: Path) -> None:
    x = samples()
    zarr.create_array(tmp_path / "a.zarr", data=x, chunks=(4, 3, 5))
    assert rows(index(tmp_path / "a.zarr"), "data") == [row.tobytes() for row in x]


def test_chunks_across_rows_are_refused_in_a_sentence(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("x", data=samples(), chunks=(4, 3, 2))
    with pytest.raises(pt.UnsupportedError, match="axis 2"):
        index(tmp_path / "a.zarr")


def test_the_command_and_the_loader_take_a_folder(tmp_path: Path, command: Command) -> None:
    x = samples()
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("x", data=x, chunks=(4, 3, 5))
    group.create_array("y", data=np.arange(ROWS))
    assert command("index", tmp_path / "a.zarr").code == 0
    loader = pt.Loader(tmp_path / "a.zarr", batch_size=ROWS, fields={"x": "raw:float32"}, shuffle=False)
    (batch,) = list(loader)
    assert (batch["x"].reshape(x.shape) == x).all()
    assert batch["label"].tolist() == list(range(ROWS))


def test_xarrays_stores(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    x = samples()
    axes = {"time": np.arange(ROWS), "lat": np.arange(3.0), "lon": np.arange(5.0)}
    data = xarray.Dataset({"x": (("time", "lat", "lon"), x)}, coords=axes)
    encoding = {"x": {"chunks": (2, 3, 5), "shards": (8, 3, 5)}}
    data.to_zarr(tmp_path / "a.zarr", encoding=encoding, zarr_format=3)
    indexed = index(tmp_path / "a.zarr")
    assert rows(indexed, "x") == [row.tobytes() for row in x]
    assert rows(indexed, "time") == [row.tobytes() for row in np.arange(ROWS)]
    assert indexed.fields == ["time", "x"]


@pytest.mark.parametrize("within", [False, True], ids=["with its folder", "what it holds"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("order", ["by name", "the other way round"])
def test_a_zip_that_someone_made_of_a_store(within: bool, version: int, order: str, tmp_path: Path) -> None:
    """Named as zips are, folders and chunks may stand before what tells that it is a store."""
    x = samples()
    group = zarr.create_group(tmp_path / "a.zarr", zarr_format=version)
    group.create_array("x", data=x, chunks=(1, 3, 5))
    group.create_array("labels", data=np.arange(ROWS))
    base = tmp_path / "a.zarr" if within else tmp_path
    paths = sorted((tmp_path / "a.zarr").rglob("*"), reverse=order != "by name")
    with zipfile.ZipFile(tmp_path / "upload.zip", "w") as archive:
        for path in paths:
            archive.write(path, path.relative_to(base))
    data = index(tmp_path / "upload.zip")
    assert rows(data, "x") == [row.tobytes() for row in x]
    assert data.labels.tolist() == list(range(ROWS))


def test_a_zip_of_files_with_numbers_for_names_is_no_store(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(3):
            archive.writestr(f"c/{number}.5.txt", str(number))
            archive.writestr(f"cc/{number}.jpg", b"\xff\xd8\xff")
    assert len(pt.Dataset(tmp_path / "a.zip")) == 6


# What packtrain writes


def tree(folder: Path) -> dict[str, bytes]:
    files = {}
    for number in range(40):
        stem = f"{'abc'[number % 3]}/{number:03}"
        files[f"{stem}.jpg"] = b"\xff\xd8\xff" + RNG.bytes(int(RNG.integers(0, 9000)))
        array = io.BytesIO()
        np.save(array, RNG.normal(size=(2, 3)).astype(np.float32))
        files[f"{stem}.npy"] = array.getvalue()
        if number % 4:
            files[f"{stem}.txt"] = "grüße".encode() * (number % 3)
    write_tree(folder, files)
    return files


@pytest.mark.parametrize("compress", ["none", "blosc", "zstd"])
def test_zarr_python_reads_what_we_write(tmp_path: Path, compress: str) -> None:
    files = tree(tmp_path / "tree")
    pt.pack(tmp_path / "tree", tmp_path / "out", format="zarr", compress=compress, shards=2, sync=False)
    data = pt.Dataset(tmp_path / "out")
    got: dict[str, bytes] = {}
    for shard in data.shards:
        path = tmp_path / "out" / shard.path
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
        with zarr.storage.ZipStore(path, mode="r") as store:
            group = zarr.open_group(store, mode="r")
            keys = group["keys"][:].tolist()
            assert group["labels"][:].tolist() == ["abc".index(key[0]) for key in keys]
            stacked = group["npy"]
            assert (stacked.dtype, stacked.shape, stacked.chunks) == (
                np.float32,
                (len(keys), 2, 3),
                (1, 2, 3),
            )
            for number, key in enumerate(keys):
                for field in ("jpg", "txt"):
                    if f"{field}_present" in group and not group[f"{field}_present"][number]:
                        continue
                    begin, end = group[f"{field}_offsets"][number : number + 2].tolist()
                    got[f"{key}.{field}"] = group[field][begin:end].tobytes()
                got[f"{key}.npy"] = group["npy_header"][:].tobytes() + stacked[number].tobytes()
    assert got == files
    ours = {
        f"{sample['__key__']}.{field}": sample[field]
        for sample in data
        for field in ("jpg", "npy", "txt")
        if field in sample
    }
    assert ours == files


def test_xarray_opens_what_we_write(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    tree(tmp_path / "tree")
    pt.pack(tmp_path / "tree", tmp_path / "out", format="zarr", shards=1, sync=False)
    (shard,) = pt.Dataset(tmp_path / "out").shards
    with zarr.storage.ZipStore(tmp_path / "out" / shard.path, mode="r") as store:
        opened = xarray.open_zarr(store, consolidated=True)
        assert opened["npy"].dims == ("sample", "npy_1", "npy_2")
        assert opened.sizes["sample"] == 40
        assert opened["labels"].values.tolist() == ["abc".index(key[0]) for key in opened["keys"].values]


def test_what_we_wrote_is_indexed_in_place(tmp_path: Path) -> None:
    tree(tmp_path / "tree")
    pt.pack(tmp_path / "tree", tmp_path / "out", format="zarr", compress="blosc", shards=1, sync=False)
    (shard,) = pt.Dataset(tmp_path / "out").shards
    (tmp_path / "alone.zarr.zip").write_bytes((tmp_path / "out" / shard.path).read_bytes())
    pt.index(tmp_path / "alone.zarr.zip", checksum=True)
    assert list(pt.Dataset(tmp_path / "alone.zarr.zip")) == list(pt.Dataset(tmp_path / "out"))


def test_an_indexed_folder_is_sound(tmp_path: Path, command: Command) -> None:
    group = zarr.create_group(tmp_path / "x.zarr")
    group.create_array("x", data=np.arange(24, dtype=np.float32).reshape(4, 2, 3), chunks=(1, 2, 3))
    assert command("index", tmp_path / "x.zarr").code == 0
    checked = command("verify", tmp_path / "x.zarr")
    assert checked.code == 0, checked.error
    assert "structure only" in checked.out  # its chunks are compressed, and carry no checks


def test_chunks_that_were_never_written_are_told_from_the_first_one(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "x.zarr")
    rows = RNG.integers(1, 250, (4, 60)).astype(np.uint8)
    array = group.create_array("x", shape=rows.shape, chunks=(1, 60), dtype=rows.dtype)
    array[0], array[2] = rows[0], rows[2]
    rows[1] = rows[3] = 0
    for checksum in (False, True):
        pt.index(tmp_path / "x.zarr", checksum=checksum)
        assert [sample["x"] for sample in pt.Dataset(tmp_path / "x.zarr")] == [row.tobytes() for row in rows]
