"""HDF5 in both layouts: what packtrain writes is read by h5py, and what h5py writes by packtrain."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, write_tree

h5py = pytest.importorskip("h5py")

VLEN = h5py.vlen_dtype(np.dtype(np.uint8))
LIBVERS = ["earliest", "latest"]


def noise(size: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


def jpegs(count: int) -> list[bytes]:
    """Nothing that decodes, but told from its first bytes; of all sizes around those where heaps change."""
    return [b"\xff\xd8\xff\xe0" + noise(37 * n * n, n) for n in range(count)]


def as_array(data: bytes) -> Any:
    return np.frombuffer(data, dtype=np.uint8)


def fields_of(dataset: pt.Dataset, field: str) -> list[bytes]:
    return [bytes(sample[field]) for sample in dataset]


def shards_of(data: Path) -> list[Path]:
    return [data / shard.path for shard in pt.Dataset(data).shards]


# What packtrain writes


@pytest.fixture(scope="module")
def course_file(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hdf5") / "course"
    pt.pack(photos, out, format="hdf5-vlen", sync=False)
    (file,) = shards_of(out)
    return file


def test_the_courses_layout_is_read_by_h5py(photos: Path, course_file: Path) -> None:
    expected = {path.name: path.read_bytes() for path in photos.rglob("*.jpg")}
    seen = 0
    with h5py.File(course_file) as file:
        assert sorted(file) == ["train", "val"]
        for group in file.values():
            assert sorted(group) == ["images", "targets"]
            images, targets = group["images"], group["targets"]
            assert h5py.check_vlen_dtype(images.dtype) == np.dtype(np.uint8)
            assert (targets.dtype, images.chunks, targets.chunks) == (np.dtype("int16"), None, None)
            assert images.shape == targets.shape
            for image in images:
                assert image.tobytes() in expected.values()
                seen += 1
    assert seen == len(expected)


class CourseLoader:
    """Works as the loader of the course does: opens its split late, hands the bytes of one sample to PIL."""

    def __init__(self, path: Path, split: str) -> None:
        self.path, self.split = path, split
        self.group: Any = None

    def __getitem__(self, position: int) -> tuple[Any, int]:
        image_module = pytest.importorskip("PIL.Image")
        if self.group is None:
            self.group = h5py.File(self.path, "r")[self.split]
        with io.BytesIO(self.group["images"][position]) as stream, image_module.open(stream) as image:
            return image.convert("RGB"), self.group["targets"][position]


def test_the_courses_loader_reads_our_file(course_file: Path) -> None:
    ours = pt.Dataset(course_file, split="train")
    loader = CourseLoader(course_file, "train")
    for position in range(len(ours)):
        image, target = loader[position]
        assert image.mode == "RGB"
        assert target == ours.labels[position]


def test_flat_bytes_are_read_by_h5py(tmp_path: Path) -> None:
    files = small_tree() | {"ant/empty.jpg": b"", "bee/short.jpg": b"\xff\xd8\xff"}
    pt.pack(write_tree(tmp_path / "tree", files), tmp_path / "out", format="hdf5", shards=2, sync=False)
    got = {}
    for shard in shards_of(tmp_path / "out"):
        with h5py.File(shard) as file:
            keys = file["__key__"].asstr()[:]
            for field in ("jpg", "json"):
                data, offsets = file[field], file[f"{field}_offsets"]
                assert (data.dtype, data.ndim, data.chunks) == (np.dtype(np.uint8), 1, None)
                assert len(offsets) == len(keys) + 1
                present = file.get(f"{field}_present", np.ones(len(keys), np.uint8))
                for n, key in enumerate(keys):
                    if present[n]:
                        got[f"{key}.{field}"] = data[offsets[n] : offsets[n + 1]].tobytes()
            assert file["labels"].dtype == np.dtype("int64")
            assert len(file["labels"]) == len(keys)
    assert got == files


def test_fields_and_keys_of_variable_length_are_read_by_h5py(tmp_path: Path) -> None:
    files = small_tree() | {"cat/large.jpg": noise(300_000), "cat/empty.json": b""}
    pt.pack(write_tree(tmp_path / "tree", files), tmp_path / "out", format="hdf5-vlen", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    got = {}
    with h5py.File(shard) as file:
        for group in file.values():
            keys = group["__key__"].asstr()[:]
            for field in ("jpg", "json"):
                present = group.get(f"{field}_present", np.ones(len(keys), np.uint8))
                for n, key in enumerate(keys):
                    if present[n]:
                        got[f"{key}.{field}"] = group[field][n].tobytes()
    assert got == files


@pytest.mark.parametrize("name", ["hdf5", "hdf5-vlen"])
def test_h5py_can_copy_and_change_our_file(name: str, tmp_path: Path) -> None:
    """A file that another library opens for writing must have no loose ends."""
    pt.pack(write_tree(tmp_path / "tree", small_tree()), tmp_path / "out", format=name, sync=False)
    shard, ours = shards_of(tmp_path / "out")[0], tmp_path / "changed.h5"
    ours.write_bytes(shard.read_bytes())
    with h5py.File(ours, "a") as file:
        group = file if name == "hdf5" else next(iter(file.values()))
        group.attrs["note"] = "changed"
        group.create_dataset("more", data=np.arange(len(group["__key__"])))
        group.copy("jpg", "again")
        expected = [np.asarray(value).tobytes() for value in group["again"][:]]
    with h5py.File(ours) as file:
        group = file if name == "hdf5" else next(iter(file.values()))
        assert [np.asarray(value).tobytes() for value in group["jpg"][:]] == expected
    assert fields_of(pt.Dataset(ours), "jpg") == fields_of(pt.Dataset(shard), "jpg")


# What h5py writes


def write_course(path: Path, splits: dict[str, list[bytes]], libver: str) -> Path:
    """As the course's loop does it: one sample at a time."""
    with h5py.File(path, "w", libver=libver) as file:
        for split, samples in splits.items():
            group = file.create_group(split)
            images = group.create_dataset("images", (len(samples),), dtype=VLEN)
            targets = group.create_dataset("targets", (len(samples),), dtype="int16")
            for n, sample in enumerate(samples):
                images[n] = np.array(list(sample), dtype=np.uint8)
                targets[n] = n % 7
    return path


