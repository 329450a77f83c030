"""Arrays keep their type and shape through containers that know both, and through those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, read_tree, without_log

pytestmark = pytest.mark.filterwarnings("ignore:.*index.*:UserWarning")

RNG = np.random.default_rng(8)
ROWS = 12
TYPES = ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def write_npz(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


def write_npy(path: Path, arrays: dict[str, Any]) -> Path:
    path.mkdir()
    np.save(path / "x.npy", arrays["x"])
    np.save(path / "y.npy", arrays["labels"])
    return path


def write_hdf5(path: Path, arrays: dict[str, Any]) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.update(arrays)
    return path


def write_zarr(path: Path, arrays: dict[str, Any]) -> Path:
    zarr = pytest.importorskip("zarr")
    group = zarr.create_group(path)
    for name, array in arrays.items():
        group.create_array(name, data=array, chunks=(5, *array.shape[1:]))
    return path


def shard_of(data: Path) -> Path:
    (shard,) = pt.Dataset(data).shards
    return data / shard.path


def read_npz(data: Path, name: str) -> Any:
    with np.load(shard_of(data)) as file:
        return file[name]


def read_npy(data: Path, name: str) -> Any:
    return np.load(shard_of(data).with_name("y.npy" if name == "labels" else "x.npy"))


def read_hdf5(data: Path, name: str) -> Any:
    h5py = pytest.importorskip("h5py")
    with h5py.File(shard_of(data)) as file:
        return file[name][:]


def read_zarr(data: Path, name: str) -> Any:
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(shard_of(data), mode="r") as store:
        return zarr.open_group(store, mode="r")[name][:]


WRITERS = {"npz": write_npz, "npy": write_npy, "hdf5": write_hdf5, "zarr": write_zarr}
READERS = {"npz": read_npz, "npy": read_npy, "hdf5": read_hdf5, "zarr": read_zarr}


def expect_same(format: str, data: Path, x: Any, labels: Any, name: str = "x") -> None:
    got = READERS[format](data, name)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, x)
    assert READERS[format](data, "labels").tolist() == labels.tolist()
    assert pt.verify(data).ok


@pytest.mark.parametrize("target", sorted(READERS))
@pytest.mark.parametrize("source", sorted(WRITERS))
@pytest.mark.parametrize("shape", [(), (3, 4)], ids=str)
def test_rows_come_out_stacked_and_typed(source: str, target: str, shape: Any, tmp_path: Path) -> None:
    for type in TYPES:
        x = (
            RNG.integers(0, 2, (ROWS, *shape)).astype(type)
            if type == "bool"
            else RNG.normal(size=(ROWS, *shape), scale=50).astype(type)
        )
        labels = RNG.integers(0, 9, ROWS)
        given = WRITERS[source](tmp_path / f"{type}.{source}", {"x": x, "labels": labels})
        out = tmp_path / f"{type}.pt"
        pt.pack(given, out, format=target, order="source", sync=False)
        expect_same(target, out, x, labels, "data" if source == "npy" else "x")


@pytest.mark.parametrize(
    "between", ["webdataset", "zip", "lmdb", "arrow", "parquet", "squashfs", "hdf5-vlen"]
)
def test_types_survive_containers_that_do_not_know_them(between: str, tmp_path: Path) -> None:
    """The dataset's own index has them."""
    x, labels = RNG.normal(size=(ROWS, 3, 4)).astype("f4"), np.arange(ROWS)
    given = write_npz(tmp_path / "a", {"x": x, "labels": labels})
    pt.pack(given, tmp_path / "between", format=between, order="source", sync=False)
    for target in READERS:
        pt.pack(tmp_path / "between", tmp_path / target, format=target, order="source", sync=False)
        expect_same(target, tmp_path / target, x, labels)


@pytest.mark.parametrize("target", sorted(READERS))
def test_shuffled_rows_belong_to_their_labels(target: str, tmp_path: Path) -> None:
    x = np.repeat(np.arange(ROWS, dtype="i4"), 6).reshape(ROWS, 2, 3)
    given = write_npz(tmp_path / "a", {"x": x, "labels": np.arange(ROWS)})
    pt.pack(given, tmp_path / "out", format=target, sync=False)
    got, labels = (READERS[target](tmp_path / "out", name) for name in ("x", "labels"))
    assert labels.tolist() != list(range(ROWS))
    np.testing.assert_array_equal(got, x[labels])


