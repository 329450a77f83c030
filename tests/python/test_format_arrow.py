"""Arrow IPC: pyarrow and Hugging Face datasets read what packtrain writes, packtrain what they write."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import Command, write_tree

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def jpeg(number: int) -> bytes:
    """Starts as a JPEG does; long ones and short ones."""
    return b"\xff\xd8\xff\xe0" + bytes([number % 256]) * (50 + 997 * (number % 7))


def write_arrow(
    path: Path,
    table: Any,
    *,
    stream: bool = False,
    compression: str | None = None,
    rows: int | None = None,
) -> Path:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


class CourseLoader:
    """Reads as the loader of the JSC course does: a sample is row 0 of a batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader: Any = None
        with pa.OSFile(str(path), "rb") as file:
            self.length = pa.ipc.open_file(file).num_record_batches

    def __len__(self) -> int:
        return int(self.length)

    def __getitem__(self, position: int) -> tuple[bytes, int]:
        if self.reader is None:
            self.reader = pa.ipc.open_file(pa.OSFile(str(self.path), "rb"))
        batch = self.reader.get_batch(position)
        return batch["image_data"][0].as_py(), batch["label"][0].as_py()


def write_as_the_course(path: Path, samples: Iterable[tuple[bytes, int]]) -> Path:
    """A batch for each sample, in a file."""
    schema = pa.schema([pa.field("image_data", pa.binary()), pa.field("label", pa.uint16())])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for image, label in samples:
            columns = [pa.array([image], type=pa.binary()), pa.array([label], type=pa.uint16())]
            writer.write(pa.record_batch(columns, schema=schema))
    return path


def shards_of(data: Path) -> list[Path]:
    return [data / shard.path for shard in pt.Dataset(data).shards]


# What others write


def test_a_file_that_the_course_wrote(tmp_path: Path, command: Command) -> None:
    samples = [(jpeg(number), number % 10) for number in range(300)]
    path = write_as_the_course(tmp_path / "ImageNet-train.arrow", samples)
    ran = command("index", path)
    assert ran.code == 0, ran.error
    data = pt.Dataset(str(path))
    assert data.fields == ["jpg"]
    assert [sample["jpg"] for sample in data] == [image for image, _ in samples]
    assert data.labels.tolist() == [label for _, label in samples]
    assert data.keys[7] == "000000007"
    assert pt.verify(path.with_name(path.name + ".packtrain")).ok


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("rows", [1, 7, None])
def test_every_type_that_can_be_a_field(
    tmp_path: Path, stream: bool, compression: str | None, rows: int | None
) -> None:
    codec = {"lz4": "lz4_frame", "zstd": "zstd"}.get(compression or "")
    if codec and not pt.doctor().codecs[codec]:
        pytest.skip(f"built without {codec}")
    count = 50
    columns = {
        "a": pa.array([jpeg(n) if n % 3 else None for n in range(count)], pa.binary()),
        "b": pa.array([jpeg(n + 1) for n in range(count)], pa.large_binary()),
        "txt": pa.array([f"grüße {n}" if n % 5 else "" for n in range(count)], pa.string()),
        "json": pa.array([f'{{"n": {n}}}' if n > 20 else None for n in range(count)], pa.large_string()),
        "fixed": pa.array([n.to_bytes(4, "big") if n % 2 else None for n in range(count)], pa.binary(4)),
        "label": pa.array([n - 10 if n % 4 else None for n in range(count)], pa.int32()),
        "__key__": pa.array([f"größe/{n}" for n in range(count)]),
    }
    table = pa.table(columns)
    path = write_arrow(tmp_path / "x.arrow", table, stream=stream, compression=compression, rows=rows)
    pt.index(path)
    data = pt.Dataset(str(path))
    assert len(data) == count
    assert list(data.keys) == columns["__key__"].to_pylist()
    labels = [pt.NO_LABEL if label is None else label for label in columns["label"].to_pylist()]
    assert data.labels.tolist() == labels
    for position, row in enumerate(table.to_pylist()):
        expected = {
            name: value.encode() if isinstance(value, str) else value
            for name, value in row.items()
            if value is not None and name not in ("label", "__key__")
        }
        got = data[position]
        assert {name: bytes(got[name]) for name in expected} == expected
        assert set(got) == {*expected, "__key__"}


def test_columns_that_are_required(tmp_path: Path) -> None:
    schema = pa.schema(
        [pa.field("jpg", pa.binary(), nullable=False), pa.field("label", pa.int64(), nullable=False)]
    )
    table = pa.table([[jpeg(n) for n in range(9)], list(range(9))], schema=schema)
    data = pt.Dataset(pt.index(write_arrow(tmp_path / "x.arrow", table)).folder)
    assert [sample["jpg"] for sample in data] == [jpeg(n) for n in range(9)]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64"])
