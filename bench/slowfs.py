"""Mounts bench/slowfs.cc for as long as a `with` block lasts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOUNT_SECONDS = 10


@dataclass(frozen=True)
class Knobs:
    """What the filesystem does to its callers; slowfs.cc says it in full. 0 is off."""

    metadata_ms: float = 0
    read_ms: float = 0
    rate: int = 0  # bytes a second
    no_space_after: int = 0  # bytes
    fail_every: int = 0  # files opened
    flip_every: int = 0  # reads
    no_allocate: bool = False

    def options(self) -> list[str]:
        words: list[str] = []
        for name, value in vars(self).items():
            flag = "--" + name.replace("_", "-")
            if value is True:
                words.append(flag)
            elif value:
                words += [flag, str(value)]
        return words


@dataclass(frozen=True)
class Counters:
    metadata_calls: int
    listings: int  # of folders; metadata calls too
    opens: int
    reads: int
    bytes_read: int
    writes: int
    bytes_written: int

    def __sub__(self, earlier: Counters) -> Counters:
        return Counters(**{name: value - getattr(earlier, name) for name, value in vars(self).items()})


class Mount:
    """A mounted slowfs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def counters(self) -> Counters:
        lines = (self.path / ".slowfs").read_text().split()
        return Counters(**{name: int(value) for name, value in (line.split("=") for line in lines)})


def program() -> Path:
    """The built slowfs: $PACKTRAIN_SLOWFS, else that of the dev build."""
    return Path(os.environ.get("PACKTRAIN_SLOWFS", ROOT / "build" / "dev" / "bench" / "slowfs"))


def trouble() -> str:
    """Why slowfs cannot be mounted here, or nothing."""
    if not program().exists():
        return f"{program()} is not built (libfuse3 is absent, or ./dev build was not run)"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened"
    if shutil.which("fusermount3") is None:
        return "fusermount3 is not installed"
    return ""


@contextmanager
def mounted(source: Path, mount: Path, knobs: Knobs) -> Iterator[Mount]:
    """`source` seen at `mount`, an empty folder that is made if need be, through `knobs`."""
    mount.mkdir(parents=True, exist_ok=True)
    device = mount.stat().st_dev
    server = subprocess.Popen(
        [str(program()), str(source), str(mount), *knobs.options()], stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + MOUNT_SECONDS
        while mount.stat().st_dev == device:
            if server.poll() is not None or time.monotonic() > deadline:
                server.kill()
                _, said = server.communicate()
                raise RuntimeError(f"slowfs did not mount {source} at {mount}: {said.strip()}")
            time.sleep(0.01)
        yield Mount(mount)
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                server.communicate(timeout=MOUNT_SECONDS)
            except subprocess.TimeoutExpired:  # somebody still has a file open there
                subprocess.run(["fusermount3", "-u", "-z", str(mount)], check=False)
                server.kill()
                server.communicate()
