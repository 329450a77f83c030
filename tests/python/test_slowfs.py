"""The slow filesystem that figures and tests stand on does what its knobs say, and no more."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import slowfs

pytestmark = pytest.mark.skipif(bool(slowfs.trouble()), reason=slowfs.trouble() or "slowfs works")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "cats").mkdir(parents=True)
    for i in range(20):
        (folder / "cats" / f"{i}.bin").write_bytes(bytes([i]) * 1000)
    return folder


def test_without_knobs_it_is_the_source(source: Path, tmp_path: Path) -> None:
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs()) as mount:
        cats = mount.path / "cats"
        assert [p.name for p in mount.path.iterdir()] == ["cats"]
        assert {p.name: p.read_bytes() for p in cats.iterdir()} == {
            p.name: p.read_bytes() for p in (source / "cats").iterdir()
        }
        (cats / "new").write_bytes(b"new")
        (cats / "new").rename(cats / "newer")
        os.link(cats / "newer", cats / "second")
        (cats / "0.bin").unlink()
    assert (source / "cats" / "newer").read_bytes() == b"new"
    assert (source / "cats" / "second").samefile(source / "cats" / "newer")
    assert not (source / "cats" / "0.bin").exists()


def test_a_stat_costs_one_metadata_call_and_an_open_two(source: Path, tmp_path: Path) -> None:
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs()) as mount:
        file = mount.path / "cats" / "7.bin"
        before = mount.counters()
        file.stat()
        assert (mount.counters() - before).metadata_calls == 1
        before = mount.counters()
        descriptor = os.open(file, os.O_RDONLY)
        os.fstat(descriptor)  # its attributes came with the open
        os.close(descriptor)
        assert (mount.counters() - before).metadata_calls == 2
        before = mount.counters()
        (mount.path / "cats").stat()
        assert (mount.counters() - before).metadata_calls == 0


def test_delays_of_many_callers_overlap(source: Path, tmp_path: Path) -> None:
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs(metadata_ms=50)) as mount:
        files = [mount.path / "cats" / f"{i}.bin" for i in range(20)]
        begun = time.perf_counter()
        files[0].stat()
        alone = time.perf_counter() - begun
        begun = time.perf_counter()
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(Path.stat, files))
        together = time.perf_counter() - begun
    assert alone >= 0.05
    assert together < 10 * 0.05


def test_bytes_come_at_the_given_rate(source: Path, tmp_path: Path) -> None:
    (source / "large").write_bytes(bytes(2_000_000))
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs(rate=10_000_000)) as mount:
        begun = time.perf_counter()
        (mount.path / "large").read_bytes()
        assert time.perf_counter() - begun >= 0.15


def test_every_second_file_cannot_be_read(source: Path, tmp_path: Path) -> None:
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs(fail_every=2)) as mount:
        assert (mount.path / "cats" / "1.bin").read_bytes() == bytes([1]) * 1000
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            (mount.path / "cats" / "2.bin").read_bytes()


def test_every_second_read_has_one_bit_flipped(source: Path, tmp_path: Path) -> None:
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs(flip_every=2)) as mount:
        assert (mount.path / "cats" / "1.bin").read_bytes() == bytes([1]) * 1000
        flipped = (mount.path / "cats" / "2.bin").read_bytes()
    differing = [a ^ b for a, b in zip(flipped, bytes([2]) * 1000) if a != b]
    assert differing == [1]


def test_writing_fails_when_the_room_is_used_up(source: Path, tmp_path: Path) -> None:
    with slowfs.mounted(source, tmp_path / "m", slowfs.Knobs(no_space_after=5000, no_allocate=True)) as mount:
        (mount.path / "small").write_bytes(bytes(4000))
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            (mount.path / "large").write_bytes(bytes(4000))
        allocated = subprocess.run(
            ["fallocate", "-l", "4000", mount.path / "new"], capture_output=True, text=True
        )
        assert os.strerror(errno.EOPNOTSUPP) in allocated.stderr
