"""Contenders that write a dataset or an archive; what they wrote is removed before each round."""

from __future__ import annotations

import os
import time
from pathlib import Path

from harness.bench import Bench, with_backend
from harness.measure import Contender
from harness.workloads import remove, touch

# The host of a virtual machine takes back memory that lies free for a second or two, and writing to such a
# page costs five to seven times as much. Runs of different length are only alike if all of them start then.
REST_SECONDS = 4.0
# More than any contender writes that wants memory the host has given just now.
FRESH_MEGABYTES = 1024


def clear(path: Path, *, rest: bool = False, fresh: bool = False, source: Path | None = None) -> None:
    """Nothing of an earlier round is left, nor waiting to be written; `rest`: nor is free memory fresh, while
    all of the source is in memory; `fresh`: free memory was in use until now."""
    remove(path)
    remove(path.with_name(path.name + ".part"))
    os.sync()
    if rest:
        time.sleep(REST_SECONDS)
        if source:
            touch(source)
    if fresh:
        filler = path.with_name(path.name + ".filler")
        with filler.open("wb") as file:
            for _ in range(FRESH_MEGABYTES):
                file.write(bytes(1 << 20))
        filler.unlink()


def file_name(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def pack(
    bench: Bench,
    name: str,
    tree: Path,
    backend: str,
    *options: str,
    out: Path | None = None,
    rest: bool = False,
    fresh: bool = False,
) -> Contender:
    target = out or bench.workloads.scratch(file_name(name))
    return Contender(
        name,
        [bench.packtrain, "pack", tree, target, "--quiet", *options],
        environment=with_backend(backend),
        before=lambda: clear(target, rest=rest, fresh=fresh, source=tree),
        after=lambda: remove(target),
    )


def zeros(bench: Bench, name: str, megabytes: int, *, folder: Path, rest: bool = False) -> Contender:
    """What it costs to write so many bytes into the page cache, and nothing else."""
    target = folder / (file_name(name) + ".zeros")
    return Contender(
        name,
        ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={megabytes}", "status=none"],
        before=lambda: clear(target, rest=rest),
        after=lambda: remove(target),
    )


def tar(bench: Bench, name: str, tree: Path, *, sync: bool, rest: bool = False) -> Contender:
    target = bench.workloads.scratch(file_name(name) + ".tar")
    script = 'tar cf "$1" -C "$0" . && sync "$1"' if sync else 'tar cf "$1" -C "$0" .'
    return Contender(
        name,
        ["sh", "-c", script, tree, target],
        before=lambda: clear(target, rest=rest, source=tree),
        after=lambda: remove(target),
    )