@pytest.mark.parametrize("libver", LIBVERS)
def test_a_file_of_the_courses_loop_is_a_dataset(libver: str, tmp_path: Path, command: Command) -> None:
    splits = {"val": jpegs(9), "train": jpegs(40)}
    path = write_course(tmp_path / "ImageNet.h5", splits, libver)
    for split, samples in splits.items():
        dataset = pt.Dataset(path, split=split)
        assert fields_of(dataset, "jpg") == samples
        assert dataset.labels.tolist() == [n % 7 for n in range(len(samples))]
    report = pt.index(path)
    assert report.samples == 49
    assert fields_of(pt.Dataset(path), "jpg") == splits["val"] + splits["train"]
    done = command("index", path, "--out", tmp_path / "by-command")
    assert done.code == 0, done.error


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("count", [1, 5, 200, 3000, 40_000])
def test_chunked_and_growing_columns(libver: str, count: int, tmp_path: Path) -> None:
    samples = [f"text of {n}".encode() + b"." * (n % 3) for n in range(count)]
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        texts = file.create_dataset("txt", (0,), maxshape=(None,), chunks=(16,), dtype=VLEN)
        labels = file.create_dataset("labels", (0,), maxshape=(None,), chunks=(64,), dtype=">i4")
        for start, stop in ((0, count // 2), (count // 2, count)):
            texts.resize((stop,))
            labels.resize((stop,))
            labels[start:stop] = np.arange(start, stop) - 3
            values = np.empty(stop - start, dtype=object)
            values[:] = [as_array(sample) for sample in samples[start:stop]]
            if stop - start == 1:  # h5py takes an array of one array for a table
                texts[start] = values[0]
            else:
                texts[start:stop] = values
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "txt") == samples
    assert dataset.labels.tolist() == [n - 3 for n in range(count)]
    assert list(dataset.keys)[-1] == f"{count - 1:09}"


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("chunks", [None, (1000,), (50_000,)])
def test_flat_bytes_with_offsets(libver: str, chunks: Any, tmp_path: Path) -> None:
    samples = [noise(n * 31, n) for n in range(60)]
    ends = np.cumsum([0] + [len(sample) for sample in samples])
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        file.create_dataset("wav", data=as_array(b"".join(samples)), chunks=chunks)
        file.create_dataset("wav_offsets", data=ends.astype(np.uint64))
        file["key"] = [f"k/{n}" for n in range(60)]
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "wav") == samples
    assert list(dataset.keys) == [f"k/{n}" for n in range(60)]


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("chunks", [None, (3, 4, 5)])
def test_rows_of_arrays(libver: str, chunks: Any, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 4, 5)).astype(np.float32)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        file.create_dataset("x", data=rows, chunks=chunks)
        file.create_dataset("y", data=np.arange(50, dtype=np.uint8), compression="gzip", shuffle=True)
        file["mean"] = np.zeros((4, 5))  # of another length: no column
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert [np.frombuffer(x, np.float32).tolist() for x in fields_of(dataset, "x")] == [
        row.ravel().tolist() for row in rows
    ]
    assert dataset.labels.tolist() == list(range(50))
    assert dataset.fields == ["x"]
    assert pt.index(tmp_path / "a.h5").columns_left_out == ["mean"]
    batch = next(iter(pt.Loader(dataset, batch_size=8, shuffle=False, fields={"x": "raw:float32"})))
    assert np.array_equal(np.asarray(batch["x"]).reshape(-1, 4, 5), rows[:8])