def test_rows_of_arrays_are_compressed_where_zarr_is_asked_to(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    x = np.zeros((ROWS, 64, 64), "f4")
    given = write_npz(tmp_path / "a", {"x": x, "labels": np.arange(ROWS)})
    report = pt.pack(given, tmp_path / "out", format="zarr", compress="zstd", order="source", sync=False)
    assert report.compression[0].compressed
    assert shard_of(tmp_path / "out").stat().st_size < x.nbytes / 10
    expect_same("zarr", tmp_path / "out", x, np.arange(ROWS))
    with zarr.storage.ZipStore(shard_of(tmp_path / "out"), mode="r") as store:
        assert "ZstdCodec" in str(zarr.open_group(store, mode="r")["x"].metadata.codecs)


# NPY pairs


def test_a_tree_of_arrays_becomes_a_pair_and_comes_back(tmp_path: Path, command: Command) -> None:
    x = RNG.normal(size=(ROWS, 2, 5)).astype("f4")
    for number, row in enumerate(x):
        folder = tmp_path / "tree" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{number:02}.npy", row)
    packed = command("pack", tmp_path / "tree", tmp_path / "out", "--format", "npy", "--order", "source")
    assert packed.code == 0, packed.error
    order = [number for parity in (0, 1) for number in range(parity, ROWS, 2)]
    np.testing.assert_array_equal(read_npy(tmp_path / "out", "x"), x[order])
    mapped = np.load(shard_of(tmp_path / "out"), mmap_mode="r")
    np.testing.assert_array_equal(mapped, x[order])
    assert read_npy(tmp_path / "out", "labels").tolist() == [0] * 6 + [1] * 6
    pt.extract(tmp_path / "out", tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(tmp_path / "tree")
    bare = pt.Dataset(shard_of(tmp_path / "out").parent)
    assert bare.fields == ["npy"]
    batch = next(iter(pt.Loader(bare, batch_size=ROWS, shuffle=False, fields={"npy": "npy"})))
    np.testing.assert_array_equal(batch["npy"], x[order])


def test_a_pair_per_split(tmp_path: Path) -> None:
    arrays = {"x_train": np.eye(4), "y_train": np.arange(4), "x_test": np.eye(4)[:2], "y_test": np.arange(2)}
    np.savez(tmp_path / "a.npz", **arrays)
    pt.pack(tmp_path / "a.npz", tmp_path / "out", format="npy", order="source", sync=False)
    for split in ("train", "test"):
        folder = tmp_path / "out" / f"{split}-000000.arrays"
        np.testing.assert_array_equal(np.load(folder / "x.npy"), arrays[f"x_{split}"])
        np.testing.assert_array_equal(np.load(folder / "y.npy"), arrays[f"y_{split}"])


def test_a_pair_is_checked_whole(tmp_path: Path, command: Command) -> None:
    given = write_npz(tmp_path / "a", {"x": np.eye(4), "labels": np.arange(4)})
    pt.pack(given, tmp_path / "out", format="npy", sync=False)
    for name in ("x.npy", "y.npy"):
        path = shard_of(tmp_path / "out").with_name(name)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        checked = command("verify", tmp_path / "out")
        assert checked.code == 1
        assert name in checked.out + checked.error
        path.write_bytes(whole)
    assert command("verify", tmp_path / "out").code == 0


def test_any_number_of_jobs_gives_the_same_pair(tmp_path: Path) -> None:
    given = write_npz(tmp_path / "a", {"x": RNG.normal(size=(500, 7)), "labels": np.arange(500)})
    for jobs in (1, 4):
        pt.pack(given, tmp_path / str(jobs), format="npy", jobs=jobs, sync=False)
    assert without_log(tmp_path / "1") == without_log(tmp_path / "4")


@pytest.mark.parametrize(
    "arrays",
    [{"x": np.eye(3), "z": np.eye(3)}, {"jpg": np.zeros(9, "u1"), "jpg_offsets": np.array([0, 2, 5, 9])}],
    ids=["two fields", "no arrays"],
)
def test_what_is_no_pair_is_refused(arrays: dict[str, Any], tmp_path: Path, command: Command) -> None:
    given = write_npz(tmp_path / "a", arrays)
    packed = command("pack", given, tmp_path / "out", "--format", "npy")
    assert packed.code == 2
    assert "--format npz" in packed.last_line
    assert not (tmp_path / "out").exists()


def test_labels_beside_an_array_are_read_again_when_they_change(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    assert set(pt.Dataset(tmp_path / "x.npy").labels.tolist()) == {pt.NO_LABEL}
    for labels in ([0, 1, 2], [2, 1, 0]):
        np.save(tmp_path / "y.npy", np.array(labels))
        assert pt.Dataset(tmp_path / "x.npy").labels.tolist() == labels
    pt.index(tmp_path / "x.npy")
    np.save(tmp_path / "y.npy", np.array([7, 7, 7]))
    with pytest.warns(UserWarning, match="has changed since"):
        assert pt.Dataset(tmp_path / "x.npy").labels.tolist() == [7, 7, 7]
    with pytest.raises(pt.CorruptError, match=r"y\.npy"):
        pt.Dataset(tmp_path / "x.npy.packtrain")


@pytest.mark.parametrize("names", [("x_train", "y_train"), ("train_images", "train_labels")])
def test_one_split_alone_keeps_its_labels(names: tuple[str, str], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{names[0]: np.eye(5), names[1]: np.arange(5)})
    data = pt.Dataset(tmp_path / "a.npz")
    assert dict(data.splits) == {"train": 5}
    assert data.labels.tolist() == list(range(5))


FIELDS = 9


@pytest.fixture(scope="module")
def field_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class tree of arrays of one type and shape, which containers stack."""
    tree = tmp_path_factory.mktemp("fields") / "tree"
    for number in range(FIELDS):
        path = tree / ("ab"[number % 2]) / f"{number}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, RNG.integers(0, 5, size=(40, 50)).astype("f4"))
    return tree


@pytest.mark.parametrize(
    ("target", "compress"),
    [
        ("npz", "none"),
        ("npy", "none"),
        ("hdf5", "none"),
        ("zarr", "none"),
        ("zarr", "zstd"),
        ("zarr", "auto"),
    ],
)
def test_damage_in_a_stacked_array_is_told_by_whoever_reads_it(
    command: Command, field_tree: Path, tmp_path: Path, target: str, compress: str
) -> None:
    packed = tmp_path / "out.pt"
    assert command("pack", field_tree, packed, "--format", target, "--compress", compress).code == 0
    assert command("extract", packed, tmp_path / "back").code == 0
    assert read_tree(tmp_path / "back") == read_tree(field_tree)
    shard = max((path for path in packed.rglob("train-*") if path.is_file()), default=None, key=size_of)
    if shard is None:
        shard = max((path for path in packed.rglob("*") if path.parent != packed), key=size_of)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)

    data = pt.Dataset(packed)
    bad = []
    for position in range(FIELDS):
        try:
            _ = data[position]
        except pt.CorruptError:
            bad.append(position)
    assert bad
    assert compress != "none" or len(bad) == 1
    with pytest.raises(pt.CorruptError):
        for _ in pt.Loader(packed, batch_size=3, fields={"npy": "bytes"}, shuffle=False):
            pass
    with pytest.raises(pt.CorruptError):
        for _ in pt.Loader(packed, batch_size=3, fields=["npy"], shuffle=False):
            pass
    assert command("extract", packed, tmp_path / "again").code == 1
    assert command("pack", packed, tmp_path / "again.pt").code == 1
    told = command("verify", packed)
    assert told.code == 1
    assert all(data.keys[position] in told.out for position in bad)
    left = command("extract", packed, tmp_path / "rest", "--skip-bad", str(len(bad)))
    assert left.code == 0, left
    assert len(read_tree(tmp_path / "rest")) == FIELDS - len(bad)


def size_of(path: Path) -> int:
    return path.stat().st_size


def test_a_pair_stays_one_beside_indexes_of_it(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    (tmp_path / "pair").mkdir()
    np.save(tmp_path / "pair" / "x.npy", rows)
    np.save(tmp_path / "pair" / "y.npy", np.arange(3))
    pt.index(tmp_path / "pair" / "x.npy")
    with pytest.warns(UserWarning, match="indexed 3 samples"):
        data = pt.Dataset(tmp_path / "pair", cache=False)
    assert data.labels.tolist() == [0, 1, 2]
    pt.pack(tmp_path / "pair", tmp_path / "out", order="source", sync=False)
    packed = pt.Dataset(tmp_path / "out")
    assert packed.labels.tolist() == [0, 1, 2]
    assert [packed.field(number, "data") for number in range(3)] == [row.tobytes() for row in rows]
