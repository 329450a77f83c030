"""Packing a million tiny files against a hundred thousand: time in proportion, memory within its bound."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from harness.bench import BACKENDS, Bench, Figure
from harness.measure import Series
from harness.outcome import Comparison, Outcome, Reading
from harness.packing import file_name, pack, tar, zeros

FEW, MANY = 100_000, 1_000_000
FILES_IN_FOLDER = 1000
TOLERANCE = 0.2
BYTES_PER_FILE = 200
MEMORY = Path("/dev/shm")
MEGABYTES_OF_TAR = {FEW: 205, MANY: 2050}  # a kilobyte for each file and its label


def tiny_tree(bench: Bench, files: int) -> Path:
    folder = bench.workloads.data / f"tiny-{files}"
    if not folder.exists():
        part = folder.with_name(folder.name + ".making")
        for number in range(files):
            below = part / f"{number // FILES_IN_FOLDER:04d}"
            if number % FILES_IN_FOLDER == 0:
                below.mkdir(parents=True, exist_ok=True)
            (below / f"{number:07d}.txt").write_text(str(number))
        part.rename(folder)
    return folder


def growth(few: Series, many: Series) -> float:
    """Of the time a file."""
    return many.median / few.median / (MANY / FEW)


def zeros_in_words(files: int, place: str) -> str:
    return f"{MEGABYTES_OF_TAR[files]} MB of zeros, {place}"


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    trees = {files: tiny_tree(bench, files) for files in (FEW, MANY)}
    bench.workloads.described["tiny files"] = (
        f"{FEW:,} and {MANY:,} files of 5 bytes, {FILES_IN_FOLDER} a folder"
    )
    outcome.notes.append("bytes a file: what each further file adds to the most memory that packing takes")
    with tempfile.TemporaryDirectory(prefix="packtrain-bench-", dir=MEMORY) as memory:
        places = {"disk": bench.workloads.data / "out", "memory": Path(memory)}
        contenders = []
        for place, folder in places.items():
            for backend in BACKENDS:
                for files, tree in trees.items():
                    name = f"{files:,} files, {backend}, {place}"
                    out = folder / file_name(name)
                    contender = pack(bench, name, tree, backend, "--jobs", "1", out=out, rest=True)
                    contender.watch_memory = place == "disk"
                    contenders.append(contender)
            contenders += [
                zeros(bench, zeros_in_words(files, place), megabytes, rest=True, folder=folder)
                for files, megabytes in MEGABYTES_OF_TAR.items()
            ]
        contenders += [
            tar(bench, f"tar of {files:,} files", tree, sync=False, rest=True)
            for files, tree in trees.items()
        ]
        series = bench.take_turns(contenders)
    tars = {files: series[f"tar of {files:,} files"] for files in trees}
    tar_growth = growth(tars[FEW], tars[MANY])
    outcome.readings.append(Reading("time a file of GNU tar at 10^6 against 10^5", tar_growth, "×"))
    outcome.notes += [
        "tar packs the same trees in the same rounds: what grows for it too is the filesystem",
        "dd writes as many zeros as the shards have bytes, in the same rounds. Every run starts when free "
        "memory has rested for some seconds: the host of a virtual machine takes it back meanwhile, which "
        "a short run would not notice and a long one would pay for",
        "into memory (tmpfs) no disk takes part: what is left is what packtrain does",
    ]
    for place in places:
        few_zeros, many_zeros = (series[zeros_in_words(files, place)] for files in (FEW, MANY))
        outcome.readings.append(
            Reading(f"time a byte of dd at 2 GB against 0.2 GB, {place}", growth(few_zeros, many_zeros), "×")
        )
        for backend in BACKENDS:
            what = f"{backend}, {place}"
            few, many = series[f"{FEW:,} files, {what}"], series[f"{MANY:,} files, {what}"]
            own = (many.median - many_zeros.median) / (few.median - few_zeros.median) / (MANY / FEW)
            outcome.comparisons += [
                Comparison(f"10^5 against 10^6, {what}", few, many),
                Comparison(f"{FEW:,} files, {what}, against tar", few, tars[FEW]),
                Comparison(f"{MANY:,} files, {what}, against tar", many, tars[MANY]),
            ]
            outcome.readings += [
                Reading(
                    f"time a file at 10^6 against 10^5, {what}",
                    growth(few, many),
                    "×",
                    at_least=1 - TOLERANCE,
                    at_most=1 + TOLERANCE,
                    reason="see tar and dd, which read and write as much beside it",
                ),
                Reading(f"the same without what dd takes for as many bytes, {what}", own, "×"),
            ]
            if place != "disk":
                continue
            added = statistics.median(many.peak_bytes) - statistics.median(few.peak_bytes)
            outcome.readings += [
                Reading(
                    f"memory, {backend}",
                    added / (MANY - FEW),
                    "bytes a file",
                    at_most=BYTES_PER_FILE,
                    reason="the plan takes about 90, and the index that is made of it as much",
                ),
                Reading(f"most memory at 10^6 files, {backend}", max(many.peak_bytes) / 1e6, "MB"),
            ]
    return outcome


FIGURE = Figure(
    "pack-million",
    "Does packing a million tiny files take ten times the time of a hundred thousand, and how much memory?",
    measure,
    rounds=3,
)