def test_sequences_of_numbers_strings_and_named_types(tmp_path: Path) -> None:
    tokens = [np.arange(n, dtype=np.int32) for n in range(20)]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["type"] = np.dtype("int64")
        file.create_dataset("tokens", (20,), dtype=h5py.vlen_dtype(np.int32))
        for n, row in enumerate(tokens):
            file["tokens"][n] = row
        file.create_dataset("text", data=[f"grüße {n}" for n in range(20)], dtype=h5py.string_dtype())
        file.create_dataset("label", (20,), dtype=file["type"])
        file["label"][:] = np.arange(20)
        file["keys"] = np.array([f"key{n}".encode() for n in range(20)])
        file["soft"] = h5py.SoftLink("/tokens")
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "tokens") == [row.tobytes() for row in tokens]
    assert [text.decode() for text in fields_of(dataset, "text")] == [f"grüße {n}" for n in range(20)]
    assert dataset.labels.tolist() == list(range(20))
    assert dataset.keys[7] == "key7"


def test_a_user_block_and_many_attributes_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=2048) as file:
        group = file.create_group("train")
        for n in range(40):
            group.attrs[f"attribute {n}"] = "x" * 200
        images = group.create_dataset("images", (5,), dtype=VLEN)
        for n, sample in enumerate(jpegs(5)):
            images.attrs[f"attribute {n}"] = "y" * 500
            images[n] = as_array(sample)
    with path.open("r+b") as raw:
        raw.write(b"#!/bin/sh")
    assert fields_of(pt.Dataset(path), "jpg") == jpegs(5)


def test_rewritten_values_are_found(tmp_path: Path) -> None:
    """Heaps that were freed and filled again are in no order."""
    samples = jpegs(30)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        images = file.create_dataset("images", (30,), dtype=VLEN)
        for n in [*range(30), *range(0, 30, 3), *range(29, -1, -1)]:
            images[n] = as_array(samples[(n * 7) % 30])
        for n in range(0, 30, 2):
            images[n] = as_array(samples[n])
    expected = [samples[n] if n % 2 == 0 else samples[(n * 7) % 30] for n in range(30)]
    assert fields_of(pt.Dataset(tmp_path / "a.h5"), "jpg") == expected


