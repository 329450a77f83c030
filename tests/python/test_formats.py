"""Every container format that this build writes, through its whole path: pack, verify, load, extract.

A new format is tested here without a line of its own.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, without_log, write_tree

ARRAYS_ONLY = {"npy"}  # takes no photographs: test_arrays.py
FORMATS = sorted(set(pt.doctor().formats) - ARRAYS_ONLY)
SEED = 7


def stream_hash(path: Path, split: str) -> str:
    """Of keys, labels and bytes in the order in which a training run with one seed sees them."""
    dataset = pt.Dataset(path, split=split)
    loader = pt.Loader(dataset, batch_size=3, order="global", seed=SEED, fields=["jpg"], last="keep")
    hashed = hashlib.sha256()
    for _ in range(2):
        for batch in loader:
            for index, label, image in zip(batch["index"], batch["label"], batch["jpg"]):
                hashed.update(f"{dataset.keys[int(index)]} {int(label)} {len(image)} ".encode())
                hashed.update(bytes(image))
    return hashed.hexdigest()


@pytest.fixture(scope="module")
def in_every_format(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("formats")
    return {name: pack_as(name, photos, folder / f"{name}.pt") for name in FORMATS}


def pack_as(name: str, source: Path, out: Path) -> Path:
    pt.pack(source, out, format=name, sync=False)
    return out


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("split", ["train", "val"])
def test_one_seed_gives_one_stream_of_samples(
    name: str, split: str, in_every_format: dict[str, Path]
) -> None:
    assert stream_hash(in_every_format[name], split) == stream_hash(in_every_format["webdataset"], split)


@pytest.mark.parametrize("name", FORMATS)
def test_a_packed_set_is_sound_and_comes_out_as_it_went_in(
    name: str, photos: Path, in_every_format: dict[str, Path], tmp_path: Path, command: Command
) -> None:
    packed = in_every_format[name]
    checked = command("verify", packed)
    assert checked.code == 0, checked.error
    pt.extract(packed, tmp_path / "out")
    assert read_tree(tmp_path / "out") == read_tree(photos)


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_source_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", small_tree())
    first, second = (without_log(pack_as(name, tree, tmp_path / out)) for out in ("first.pt", "second.pt"))
    assert first == second


@pytest.mark.parametrize("name", FORMATS)
def test_any_number_of_jobs_and_tasks_gives_the_same_bytes(
    name: str, photos: Path, tmp_path: Path, command: Command
) -> None:
    shards = () if name == "hdf5-vlen" else ("--shards", "3")  # which is one file in all

    def start(out: str, *options: str) -> subprocess.Popen[str]:
        return command.start("pack", photos, tmp_path / out, "--format", name, *shards, *options)

    for run in (
        start("one", "--jobs", "1"),
        start("four", "--jobs", "4"),
        start("tasks", "--task", "0/2"),
        start("tasks", "--task", "1/2"),
    ):
        _, error = run.communicate(timeout=120)
        assert run.returncode == 0, error
    if not (tmp_path / "tasks").exists():  # both waited for the other's last shard in vain
        assert command("pack", photos, tmp_path / "tasks", "--format", name, *shards).code == 0
    expected = without_log(tmp_path / "one")
    assert without_log(tmp_path / "four") == expected
    assert without_log(tmp_path / "tasks") == expected


@pytest.mark.parametrize("name", FORMATS)
def test_samples_that_lack_fields_and_empty_ones_are_kept(
    name: str, tmp_path: Path, command: Command
) -> None:
    files = small_tree() | {"ant/empty.jpg": b"", "bee/empty.json": b""}
    packed = pack_as(name, write_tree(tmp_path / "tree", files), tmp_path / "out.pt")
    assert command("verify", packed).code == 0
    dataset = pt.Dataset(packed)
    assert [dict(dataset[i]) for i in range(len(dataset))]
    pt.extract(packed, tmp_path / "back")
    assert read_tree(tmp_path / "back") == files


@pytest.mark.parametrize("name", FORMATS)
def test_conversion_keeps_labels_classes_keys_splits_and_paths(
    name: str, photos: Path, in_every_format: dict[str, Path], tmp_path: Path
) -> None:
    again = pack_as("webdataset", in_every_format[name], tmp_path / "again.pt")
    before, after = pt.info(in_every_format["webdataset"]), pt.info(again)
    assert after.splits == before.splits
    assert after.classes == before.classes
    for split in ("train", "val"):
        old, new = pt.Dataset(in_every_format["webdataset"], split=split), pt.Dataset(again, split=split)
        assert sorted(zip(new.keys, new.labels.tolist())) == sorted(zip(old.keys, old.labels.tolist()))
    pt.extract(again, tmp_path / "out")
    assert read_tree(tmp_path / "out") == read_tree(photos)


@pytest.mark.parametrize("name", FORMATS)
def test_a_bare_container_becomes_a_dataset_in_place(
    name: str, in_every_format: dict[str, Path], tmp_path: Path, command: Command
) -> None:
    """What other programs wrote has no manifest: only the container itself says what is in it."""
    packed = in_every_format[name]
    shard = pt.Dataset(packed).shards[0].path
    container = packed / shard.split("/")[0]
    made = command("index", container, "--out", tmp_path / "bare.packtrain")
    assert made.code == 0, made.error
    bare = pt.Dataset(tmp_path / "bare.packtrain")
    whole = pt.Dataset(packed)
    images = {bytes(whole.read([i])[0]["jpg"]): int(whole.labels[i]) for i in range(len(whole))}
    assert len(bare) > 0
    for i in range(len(bare)):
        assert images[bytes(bare.read([i])[0]["jpg"])] == int(bare.labels[i])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("count", "size"), [(1500, 2_000), (200, 50_000)], ids=["small", "large"])
def test_an_index_does_not_depend_on_what_is_in_memory(
    name: str, count: int, size: int, tmp_path: Path
) -> None:
    """Heads are looked at in a mapping, read one by one or front to back: as is quickest just then."""
    numbers = random.Random(size)
    tree = {f"{i % 3}/{i:05}.bin": numbers.randbytes(size + i % 91) for i in range(count)}
    packed = pack_as(name, write_tree(tmp_path / "tree", tree), tmp_path / "out.pt")
    container = packed / pt.Dataset(packed).shards[0].path.split("/")[0]
    found = []
    for part in (0, 1, 2):  # of it is in memory: all, every other megabyte, nothing
        for path in [container, *container.rglob("*")]:
            if path.is_file():
                forget(path, part)
        pt.index(container, out=tmp_path / f"index-{part}")
        found.append(read_tree(tmp_path / f"index-{part}"))
    assert found[0].keys() == found[1].keys()
    assert found[0] == found[1] == found[2]


def forget(path: Path, part: int) -> None:
    path.read_bytes()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        for at in range(0, path.stat().st_size if part else 0, (3 - part) << 20):
            os.posix_fadvise(file.fileno(), at, 1 << 20, os.POSIX_FADV_DONTNEED)


@pytest.mark.parametrize("name", FORMATS)
def test_a_truncated_or_flipped_container_is_found_out(
    name: str, in_every_format: dict[str, Path], tmp_path: Path, command: Command
) -> None:
    packed = in_every_format[name]
    files = read_tree(packed)
    shard = pt.Dataset(packed).shards[0].path
    data = files[shard]
    middle = len(data) // 2
    for damaged in (data[:middle], data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]):
        copy = write_tree(tmp_path / f"damaged-{len(damaged)}.pt", files | {shard: damaged})
        checked = command("verify", copy)
        assert checked.code == 1, checked.error
        assert shard in checked.out + checked.error


@pytest.mark.parametrize("name", FORMATS)
def test_label_files_of_the_user_come_back(name: str, tmp_path: Path) -> None:
    files = {"a.cls": b"1", "a.txt": b"x", "b.cls": b"2", "b.txt": b"y"}
    packed = pack_as(name, write_tree(tmp_path / "tree", files), tmp_path / "out.pt")
    assert sorted(pt.Dataset(packed).labels.tolist()) == [1, 2]
    pt.extract(packed, tmp_path / "back")
    assert read_tree(tmp_path / "back") == files


@pytest.mark.parametrize("name", FORMATS)
def test_rows_that_hold_nothing_are_left_out_and_told(name: str, tmp_path: Path, command: Command) -> None:
    arrow = pytest.importorskip("pyarrow")
    for rows in ([None, "a", "b"], ["a", None, "b"]):
        source, out = tmp_path / "rows.arrow", tmp_path / f"{rows.index(None)}.pt"
        table = arrow.table({"txt": rows})
        with arrow.ipc.new_file(str(source), table.schema) as writer:
            writer.write_table(table)
        packed = command("pack", source, out, "--format", name, "--order", "source")
        assert packed.code == 0, packed.error
        assert "1 sample of" in packed.out + packed.error
        assert command("verify", out).code == 0
        dataset = pt.Dataset(out)
        assert [dataset[i]["txt"] for i in range(len(dataset))] == [b"a", b"b"]


def test_a_table_of_nothing_is_refused(tmp_path: Path, command: Command) -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"txt": arrow.array([None, None], arrow.string())})
    with arrow.ipc.new_file(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table)
    packed = command("pack", tmp_path / "rows.arrow", tmp_path / "out.pt")
    assert packed.code == 2
    assert "none has a field or a label" in packed.last_line


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("extension", ["JPEG", "png", "tiff"])
def test_an_image_may_have_another_name_than_its_content_says(
    name: str, extension: str, photos: Path, tmp_path: Path
) -> None:
    files = {
        f"{path.parent.name}/{path.stem}.{extension}": path.read_bytes()
        for path in sorted(photos.glob("val/*/*.jpg"))
    }
    pt.pack(write_tree(tmp_path / "photos", files), tmp_path / "out", format=name, sync=False)
    assert pt.verify(tmp_path / "out").ok
    pt.extract(tmp_path / "out", tmp_path / "back")
    assert read_tree(tmp_path / "back") == files
