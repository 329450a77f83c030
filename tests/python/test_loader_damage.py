"""Loader: files that change under it, and machines with no room. Never a crash, never another's pixels."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest

IMAGE = pt.CenterCrop(24, 32)


def pixels(folder: Path) -> dict[int, bytes]:
    """What each sample of a sound dataset becomes."""
    found: dict[int, bytes] = {}
    for batch in pt.Loader(folder, split="train", batch_size=4, image=IMAGE):
        for index, image in zip(batch["index"].tolist(), batch["image"]):
            found[index] = image.tobytes()
    return found


def first_shard(folder: Path) -> Path:
    return min(folder.glob("train-*.tar"))


def shorten(shard: Path) -> None:
    os.truncate(shard, shard.stat().st_size // 3)


def delete(shard: Path) -> None:
    shard.unlink()


def overwrite(shard: Path) -> None:
    """In place, as a careless `cp` over it would: same file, same length, other bytes."""
    with shard.open("r+b") as file:
        file.write(np.random.default_rng(0).bytes(shard.stat().st_size))


def put_another_in_its_place(shard: Path) -> None:
    other = shard.with_suffix(".other")
    other.write_bytes(bytes(reversed(shard.read_bytes())))
    other.replace(shard)


CHANGES = [shorten, delete, overwrite, put_another_in_its_place]


@pytest.mark.parametrize("order", ["global", "streams"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_shard_that_changes_while_loading(
    copy: Path, packed: Path, change: Callable[[Path], None], order: str
) -> None:
    """A shard that the loader has open may still give its old bytes; whatever comes, comes whole and true."""
    expected = pixels(packed)
    lenient = pt.Loader(
        copy, split="train", batch_size=4, image=IMAGE, order=order, on_error="skip", max_errors=1000
    )
    running = iter(lenient)
    next(running)
    change(first_shard(copy))
    for batch in running:
        for index, image in zip(batch["index"].tolist(), batch["image"]):
            assert image.tobytes() == expected[index]
    for batch in lenient:  # and in an epoch that began after it
        for index, image in zip(batch["index"].tolist(), batch["image"]):
            assert image.tobytes() == expected[index]
    for bad in lenient.report().bad:
        assert bad.index in expected
    with pytest.raises((pt.CorruptError, pt.StorageError, pt.NotFoundError)) as raised:
        list(pt.Loader(copy, split="train", batch_size=4, image=IMAGE, order=order))
    assert first_shard(packed).name in str(raised.value)


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_changed_shard_holds_is_skipped_and_the_rest_comes(
    copy: Path, packed: Path, change: Callable[[Path], None]
) -> None:
    expected = pixels(packed)
    change(first_shard(copy))
    loader = pt.Loader(copy, split="train", batch_size=4, image=IMAGE, on_error="skip", max_errors=1000)
    found = {
        index: image.tobytes()
        for batch in loader
        for index, image in zip(batch["index"].tolist(), batch["image"])
    }
    assert 0 < len(found) < len(expected)
    assert all(expected[index] == image for index, image in found.items())
    assert loader.report().errors == len(expected) - len(found)


@pytest.mark.parametrize("change", [shorten, delete])
def test_samples_that_are_gone_count_against_max_errors(copy: Path, change: Callable[[Path], None]) -> None:
    change(first_shard(copy))
    loader = pt.Loader(copy, split="train", batch_size=4, image=IMAGE, on_error="skip", max_errors=2)
    with pytest.raises(pt.Error, match="max_errors"):
        list(loader)


def test_no_samples(tmp_path: Path) -> None:
    """A dataset of which nothing is left to load has no batches, and that is no error."""
    pt.synth(tmp_path / "photos", samples=8, classes=2)
    pt.pack(tmp_path / "photos", tmp_path / "photos.pt")
    with pytest.warns(UserWarning, match="chooses no sample"):
        loader = pt.Loader(tmp_path / "photos.pt", batch_size=4, image=IMAGE, indices=[])
    assert len(loader) == 0
    assert list(loader) == []


PROGRAM = """
import sys
import packtrain as pt
try:
    loader = pt.Loader(sys.argv[1], split="train", batch_size=int(sys.argv[2]), image=pt.CenterCrop(224, 256))
    print(sum(len(batch["index"]) for batch in loader), flush=True)
    if "wait" in sys.argv:
        iterator = iter(loader)
        next(iterator)
        print("loading", flush=True)
        sys.stdin.read()
