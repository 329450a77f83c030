"""Contenders that write a dataset or an archive; what they wrote is removed before each round."""

from __future__ import annotations

import os
from pathlib import Path

from harness.bench import Bench, with_backend
from harness.measure import Contender
from harness.workloads import remove


def clear(path: Path) -> None:
    """Nothing of an earlier round is left, nor waiting to be written."""
    remove(path)
    remove(path.with_name(path.name + ".part"))
    os.sync()


def file_name(name: str) -> str:
    return name.replace(",", "").replace(" ", "-")


def pack(
    bench: Bench, name: str, tree: Path, backend: str, *options: str, out: Path | None = None
) -> Contender:
    target = out or bench.workloads.scratch(file_name(name))
    return Contender(
        name,
        [bench.packtrain, "pack", tree, target, "--quiet", *options],
        environment=with_backend(backend),
        before=lambda: clear(target),
        after=lambda: remove(target),
    )


def zeros(bench: Bench, name: str, megabytes: int) -> Contender:
    """What it costs to write so many bytes into the page cache, and nothing else."""
    target = bench.workloads.scratch(file_name(name) + ".zeros")
    return Contender(
        name,
        ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={megabytes}", "status=none"],
        before=lambda: clear(target),
        after=lambda: remove(target),
    )


def tar(bench: Bench, name: str, tree: Path, *, sync: bool) -> Contender:
    target = bench.workloads.scratch(file_name(name) + ".tar")
    script = 'tar cf "$1" -C "$0" . && sync "$1"' if sync else 'tar cf "$1" -C "$0" .'
    return Contender(
        name, ["sh", "-c", script, tree, target], before=lambda: clear(target), after=lambda: remove(target)
    )
