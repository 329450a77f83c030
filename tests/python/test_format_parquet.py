"""Parquet: pyarrow and Hugging Face datasets read what packtrain writes, and packtrain what they do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import Command, write_tree

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow has no Parquet")

PLAIN = {"compression": "none", "use_dictionary": False}
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def jpeg(number: int) -> bytes:
    """Starts as a JPEG does; long ones and short ones."""
    return b"\xff\xd8\xff\xe0" + bytes([number % 256]) * (50 + 997 * (number % 7))


def shards_of(data: Path) -> list[Path]:
    return [data / shard.path for shard in pt.Dataset(data).shards]


# What others write


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0"},
        {"row_group_size": 70},
        {"write_page_index": True, "write_batch_size": 1, "data_page_size": 1},
        {"write_statistics": False, "store_schema": False},
        {"version": "1.0", "write_page_checksum": True},
    ],
    ids=["one group", "pages v2", "groups", "a page a row", "bare", "old, with checksums"],
)
def test_plain_pages_of_pyarrow(tmp_path: Path, options: dict[str, Any]) -> None:
    count = 300
    images = [{"bytes": jpeg(n), "path": f"p/{n}.jpg"} if n % 5 else None for n in range(count)]
    images[7] = {"bytes": jpeg(7), "path": None}
    columns = {
        "image": pa.array(images, IMAGE),
        "txt": pa.array([f"grüße {n}" if n % 3 else None for n in range(count)]),
        "json": pa.array([f'{{"n": {n}}}' for n in range(count)], pa.large_binary()),
        "fixed": pa.array([n.to_bytes(4, "big") for n in range(count)], pa.binary(4)),
        "real": pa.array([0.5] * count),
        "label": pa.array([n - 10 if n % 4 else None for n in range(count)], pa.int32()),
        "list": pa.array([[1, 2]] * count),
        "__key__": pa.array([f"größe/{n}" for n in range(count)]),
    }
    table = pa.table(columns)
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, **PLAIN, **options)
    report = pt.index(path)
    assert report.columns_left_out == ["real", "list"]
    data = pt.Dataset(report.folder)
    assert list(data.keys) == columns["__key__"].to_pylist()
    labels = [pt.NO_LABEL if label is None else label for label in columns["label"].to_pylist()]
    assert data.labels.tolist() == labels
    for position, row in enumerate(table.to_pylist()):
        got = data[position]
        assert got.get("jpg") == (row["image"] and row["image"]["bytes"])
        assert got.get("txt") == (row["txt"] and row["txt"].encode())
        assert (got["json"], got["fixed"]) == (row["json"], row["fixed"])
    assert data.source(1, "jpg") == "p/1.jpg"
    assert data.source(7, "jpg") == "größe/7.jpg"
    assert pt.verify(report.folder).ok


def test_required_columns_and_every_kind_of_label(tmp_path: Path) -> None:
    for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()):
        schema = pa.schema(
            [pa.field("jpg", pa.binary(), nullable=False), pa.field("label", kind, nullable=False)]
        )
        labels = [0, 1, 2 ** (kind.bit_width - 1) - 1]
        path = tmp_path / f"{kind}.parquet"
        pq.write_table(pa.table([[jpeg(n) for n in range(3)], labels], schema=schema), path, **PLAIN)
        data = pt.Dataset(pt.index(path).folder)
        assert [sample["jpg"] for sample in data] == [jpeg(n) for n in range(3)]
        assert data.labels.tolist() == labels


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False, ["txt", "label"]], ids=["all", "none", "some"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("rows", [300, 64])
def test_compressed_pages_and_dictionaries(
    tmp_path: Path, version: str, dictionary: Any, compression: str, rows: int
) -> None:
    """What pyarrow, and so nearly everyone, writes: snappy pages, dictionaries until they are full."""
    count = 300
    images = [
        {"bytes": jpeg(n) + bytes((n * k) % 256 for k in range(n * 20)), "path": f"p/{n}.jpg"}
        if n % 7
        else None
        for n in range(count)
    ]
    columns = {
        "image": pa.array(images, IMAGE),
        "txt": pa.array([None if n % 5 == 3 else f"grüße {n % 5}" for n in range(count)]),
        "label": pa.array([n % 3 if n % 11 else None for n in range(count)], pa.int32()),
        "__key__": pa.array([f"k{n}" for n in range(count)]),
    }
    path = tmp_path / "x.parquet"
    table = pa.table(columns)
    pq.write_table(
        table,
        path,
        compression=compression,
        use_dictionary=dictionary,
        data_page_version=version,
        row_group_size=rows,
        data_page_size=20_000,
        write_batch_size=16,
    )
    report = pt.index(path)
    for data in (pt.Dataset(report.folder), pt.Dataset(pt.pack(path, tmp_path / "out", sync=False).out)):
        positions = {key: position for position, key in enumerate(data.keys)}
        assert set(positions) == set(columns["__key__"].to_pylist())
        for row in table.to_pylist():
            position = positions[row["__key__"]]
            got = data[position]
            assert got.get("jpg") == (row["image"] and row["image"]["bytes"])
            assert got.get("txt") == (row["txt"] and row["txt"].encode())
            assert data.labels[position] == (pt.NO_LABEL if row["label"] is None else row["label"])
    assert pt.Dataset(report.folder).source(1, "jpg") == "p/1.jpg"
    assert pt.verify(report.folder).ok


def test_hugging_face_images_are_read_in_place(photos: Path, tmp_path: Path, command: Command) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    files = sorted((photos / "train").rglob("*.jpg"))
    names = sorted({file.parent.name for file in files})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
    labels = [names.index(file.parent.name) for file in files]
    rows = {
        "image": [{"bytes": file.read_bytes(), "path": file.name} for file in files],
        "label": labels,
    }
    path = tmp_path / "hf.parquet"
    datasets.Dataset.from_dict(rows, features=features).to_parquet(str(path))
    data = pt.Dataset(path)
    assert data.classes == names
    assert data.labels.tolist() == labels
    assert [sample["jpg"] for sample in data] == [file.read_bytes() for file in files]
    batch = next(iter(pt.Loader(path, batch_size=4, image=pt.CenterCrop(32, resize=32), shuffle=False)))
    assert batch["image"].shape == (4, 3, 32, 32)
    assert command("pack", path, tmp_path / "out").code == 0
    assert len(pt.Dataset(tmp_path / "out")) == len(files)


def test_large_compressed_pages_come_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"jpg": [jpeg(n) + bytes(1_000_000) for n in range(8)]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    (note,) = pt.index(path).notes
    assert f"packtrain pack {path} OUT" in note


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "brotli"},
        {**PLAIN, "column_encoding": {"txt": "DELTA_BYTE_ARRAY"}},
        {**PLAIN, "column_encoding": {"txt": "DELTA_LENGTH_BYTE_ARRAY"}},
    ],
    ids=["brotli", "delta", "lengths"],
)
def test_everything_else_is_refused_with_advice_that_works(
    tmp_path: Path, options: dict[str, Any], command: Command
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"txt": ["a", "b", "a"] * 10, "label": [0, 1, 2] * 10}), path, **options)
    for arguments in (["index", path], ["pack", path, tmp_path / "out"]):
        ran = command(*arguments)
        assert ran.code == 2
        advice = re.search('python -c "(.*)" makes (.*) of it', ran.last_line)
        assert advice, ran.last_line
    with pytest.raises(pt.UnsupportedError, match="arrow_from_parquet"):
        pt.Dataset(path)
    # Followed to the letter.
    subprocess.run([sys.executable, "-c", advice[1]], check=True)
    assert command("pack", advice[2], tmp_path / "out", "--order", "source").code == 0
    data = pt.Dataset(tmp_path / "out")
    assert [sample["txt"] for sample in data] == [b"a", b"b", b"a"] * 10
    assert data.labels.tolist() == [0, 1, 2] * 10


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"jpg": [jpeg(n) for n in range(40)]}), path, row_group_size=10, **PLAIN)
    whole = path.read_bytes()
    for length in range(1, len(whole), 4999):
        path.write_bytes(whole[:length])
        with pytest.raises(pt.CorruptError):
            pt.index(path, out=tmp_path / "cut")


# What packtrain writes


def test_hugging_face_datasets_reads_our_images(photos: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    pt.pack(photos / "train", tmp_path / "out", format="parquet", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    ours = pt.Dataset(tmp_path / "out")
    table = pq.read_table(shard)
    table.validate(full=True)
    assert table.schema.field("image").type == IMAGE
    assert table.schema.field("label").type == pa.int64()
    assert [row["bytes"] for row in table["image"].to_pylist()] == [sample["jpg"] for sample in ours]
    assert table["label"].to_pylist() == ours.labels.tolist()
    rows = datasets.load_dataset(
        "parquet", data_files=str(shard), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert isinstance(rows.features["image"], datasets.Image)
    assert rows[0]["image"].size == ours.image_size(0)
    plain = rows.cast_column("image", datasets.Image(decode=False))
    assert [row["image"]["bytes"] for row in plain] == [sample["jpg"] for sample in ours]


def test_pyarrow_reads_what_is_no_set_of_images(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    for number in range(1200):
        files[f"{number:04}.txt"] = f"grüße {number}".encode()
        files[f"{number:04}.bin"] = bytes([number % 256]) * (number * 7)
        if number % 3 == 0:
            files[f"{number:04}.json"] = b"" if number % 2 else b"{}"
        files[f"{number:04}.cls"] = str(number).encode()
    write_tree(tmp_path / "tree", files)
    pt.pack(tmp_path / "tree", tmp_path / "out", format="parquet", order="source", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    table = pq.read_table(shard)
    table.validate(full=True)
    assert pq.ParquetFile(shard).metadata.num_row_groups == 2
    for row in table.to_pylist():
        key = row["__key__"]
        assert row["label"] == int(files[f"{key}.cls"])
        for name in ("txt", "bin", "json"):
            assert row[name] == files.get(f"{key}.{name}")
    bare = pt.Dataset(pt.index(shard, out=tmp_path / "bare").folder)
    assert len(bare) == 1200
    for sample, label in zip(bare, bare.labels.tolist()):
        key = sample["__key__"]
        assert label == int(files[f"{key}.cls"])
        for name in ("txt", "bin", "json"):
            assert sample.get(name) == files.get(f"{key}.{name}")