except pt.NoRoomError as error:
    print("no room:", error)
"""


def test_a_full_shared_memory_filesystem_is_no_obstacle(packed: Path) -> None:
    """Batches live in the process's own memory. (Worker processes of others fail here with a bus error.)"""
    script = """
mount -t tmpfs -o size=64k none /dev/shm || exit 77
head -c 1000000 /dev/zero > /dev/shm/full 2>/dev/null
[ "$(stat -f -c %a /dev/shm)" = 0 ] || exit 78
exec "$@"
"""
    inner = [sys.executable, "-c", PROGRAM, str(packed), "6"]
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *inner],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting needs more rights than this process has")
    assert (done.returncode, done.stdout, done.stderr) == (0, "36\n", "")


@pytest.fixture
def small_memory_group() -> Path:
    """A control group of 96 MB; gone with the processes in it."""
    for base, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = base / f"packtrain-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(96 << 20))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        return group
    pytest.skip("no control group can be made here")


def test_a_group_with_too_little_memory_is_told_at_the_start(packed: Path, small_memory_group: Path) -> None:
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    try:
        done = {
            batch: subprocess.run(
                [
                    "sh",
                    "-c",
                    script,
                    str(small_memory_group),
                    sys.executable,
                    "-c",
                    PROGRAM,
                    str(packed),
                    batch,
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            for batch in ("2", "128")
        }
    finally:
        small_memory_group.rmdir()
    for one in done.values():
        assert (one.returncode, one.stderr) == (0, "")
    assert "no room: " in done["128"].stdout
    assert "choose a smaller batch" in done["128"].stdout


def test_nothing_is_left_behind_by_a_killed_loader(packed: Path, tmp_path: Path) -> None:
    def seen() -> set[str]:
        return {str(path) for folder in ("/dev/shm", tmp_path) for path in Path(folder).iterdir()}

    before = seen()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(packed), "4", "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "36\n"
    assert process.stdout.readline() == "loading\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert {path for path in seen() if "packtrain" in path or str(tmp_path) in path} <= before


ASKING = """
import sys
import packtrain as pt

for memory, batch_size in ((640_000_000, 4), (640_000_000, 10_000), (30_000_000, 4)):
    try:
        loader = pt.Loader(sys.argv[1], split="train", batch_size=batch_size, fields=["jpg"], memory=memory)
        print(sum(1 for _ in loader))
    except pt.NoRoomError as error:
        print(error)
"""


def test_more_memory_than_the_group_has_is_refused_at_the_start(
    packed: Path, small_memory_group: Path
) -> None:
    """And what is advised instead is never more than the group has."""
    script = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    inner = [sys.executable, "-c", ASKING, str(packed)]
    try:
        done = subprocess.run(
            ["sh", "-c", script, str(small_memory_group), *inner], capture_output=True, text=True, check=False
        )
    finally:
        small_memory_group.rmdir()
    assert (done.returncode, done.stderr) == (0, "")
    beyond, too_large, loaded = done.stdout.splitlines()
    assert "memory=640000000 is more than the " in beyond
    assert f"of /{small_memory_group.name}" in beyond
    assert int(beyond.partition("give at most memory=")[2].partition(",")[0]) < 96 << 20
    assert "choose a smaller batch or prefetch, or ask for more memory for the job" in too_large
    assert "raise memory=" not in too_large
    assert loaded == "9"
