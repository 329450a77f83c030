"""Indexing an existing container against reading it once, and for ten times the samples."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.bench import Bench, Figure
from harness.measure import Contender
from harness.outcome import Comparison, Outcome, Reading
from harness.workloads import COUNTS, PHOTOS, RECORDINGS, evict, remove, warm

from figures.format_reads import writable
from figures.pack_million import tiny_tree

HALF = 2.0  # times as fast as cat
TINY = (100_000, 1_000_000)
LINEAR = 12.0  # ten times, and a fifth
TIMES = 10  # as many photos: a container as large as those that are worth making
# Without a directory the container must be walked.
WALKED = ("webdataset",)


def container_of(folder: Path) -> Path:
    shards = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix not in (".json",) and path.name not in ("index.npz", "names.npz")
    ]
    return shards[0]


def containers_of(tree: Path) -> Path:
    return tree.with_name(tree.name + "-whole")


def packed(bench: Bench, tree: Path, name: str) -> Path:
    folder = containers_of(tree)
    folder.mkdir(exist_ok=True)
    out = folder / f"{name}.pt"
    if not out.exists():
        options = ["--format", name, "--order", "source", "--shards", "1", "--quiet"]
        subprocess.run([bench.packtrain, "pack", tree, out, *options], check=True, stdout=subprocess.DEVNULL)
    warm(out)
    return container_of(out)


def indexing(bench: Bench, label: str, container: Path, *, cold: bool = False) -> Contender:
    out = bench.workloads.scratch(f"index-{label.replace(' ', '-').replace(',', '')}")

    def before() -> None:
        remove(out)
        if cold:
            evict(container)

    return Contender(
        label,
        [bench.packtrain, "index", container, "--out", out, "--quiet"],
        before=before,
        after=lambda: remove(out),
    )


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes += [
        "packtrain is timed from its start to the index on disk",
        "memory: the file is in memory, as it is right after it was written; disk: none of it is",
    ]
    compare_large(bench, outcome)
    for workload in (PHOTOS, RECORDINGS):
        tree = bench.workloads.tree(workload)
        for name in writable(bench):
            container = packed(bench, tree, name)
            command = ["sh", "-c", 'cat "$@" > /dev/null', "cat", *files(container)]
            target = None if name in WALKED else HALF
            for place in ("memory", "disk"):  # the cold ones come last, and leave the file to be read again
                what = f"{name}, {workload}, {place}"
                cold = place == "disk"
                cat = Contender(
                    f"cat, {what}", command, before=(lambda path=container: evict(path)) if cold else no_step
                )
                index = indexing(bench, f"index, {what}", container, cold=cold)
                series = bench.take_turns([cat, index])
                outcome.comparisons.append(
                    Comparison(what, series[index.name], series[cat.name], None if cold else target)
                )
    for name in writable(bench):
        seconds = []
        for count in TINY:
            container = packed(bench, tiny_tree(bench, count), name)
            index = indexing(bench, f"index, {name}, {count} tiny", container)
            seconds.append(bench.take_turns([index])[index.name].median)
        outcome.readings.append(
            Reading(
                f"{name}: {TINY[1]:,} samples against {TINY[0]:,}",
                seconds[1] / seconds[0],
                "×",
                at_most=LINEAR,
            )
        )
    return outcome


def compare_large(bench: Bench, outcome: Outcome) -> None:
    """Of small containers, the start of the process and the wait for the disk are most of the time."""
    tree = bench.workloads.tree(PHOTOS, TIMES * COUNTS[PHOTOS])
    outcome.notes.append(f"{PHOTOS} × {TIMES}: so many more photos, packed for this figure and removed again")
    for name in writable(bench):
        container = packed(bench, tree, name)
        what = f"{name}, {PHOTOS} × {TIMES}, memory"
        cat = Contender(f"cat, {what}", ["sh", "-c", 'cat "$@" > /dev/null', "cat", *files(container)])
        index = indexing(bench, f"index, {what}", container)
        series = bench.take_turns([cat, index])
        outcome.comparisons.append(
            Comparison(what, series[index.name], series[cat.name], None if name in WALKED else HALF)
        )
        remove(containers_of(tree))


def no_step() -> None:
    """Nothing is to be done."""


def files(container: Path) -> list[Path]:
    return [container] if container.is_file() else [path for path in container.rglob("*") if path.is_file()]


FIGURE = Figure(
    "format-index",
    "How long does it take to index a container, against reading it once, and for ten times the samples?",
    measure,
    rounds=3,
)
