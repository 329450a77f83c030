"""Archives that unpack to far more than they are."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from helpers import Command

ENTRIES = 64
RAW = 160 << 20  # of one entry; zeros, of which a zip keeps a thousandth
LIMIT = 1 << 30  # of what is large, in all threads together


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bomb") / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("0.bin", "w", force_zip64=False) as entry:
            for _ in range(RAW >> 20):
                entry.write(bytes(1 << 20))
        first = archive.getinfo("0.bin")
        archive.fp.flush()  # type: ignore[union-attr]
        stored = path.read_bytes()[first.header_offset + 30 + len(first.filename) :][: first.compress_size]
        for number in range(1, ENTRIES):  # the same stream again, without deflating it again
            info = zipfile.ZipInfo(f"{number}.bin")
            info.compress_type, info.CRC = zipfile.ZIP_DEFLATED, first.CRC
            info.compress_size, info.file_size = len(stored), RAW
            info.header_offset = archive.fp.tell()  # type: ignore[union-attr]
            archive.fp.write(info.FileHeader() + stored)  # type: ignore[union-attr]
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
            archive.start_dir = archive.fp.tell()  # type: ignore[union-attr]
    assert path.stat().st_size < RAW // 10
    return path


def peak_of(command: Command, *arguments: str | Path) -> int:
    """The most memory that the command had, in bytes."""
    running = subprocess.Popen([command.path, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return usage.ru_maxrss * 1024


@pytest.mark.slow
def test_memory_is_bounded_however_many_threads_unpack(command: Command, bomb: Path, tmp_path: Path) -> None:
    """Eight threads with one entry each would take a fourth more than they may."""
    peak = peak_of(command, "show", bomb, "-o", tmp_path / "page.html", "--jobs", "8", "--quiet")
    assert RAW < peak < LIMIT + RAW // 2