GROWING = [
    ((None, None), (50, 4), (1, 4)),
    ((None, None), (500, 4), (3, 4)),
    ((None, None), (50, 4), (50, 4)),
    ((None, None, None), (50, 4, 4), (2, 4, 4)),
    ((50, None), (50, 4), (1, 4)),
]


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize(("limits", "shape", "chunks"), GROWING)
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_arrays_that_grow_in_several_directions(
    libver: str, limits: Any, shape: Any, chunks: Any, compression: Any, tmp_path: Path
) -> None:
    """Their chunks are found by a tree of the newer kind; with 500 it has two levels."""
    rows = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    labels = np.arange(shape[0]).reshape(-1, 1) + 7
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        file.create_dataset("x", data=rows, maxshape=limits, chunks=chunks, compression=compression)
        file.create_dataset(
            "labels", data=labels, maxshape=(None, None), chunks=(10, 1), compression=compression
        )
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "x") == [row.tobytes() for row in rows]
    assert dataset.labels.tolist() == labels.ravel().tolist()


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("chunks", [None, (4,)])
@pytest.mark.parametrize("fill", [None, 0, -1])
def test_labels_that_were_never_written_are_the_fill_value(
    libver: str, chunks: Any, fill: Any, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        file["x"] = np.ones((10, 4), np.float32)
        file.create_dataset("labels", (10,), dtype="i4", fillvalue=fill, chunks=chunks)
        if chunks:
            file["labels"][:4] = 3
        expected = file["labels"][:].tolist()
    assert pt.Dataset(tmp_path / "a.h5").labels.tolist() == expected


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("chunks", [None, (2, 4)])
@pytest.mark.parametrize("fill", [None, 0, 5.5, np.nan])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_rows_that_were_never_written_are_the_fill_value(
    libver: str, chunks: Any, fill: Any, compression: Any, tmp_path: Path
) -> None:
    if compression and not chunks:
        pytest.skip("what is compressed is chunked")
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        rows = file.create_dataset("x", (10, 4), "f4", fillvalue=fill, chunks=chunks, compression=compression)
        if chunks:
            rows[2:5] = 1
        file["labels"] = np.arange(10)
        expected = [row.tobytes() for row in rows[:]]
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "x") == expected
    pt.pack(tmp_path / "a.h5", tmp_path / "out", format="hdf5", order="source", sync=False)
    assert fields_of(pt.Dataset(tmp_path / "out"), "x") == expected


FILTERS: list[dict[str, Any]] = [
    {"compression": "gzip"},
    {"compression": "gzip", "shuffle": True, "fletcher32": True},
    {"compression": "lzf", "shuffle": True},
    {"shuffle": True},
    {"fletcher32": True},
]


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("filters", FILTERS, ids=lambda filters: "+".join(filters))
def test_filtered_chunks_are_decoded(libver: str, filters: dict[str, Any], tmp_path: Path) -> None:
    """As many published sets are stored, such as PCam; the last chunk is cut by the end of the rows."""
    rng = np.random.default_rng(3)
    rows = np.repeat(rng.integers(0, 60_000, (50, 12), dtype=np.uint16), 5, axis=1)
    rows[10:20] = rng.integers(0, 60_000, (10, 60))  # what does not shrink stays as it is
    texts = [noise(n * 31, n) for n in range(50)]
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        file.create_dataset("x", data=rows, chunks=(7, 60), **filters)
        file.create_dataset("txt", data=as_array(b"".join(texts)), chunks=(1000,), **filters)
        ends = np.cumsum([0] + [len(text) for text in texts])
        file.create_dataset("txt_offsets", data=ends, chunks=(16,), **filters)
        file.create_dataset("labels", data=np.arange(50), chunks=(7,), **filters)
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "x") == [row.tobytes() for row in rows]
    assert fields_of(dataset, "txt") == texts
    assert dataset.labels.tolist() == list(range(50))
    batch = next(iter(pt.Loader(dataset, batch_size=8, seed=1, fields={"x": "raw:uint16"})))
    assert np.array_equal(np.asarray(batch["x"]), rows[batch["index"]])
    pt.pack(tmp_path / "a.h5", tmp_path / "out", order="source", sync=False)
    assert fields_of(pt.Dataset(tmp_path / "out"), "x") == [row.tobytes() for row in rows]


def test_a_damaged_filtered_chunk_is_found_by_its_check(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.ones((10, 4), np.float32), chunks=(5, 4), fletcher32=True)
        file["labels"] = np.arange(10)
        place = file["x"].id.get_chunk_info(1).byte_offset
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    dataset = pt.Dataset(path)
    assert dataset[0]["x"] == np.ones(4, np.float32).tobytes()
    with pytest.raises(pt.CorruptError, match="Fletcher-32"):
        dataset[7]