def test_labels_of_any_width(tmp_path: Path, kind: str) -> None:
    largest = 2 ** (int("".join(filter(str.isdigit, kind))) - 1) - 1
    labels = [0, 3, largest]
    table = pa.table({"jpg": [jpeg(n) for n in range(3)], "target": pa.array(labels, getattr(pa, kind)())})
    data = pt.Dataset(pt.index(write_arrow(tmp_path / "x.arrow", table)).folder)
    assert data.labels.tolist() == labels


def test_other_columns_are_left_out_and_named(tmp_path: Path, command: Command) -> None:
    count = 10
    others = {
        "real": pa.array([0.5] * count),
        "list": pa.array([[1, 2]] * count, pa.list_(pa.int32())),
        "map": pa.array([[("a", 1)]] * count, pa.map_(pa.string(), pa.int8())),
        "nested": pa.array([{"x": {"y": 1}, "z": "w"}] * count),
        "word": pa.array(["a", "b"] * (count // 2)).dictionary_encode(),
        "flag": pa.array([True] * count),
        "nothing": pa.nulls(count),
        "when": pa.array([1] * count, pa.timestamp("s")),
        "view": pa.array(
            ["short", "a text that is too long to lie in its view"] * (count // 2), pa.string_view()
        ),
        "fixed_list": pa.array([[1.0, 2.0]] * count, pa.list_(pa.float32(), 2)),
        "union": pa.UnionArray.from_sparse(
            pa.array([0, 1] * (count // 2), pa.int8()), [pa.array([1] * count), pa.array(["x"] * count)]
        ),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int32()), pa.array([7])),
        "id": pa.array(range(count)),
    }
    for stream in (False, True):
        # Columns of all kinds in front of the ones that count, and between them.
        table = pa.table({**others, "jpg": [jpeg(n) for n in range(count)], "label": list(range(count))})
        path = write_arrow(tmp_path / f"{stream}.arrow", table, stream=stream, rows=4)
        report = pt.index(path)
        assert report.columns_left_out == list(others)
        data = pt.Dataset(report.folder)
        assert [sample["jpg"] for sample in data] == [jpeg(n) for n in range(count)]
        assert data.labels.tolist() == list(range(count))
    ran = command("index", path, "--out", tmp_path / "again")
    assert "13 columns left out" in ran.error, ran.error


def test_a_table_without_fields_is_refused(tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "x.arrow", pa.table({"a": [1.0, 2.0], "b": [1, 2]}))
    with pytest.raises(pt.UnsupportedError, match=r"no column of bytes or texts.* a, b"):
        pt.index(path)


def test_images_as_hugging_face_keeps_them(tmp_path: Path) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [
        {"bytes": jpeg(1), "path": "folder/one.jpg"},
        {"bytes": jpeg(2), "path": None},
        None,
        {"bytes": None, "path": "elsewhere.jpg"},
    ]
    table = pa.table({"image": pa.array(rows, kind), "label": [0, 1, 0, -1]})
    features = '{"info": {"features": {"label": {"names": ["ant", "bee"], "_type": "ClassLabel"}}}}'
    table = table.replace_schema_metadata({"huggingface": features})
    for stream in (False, True):
        path = write_arrow(tmp_path / f"{stream}.arrow", table, stream=stream, rows=3)
        data = pt.Dataset(pt.index(path).folder)
        assert data.fields == ["jpg"]
        assert data[0]["jpg"] == jpeg(1)
        assert data[1]["jpg"] == jpeg(2)
        assert "jpg" not in data[2]
        assert "jpg" not in data[3]
        assert data.source(0, "jpg") == "folder/one.jpg"
        assert data.source(1, "jpg") == "000000001.jpg"
        assert data.classes == ["ant", "bee"]
        assert data.labels.tolist() == [0, 1, 0, pt.NO_LABEL]


def test_paths_without_bytes_are_refused_with_advice(tmp_path: Path) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"image": pa.array([{"bytes": None, "path": "a.jpg"}], kind), "label": [0]})
    with pytest.raises(pt.UnsupportedError, match="save_to_disk"):
        pt.index(write_arrow(tmp_path / "x.arrow", table))


def test_a_folder_that_hugging_face_datasets_saved(tmp_path: Path, photos: Path, command: Command) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    names = sorted(folder.name for folder in (photos / "train").iterdir())
    files = sorted((photos / "train").rglob("*.jpg"))
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
    rows = {
        "image": [str(file) for file in files],
        "label": [names.index(file.parent.name) for file in files],
    }
    folder = tmp_path / "saved"
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(folder, num_shards=2)
    assert len(list(folder.glob("*.arrow"))) == 2
    ran = command("index", f"{folder}/*.arrow", "--out", tmp_path / "index.pt")
    assert ran.code == 0, ran.error
    data = pt.Dataset(tmp_path / "index.pt")
    assert [sample["jpg"] for sample in data] == [file.read_bytes() for file in files]
    assert data.classes == names
    assert [data.classes[label] for label in data.labels] == [file.parent.name for file in files]
    assert pt.verify(tmp_path / "index.pt").ok


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_damage_is_an_error_and_never_wrong_bytes(tmp_path: Path, stream: bool) -> None:
    table = pa.table({"jpg": [jpeg(n) for n in range(40)]})
    whole = write_arrow(tmp_path / "x.arrow", table, stream=stream, rows=4).read_bytes()
    for length in range(1, len(whole), 1009):
        path = tmp_path / "cut.arrow"
        path.write_bytes(whole[:length])
        with pytest.raises(pt.CorruptError):
            pt.index(path, out=tmp_path / "cut")
    path.write_bytes(whole[: len(whole) * 3 // 4])
    report = pt.index(path, out=tmp_path / "saved", recover=True)
    assert report.damage
    data = pt.Dataset(tmp_path / "saved")
    assert 20 <= len(data) < 40
    assert [sample["jpg"] for sample in data] == [jpeg(n) for n in range(len(data))]


# What packtrain writes


def test_the_loader_of_the_course_reads_our_file(photos: Path, tmp_path: Path) -> None:
    pt.pack(photos, tmp_path / "out", format="arrow", sync=False)
    ours = pt.Dataset(tmp_path / "out")
    shards = shards_of(tmp_path / "out")
    assert len(shards) == len(ours.splits), "a file for each split"
    seen = []
    for shard in shards:
        loader = CourseLoader(shard)
        seen += [loader[position] for position in range(len(loader))]
        with pa.ipc.open_file(shard) as reader:
            schema = pa.schema([pa.field("image_data", pa.binary()), pa.field("label", pa.uint16())])
            assert reader.schema.equals(schema, check_metadata=True)
            assert reader.schema.metadata is None
            reader.read_all().validate(full=True)
    assert seen == [(sample["jpg"], label) for sample, label in zip(ours, ours.labels.tolist())]
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    assert image.open(io.BytesIO(seen[0][0])).convert("RGB").size[0] > 0


def test_pyarrow_reads_what_is_no_set_of_images(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    for number in range(200):
        files[f"{number:03}.jpg"] = jpeg(number)
        files[f"{number:03}.txt"] = f"grüße {number}".encode()
        if number % 3 == 0:
            files[f"{number:03}.seg.png"] = b"\x89PNG\r\n\x1a\n" + bytes(number)
        files[f"{number:03}.cls"] = str(number * 1000).encode()
    write_tree(tmp_path / "tree", files)
    pt.pack(tmp_path / "tree", tmp_path / "out", format="arrow", order="source", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    with pa.ipc.open_file(shard) as reader:
        table = reader.read_all()
    table.validate(full=True)
    kinds = {field.name: field.type for field in table.schema}
    expected = {name: pa.binary() for name in ("cls", "jpg", "seg.png", "txt")}
    assert kinds == {**expected, "label": pa.int64(), "__key__": pa.string()}
    assert all(field.nullable for field in table.schema)
    for row in table.to_pylist():
        key = row["__key__"]
        assert row["label"] == int(files[f"{key}.cls"])
        for name in expected:
            assert row[name] == files.get(f"{key}.{name}")
    # From the file alone, without our index, the same again.
    bare = pt.Dataset(pt.index(shard, out=tmp_path / "bare").folder)
    ours = pt.Dataset(tmp_path / "out")
    assert list(bare.keys) == list(ours.keys)
    assert bare.labels.tolist() == ours.labels.tolist()
    for name in expected:
        assert [sample.get(name) for sample in bare] == [sample.get(name) for sample in ours]
    assert pt.verify(tmp_path / "out").ok


def test_labels_above_65535_are_int64(tmp_path: Path) -> None:
    files = {f"{n}.jpg": jpeg(n) for n in range(3)}
    files.update({f"{n}.cls": str(n * 65536).encode() for n in range(3)})
    write_tree(tmp_path / "tree", files)
    pt.pack(tmp_path / "tree", tmp_path / "out", format="arrow", order="source", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    with pa.ipc.open_file(shard) as reader:
        table = reader.read_all()
    table.validate(full=True)
    assert table.schema.field("label").type == pa.int64()
    assert table["label"].to_pylist() == [0, 65536, 131072]


def test_images_without_labels_have_one_column(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {f"{n}.png": b"\x89PNG\r\n\x1a\n" + bytes(n) for n in range(5)})
    pt.pack(tmp_path / "tree", tmp_path / "out", format="arrow", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    with pa.ipc.open_file(shard) as reader:
        assert reader.schema.names == ["image_data"]


def test_hugging_face_datasets_reads_our_file(tmp_path: Path, photos: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    pt.pack(photos / "train", tmp_path / "out", format="arrow", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    rows = datasets.load_dataset(
        "arrow", data_files=str(shard), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert [row["image_data"] for row in rows] == [sample["jpg"] for sample in pt.Dataset(tmp_path / "out")]


def test_the_same_samples_give_the_same_bytes(photos: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        pt.pack(photos, tmp_path / name, format="arrow", sync=False)
    assert [shard.read_bytes() for shard in shards_of(tmp_path / "one")] == [
        shard.read_bytes() for shard in shards_of(tmp_path / "two")
    ]
