"""Archives that unpack to far more than they are."""

from __future__ import annotations

import resource
import subprocess
import sys
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


MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def peak_of(command: Command, *arguments: str | Path) -> int:
    """The most memory that the command had, in bytes.

    A process inherits that of the one that started it: a small one does so in place of the one that tests.
    """
    started = [sys.executable, "-c", MEASURE, command.path, *map(str, arguments)]
    return int(subprocess.run(started, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_memory_is_bounded_however_many_threads_unpack(command: Command, bomb: Path, tmp_path: Path) -> None:
    """Eight threads with one entry each would take a fourth more than they may."""
    peak = peak_of(command, "show", bomb, "-o", tmp_path / "page.html", "--jobs", "8", "--quiet")
    assert RAW < peak < LIMIT + RAW // 2


@pytest.mark.parametrize("target", ["webdataset", "arrow", "zip"])
def test_a_pack_that_runs_out_of_memory_says_so_and_ends(
    command: Command, bomb: Path, tmp_path: Path, target: str
) -> None:
    """Whichever thread it is: those that wait for it must not wait for ever."""

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (RAW * 2, RAW * 2))

    options = ["--format", target, "--jobs", "2", "--quiet"]
    if target == "zip":
        options += ["--compress", "deflate"]
    out = tmp_path / "out.pt"
    done = command("pack", bomb, out, *options, preexec_fn=little_memory)
    assert done.code == 3, done
    assert "memory" in done.last_line
    assert not out.exists()