@pytest.mark.parametrize("options", [{"libver": "latest"}, {"track_order": True}], ids=str)
@pytest.mark.parametrize("count", [12, 300, 2500])
def test_large_groups_of_the_new_kind(options: dict[str, Any], count: int, tmp_path: Path) -> None:
    """Their links lie in a heap of growing blocks. h5repack does not make old groups of them."""
    with h5py.File(tmp_path / "a.h5", "w", **options) as file:
        group = file.create_group("train", track_order=options.get("track_order"))
        group["labels"] = np.arange(5)
        group["x"] = np.arange(20, dtype=np.float32).reshape(5, 4)
        for n in range(count):
            group[f"remark {n} " + "about nothing " * (n % 5)] = n
    dataset = pt.Dataset(tmp_path / "a.h5")
    assert fields_of(dataset, "x") == [row.tobytes() for row in np.arange(20, dtype=np.float32).reshape(5, 4)]
    assert dataset.labels.tolist() == list(range(5))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.linspace(0, 1, 10), "numbers that are not whole"),
        (np.eye(10, dtype=np.int64), "several numbers for each"),
        (np.array([b"ant", b"bee"] * 5), "texts"),
    ],
    ids=["real", "one-hot", "texts"],
)
def test_labels_that_are_none_are_told_of(labels: Any, words: str, tmp_path: Path, command: Command) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["labels"] = np.ones((10, 4), np.float32), labels
    report = pt.index(tmp_path / "a.h5")
    (note,) = report.notes
    assert "samples have no labels" in note
    assert words in note
    indexed = command("index", tmp_path / "a.h5", "--out", tmp_path / "again")
    assert words in indexed.error
    (tmp_path / "a.h5").rename(tmp_path / "b.h5")
    with pytest.warns(UserWarning, match=words):
        pt.Dataset(tmp_path / "b.h5", cache=False)


# What is refused, and damage


def test_a_number_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.ones((10, 4), np.float32))
        file.create_dataset("weight", data=np.ones(10), dtype=">f8")
        file["labels"] = np.arange(10)
    assert pt.index(tmp_path / "a.h5").columns_left_out == ["weight"]
    assert pt.Dataset(tmp_path / "a.h5").fields == ["x"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chunks": (5, 4, 5), "scaleoffset": 3}, "h5repack -f NONE"),
        ({"chunks": (5, 2, 5)}, "h5repack -l CONTI"),
        ({"dtype": ">f4"}, "big-endian"),
    ],
)
def test_arrays_that_cannot_be_read_by_row_are_refused(
    options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.ones((10, 4, 5), np.float32), **options)
        file["labels"] = np.arange(10)
    with pytest.raises(pt.UnsupportedError, match=words):
        pt.Dataset(tmp_path / "a.h5")


