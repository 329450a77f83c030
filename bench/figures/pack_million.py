"""Packing a million tiny files against a hundred thousand: time in proportion, memory within its bound."""

from __future__ import annotations

import statistics
from pathlib import Path

from harness.bench import BACKENDS, Bench, Figure
from harness.outcome import Comparison, Outcome, Reading
from harness.packing import pack, tar, zeros

FEW, MANY = 100_000, 1_000_000
FILES_IN_FOLDER = 1000
TOLERANCE = 0.2
BYTES_PER_FILE = 200
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


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    trees = {files: tiny_tree(bench, files) for files in (FEW, MANY)}
    bench.workloads.described["tiny files"] = (
        f"{FEW:,} and {MANY:,} files of 5 bytes, {FILES_IN_FOLDER} a folder"
    )
    outcome.notes.append("bytes a file: what each further file adds to the most memory that packing takes")
    contenders = []
    for backend in BACKENDS:
        for files, tree in trees.items():
            contender = pack(bench, f"{files:,} files, {backend}", tree, backend, "--jobs", "1", rest=True)
            contender.watch_memory = True
            contenders.append(contender)
    contenders += [
        zeros(bench, f"{megabytes} MB of zeros", megabytes, rest=True)
        for megabytes in MEGABYTES_OF_TAR.values()
    ]
    contenders += [
        tar(bench, f"tar of {files:,} files", tree, sync=False, rest=True) for files, tree in trees.items()
    ]
    series = bench.take_turns(contenders)
    tars = {files: series[f"tar of {files:,} files"] for files in trees}
    tar_growth = tars[MANY].median / tars[FEW].median / (MANY / FEW)
    outcome.readings.append(Reading("time a file of GNU tar at 10^6 against 10^5", tar_growth, "×"))
    outcome.notes.append(
        "tar packs the same trees in the same rounds: what grows for it too is the filesystem"
    )
    few_zeros, many_zeros = (
        series[f"{megabytes} MB of zeros"].median for megabytes in MEGABYTES_OF_TAR.values()
    )
    outcome.readings.append(
        Reading("time a byte of dd at 2 GB against 0.2 GB", many_zeros / few_zeros / (MANY / FEW), "×")
    )
    outcome.notes.append(
        "dd writes as many zeros as the shards have bytes, in the same rounds. Every run starts when free "
        "memory has rested for some seconds: the host of a virtual machine takes it back meanwhile, which "
        "a short run would not notice and a long one would pay for"
    )
    for backend in BACKENDS:
        few, many = series[f"{FEW:,} files, {backend}"], series[f"{MANY:,} files, {backend}"]
        growth = many.median / few.median / (MANY / FEW)
        own_growth = (many.median - many_zeros) / (few.median - few_zeros) / (MANY / FEW)
        outcome.notes.append(
            f"{backend}: ours grew by {growth:.2f}, tar's by {tar_growth:.2f}, in the same rounds"
        )
        memory = statistics.median(many.peak_bytes) - statistics.median(few.peak_bytes)
        outcome.comparisons += [
            Comparison(f"10^5 against 10^6, {backend}", few, many),
            Comparison(f"{FEW:,} files, {backend}, against tar", few, tars[FEW]),
            Comparison(f"{MANY:,} files, {backend}, against tar", many, tars[MANY]),
        ]
        outcome.readings += [
            Reading(
                f"time a file at 10^6 against 10^5, {backend}",
                growth,
                "×",
                at_least=1 - TOLERANCE,
                at_most=1 + TOLERANCE,
                reason="see tar and dd, which read and write as much beside it",
            ),
            Reading(f"the same without what dd takes for as many bytes, {backend}", own_growth, "×"),
            Reading(
                f"memory, {backend}",
                memory / (MANY - FEW),
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
