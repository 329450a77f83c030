"""LMDB: its own library and tools read and change what packtrain writes, and packtrain reads what they do."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command, write_tree
from packtrain._core import place_of

lmdb = pytest.importorskip("lmdb")


def made_files(count: int = 300) -> dict[str, bytes]:
    """A class tree with values of all sizes around those at which LMDB changes its layout."""
    rng = random.Random(5)
    sizes = [0, 1, 2000, 2015, 2016, 2017, 2018, 2019, 2020, 2021, 4080, 4081, 8176, 8177, 30_000]
    files = {}
    for number in range(count):
        name = f"{('ant', 'bee')[number % 2]}/{rng.randrange(10**9)}"
        files[f"{name}.jpg"] = b"\xff\xd8\xff" + rng.randbytes(sizes[number % len(sizes)])
        if number % 3 == 0:
            files[f"{name}.txt"] = f"text of {number}".encode()
    return files


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return made_files()


@pytest.fixture(scope="module")
def packed(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lmdb")
    out = folder / "out"
    pt.pack(write_tree(folder / "tree", files), out, format="lmdb", order="source", sync=False)
    return out


def container_of(packed: Path) -> Path:
    (shard,) = pt.Dataset(packed).shards
    path = packed / shard.path
    assert path.name == "data.mdb"
    return path.parent


def expected_entries(packed: Path) -> dict[bytes, bytes]:
    entries = {}
    for sample in pt.Dataset(packed):
        key = sample["__key__"]
        for field, value in sample.items():
            if field.startswith("__"):
                continue
            entries[f"{key}.{field}".encode()] = value if isinstance(value, bytes) else str(value).encode()
    return entries


def entries_of(folder: Path, **options: object) -> dict[bytes, bytes]:
    with lmdb.open(str(folder), **options) as env, env.begin() as txn:
        return dict(txn.cursor())


@pytest.mark.parametrize("options", [{}, {"readonly": True, "lock": False}, {"readonly": True}])
def test_py_lmdb_reads_every_byte(
    packed: Path, files: dict[str, bytes], tmp_path: Path, options: dict[str, object]
) -> None:
    folder = shutil.copytree(container_of(packed), tmp_path / "copy.lmdb")
    expected = expected_entries(packed)
    assert len(expected) >= len(files)
    with lmdb.open(str(folder), **options) as env, env.begin() as txn:
        assert dict(txn.cursor()) == expected
        assert list(txn.cursor().iternext(values=False)) == sorted(expected)
        for key, value in expected.items():
            assert txn.get(key) == value
            assert txn.get(key + b"x") is None
        cursor = txn.cursor()
        assert cursor.set_range(b"ant/")
        assert cursor.key() == min(expected)
        stat = env.stat()
        assert stat["entries"] == len(expected)
        assert stat["psize"] == 4096
        info = env.info()
        pages = folder.joinpath("data.mdb").stat().st_size // 4096
        assert info["last_pgno"] == pages - 1
        assert stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] + 2 == pages


def test_py_lmdb_goes_on_writing_into_our_file(packed: Path, tmp_path: Path, command: Command) -> None:
    folder = shutil.copytree(container_of(packed), tmp_path / "copy.lmdb")
    expected = expected_entries(packed)
    rng = random.Random(3)
    with lmdb.open(str(folder), map_size=1 << 30) as env:
        for _round in range(5):
            with env.begin(write=True) as txn:
                for key in rng.sample(sorted(expected), 60):
                    assert txn.delete(key)
                    del expected[key]
                for _ in range(200):
                    key = f"new/{rng.randrange(10**9)}.bin".encode()
                    expected[key] = rng.randbytes(rng.choice([0, 10, 3000, 20_000]))
                    assert txn.put(key, expected[key])
            with env.begin() as txn:
                assert dict(txn.cursor()) == expected
    assert entries_of(folder, readonly=True) == expected
    done = command("index", folder)
    assert done.code == 0, done.error
    ours = pt.Dataset(f"{folder}.packtrain")
    assert sum(len([f for f in s if not f.startswith("__")]) for s in ours) == len(expected)
    assert all(s["bin"] == expected[f"{s['__key__']}.bin".encode()] for s in ours if "bin" in s)


@pytest.mark.skipif(not shutil.which("mdb_stat"), reason="the tools of LMDB are not installed")
def test_the_tools_of_lmdb_read_our_file(packed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(container_of(packed), tmp_path / "copy.lmdb")
    expected = expected_entries(packed)
    stat = subprocess.run(["mdb_stat", "-e", "-f", folder], capture_output=True, text=True, check=True)
    assert f"Entries: {len(expected)}" in stat.stdout
    assert "Free pages: 0" in stat.stdout
    for option in ([], ["-c"]):
        target = tmp_path / f"target{len(option)}"
        target.mkdir()
        subprocess.run(["mdb_copy", *option, folder, target], check=True)
        assert entries_of(target, readonly=True) == expected


@pytest.mark.parametrize("entries", [1, 2, 100, 5000])
def test_one_level_or_many(entries: int, tmp_path: Path) -> None:
    files = {f"{number:06}.txt": str(number).encode() for number in range(entries)}
    pt.pack(write_tree(tmp_path / "tree", files), tmp_path / "out", format="lmdb", shards=1, sync=False)
    found = entries_of(container_of(tmp_path / "out"), readonly=True, lock=False)
    assert {key: value for key, value in found.items() if key.endswith(b".txt")} == {
        name.encode(): value for name, value in files.items()
    }
    assert found == expected_entries(tmp_path / "out")


def mapped_files() -> str:
    return Path("/proc/self/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc")
def test_single_fields_are_copied_from_a_mapping_as_lmdb_itself_does(packed: Path, tmp_path: Path) -> None:
    if place_of(packed).kind not in ("local", "memory"):
        pytest.skip("over a network nothing is mapped")
    copied = shutil.copytree(packed, tmp_path / "mapped")
    dataset = pt.Dataset(copied)
    expected = expected_entries(packed)
    for number in range(len(dataset)):
        key = dataset.read([number], ["__key__"])[0]["__key__"]
        assert dataset.field(number, "jpg") == expected[f"{key}.jpg".encode()]
    assert str(container_of(copied) / "data.mdb") in mapped_files()

    # Other containers may be cut by whoever owns them: that must be an error, and not the end of the process.
    pt.pack(packed, tmp_path / "tar", format="webdataset", sync=False)
    other = pt.Dataset(tmp_path / "tar")
    other.field(0, "jpg")
    assert str(tmp_path / "tar" / other.shards[0].path) not in mapped_files()


# What py-lmdb writes


def write_by_py_lmdb(path: Path, entries: dict[bytes, bytes], **options: object) -> Path:
    with lmdb.open(str(path), map_size=1 << 30, **options) as env:
        for start in range(0, len(entries), 50):
            with env.begin(write=True) as txn:
                for key, value in list(entries.items())[start : start + 50]:
                    txn.put(key, value)
    return path


def by_name(dataset: pt.Dataset) -> dict[str, bytes]:
    return {
        f"{sample['__key__']}.{field}": value
        for sample in dataset
        for field, value in sample.items()
        if not field.startswith("__") and field != "cls"
    }


@pytest.mark.parametrize("subdir", [True, False])
@pytest.mark.parametrize("writemap", [True, False])
def test_we_read_what_py_lmdb_wrote(
    files: dict[str, bytes], subdir: bool, writemap: bool, tmp_path: Path, command: Command
) -> None:
    entries = {name.encode(): value for name, value in files.items()}
    path = write_by_py_lmdb(tmp_path / "set.lmdb", entries, subdir=subdir, writemap=writemap)
    assert by_name(pt.Dataset(path)) == files
    done = command("index", path)
    assert done.code == 0, done.error
    dataset = pt.Dataset(f"{path}.packtrain")
    assert by_name(dataset) == files
    assert dataset.classes == ["ant", "bee"]
    if subdir:
        assert by_name(pt.Dataset(path / "data.mdb")) == files


def test_after_many_changes_too(files: dict[str, bytes], tmp_path: Path) -> None:
    entries = {name.encode(): value for name, value in files.items()}
    path = write_by_py_lmdb(tmp_path / "set.lmdb", entries)
    rng = random.Random(1)
    with lmdb.open(str(path), map_size=1 << 30) as env:
        for _round in range(10):
            with env.begin(write=True) as txn:
                for key in rng.sample(sorted(entries), 25):
                    txn.delete(key)
                    del entries[key]
                for key in rng.sample(sorted(entries), 25):
                    entries[key] = rng.randbytes(rng.choice([5, 1000, 9000]))
                    txn.put(key, entries[key])
    assert by_name(pt.Dataset(path)) == {key.decode(): value for key, value in entries.items()}


def test_labels_and_keys_without_extension(tmp_path: Path) -> None:
    labelled = {b"a.jpg": b"\xff\xd8\xff1", b"a.cls": b"3", b"b.jpg": b"\xff\xd8\xff2", b"b.cls": b"0"}
    assert pt.Dataset(write_by_py_lmdb(tmp_path / "1.lmdb", labelled)).labels.tolist() == [3, 0]

    webp = b"RIFF\x24\0\0\0WEBPVP8 " + bytes(3000)
    plain = {f"{number:040x}".encode(): webp + bytes([number]) for number in range(100)}
    plain[b"__len__"] = b"100"
    dataset = pt.Dataset(write_by_py_lmdb(tmp_path / "2.lmdb", plain))
    assert dataset.fields == ["webp"]
    assert {s["__key__"].encode(): s["webp"] for s in dataset} | {b"__len__": b"100"} == plain

    binary = {number.to_bytes(4, "big"): bytes([number]) * number for number in range(1, 50)}
    dataset = pt.Dataset(write_by_py_lmdb(tmp_path / "3.lmdb", binary))
    assert {bytes.fromhex(s["__key__"]): s["data"] for s in dataset} == binary


def test_named_databases(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "one.lmdb"), max_dbs=4) as env:
        images = env.open_db(b"images")
        with env.begin(write=True, db=images) as txn:
            for number in range(1000):
                txn.put(f"{number}.txt".encode(), str(number).encode() * number)
    dataset = pt.Dataset(tmp_path / "one.lmdb")
    assert {s["__key__"]: s["txt"] for s in dataset} == {
        str(number): str(number).encode() * number for number in range(1000)
    }
    with lmdb.open(str(tmp_path / "one.lmdb"), max_dbs=4) as env:
        env.open_db(b"labels")
    with pytest.raises(pt.UnsupportedError, match="named database images"):
        pt.Dataset(tmp_path / "one.lmdb")


def test_several_values_for_a_key_are_refused(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "dup.lmdb"), max_dbs=1) as env:
        db = env.open_db(b"pairs", dupsort=True)
        with env.begin(write=True, db=db) as txn:
            txn.put(b"a", b"1")
            txn.put(b"a", b"2")
    with pytest.raises(pt.UnsupportedError, match="dupsort"):
        pt.Dataset(tmp_path / "dup.lmdb")


def test_an_empty_database_is_an_empty_dataset(tmp_path: Path) -> None:
    lmdb.open(str(tmp_path / "empty.lmdb")).close()
    assert len(pt.Dataset(tmp_path / "empty.lmdb")) == 0