def test_files_without_samples_are_refused_by_what_they_hold(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["weights"] = np.ones(3)
    with pytest.raises(pt.UnsupportedError, match="weights"):
        pt.Dataset(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w", libver="latest") as file:
        for n in range(10_001):
            file[f"sample{n}"] = n
    with pytest.raises(pt.UnsupportedError, match="a dataset for a column, not for a sample"):
        pt.Dataset(tmp_path / "b.h5")


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    whole = write_course(tmp_path / "a.h5", {"train": jpegs(5)}, "earliest").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[:-100])
    with pytest.raises(pt.CorruptError, match="cut short"):
        pt.Dataset(tmp_path / "cut.h5")


def test_damage_to_one_heap_costs_its_samples_only(tmp_path: Path) -> None:
    path = write_course(tmp_path / "a.h5", {"train": jpegs(40)}, "earliest")
    data = bytearray(path.read_bytes())
    heap = data.rfind(b"GCOL")
    data[heap : heap + 4] = b"gone"
    path.write_bytes(data)
    with pytest.raises(pt.CorruptError, match="--recover"):
        pt.Dataset(path)
    report = pt.index(path, recover=True)
    assert 0 < len(report.damage) < 40
    assert report.samples == 40 - len(report.damage)


# Two libraries of HDF5 in one process

BOTH = """
import sys
order, folder = sys.argv[1:]
for name in order.split(","):
    __import__(name)
import h5py, numpy as np, packtrain as pt
with h5py.File(folder + "/a.h5", "w") as file:
    images = file.create_dataset("images", (3,), dtype=h5py.vlen_dtype(np.uint8))
    for n in range(3):
        images[n] = np.frombuffer(b"\\xff\\xd8\\xff" + bytes([n]) * 1000, dtype=np.uint8)
assert len(pt.Dataset(folder + "/a.h5")) == 3
for name in ("hdf5", "hdf5-vlen"):
    pt.pack(folder + "/a.h5", folder + "/" + name, format=name, sync=False)
    dataset = pt.Dataset(folder + "/" + name)
    with h5py.File(folder + "/" + name + "/" + dataset.shards[0].path) as file:
        found = []
        file.visit(found.append)
        assert found
    both = (folder + "/a.h5", folder + "/" + name)
    images = [{bytes(sample["jpg"]) for sample in pt.Dataset(data)} for data in both]
    assert images[0] == images[1] and len(images[0]) == 3
assert not any("libhdf5_serial" in line for line in open("/proc/self/maps"))
"""


@pytest.mark.parametrize("order", ["h5py,packtrain", "packtrain,h5py"])
def test_beside_h5py_in_either_order(order: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOTH, order, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_packing_from_hdf5_keeps_everything(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", small_tree())
    pt.pack(tree, tmp_path / "flat", format="hdf5", shards=1, sync=False)
    pt.pack(shards_of(tmp_path / "flat")[0], tmp_path / "tar", sync=False)
    pt.extract(tmp_path / "tar", tmp_path / "back")
    assert {Path(name).name: data for name, data in read_tree(tmp_path / "back").items()} == {
        Path(name).name: data for name, data in read_tree(tree).items()
    }


def test_labels_of_another_length_are_an_error(tmp_path: Path, command: Command) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"], file["labels"] = np.zeros((50, 8, 8), np.uint8), np.arange(49)
    indexed = command("index", tmp_path / "x.h5")
    assert indexed.code == 1
    assert "`images` has 50 rows where there are 49 samples" in indexed.last_line


def test_a_group_for_each_sample_is_refused(tmp_path: Path, command: Command) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for number in range(20):
            group = file.create_group(str(number))
            group["image"], group["label"] = np.zeros((8, 8, 3), np.uint8), number
    assert command("index", tmp_path / "x.h5").code == 2


@pytest.mark.parametrize("names", [("x_train", "y_train"), ("train_images", "train_labels")])
@pytest.mark.parametrize("splits", [["train"], ["test"], ["train", "test", "val"]], ids=",".join)
def test_arrays_named_after_splits(names: tuple[str, str], splits: list[str], tmp_path: Path) -> None:
    """As Keras and many a course keep them: also when there is one pair only."""
    rows = {"train": 5, "test": 3, "val": 2}
    expected = []
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for split in splits:
            x, y = (name.replace("train", split) for name in names)
            file[x] = np.full((rows[split], 4), len(split), np.float32)
            file[y] = np.arange(rows[split]) + 10 * len(split)
            expected += [number + 10 * len(split) for number in range(rows[split])]
    data = pt.Dataset(tmp_path / "a.h5")
    assert dict(data.splits) == {split: rows[split] for split in splits}
    assert data.labels.tolist() == expected
    assert data.fields == [names[0].replace("train", "").strip("_")]
    for split in splits:
        part = pt.Dataset(tmp_path / "a.h5", split=split)
        assert part.field(0, part.fields[0]) == np.full(4, len(split), np.float32).tobytes()


def test_a_split_without_labels_beside_one_that_has_some(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x_train"], file["y_train"], file["x_test"] = np.eye(4), np.arange(4), np.eye(4)[:2]
    data = pt.Dataset(tmp_path / "a.h5")
    assert dict(data.splits) == {"train": 4, "test": 2}
    assert data.labels.tolist() == [0, 1, 2, 3, pt.NO_LABEL, pt.NO_LABEL]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_groups_that_are_counted_up_come_in_the_order_of_their_numbers(libver: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        for number in range(12):
            file[f"fold{number}/images"], file[f"fold{number}/labels"] = np.eye(2), np.full(2, number)
    data = pt.Dataset(tmp_path / "a.h5")
    assert list(data.splits) == [f"fold{number}" for number in range(12)]
    assert data.labels.tolist() == [number for number in range(12) for _ in range(2)]


def test_advice_for_nested_groups_names_those_that_hold_the_data(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("a/b/c", "a/b/d/e"):
            file[f"{name}/images"], file[f"{name}/labels"] = np.eye(5), np.arange(5)
    with pytest.raises(
        pt.UnsupportedError, match=r"the groups a/b/c, a/b/d/e below.*-s a/b/c -o OUT -d train"
    ):
        pt.Dataset(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5", "w") as out:
        file.copy("a/b/c", out, name="train")
    assert dict(pt.Dataset(tmp_path / "b.h5").splits) == {"train": 5}
