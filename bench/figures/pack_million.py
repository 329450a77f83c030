"""Packing a million tiny files against a hundred thousand: time in proportion, memory within its bound."""

from __future__ import annotations

import statistics
from pathlib import Path

from harness.bench import BACKENDS, Bench, Figure
from harness.outcome import Comparison, Outcome, Reading
from harness.packing import pack

FEW, MANY = 100_000, 1_000_000
FILES_IN_FOLDER = 1000
TOLERANCE = 0.2
BYTES_PER_FILE = 200


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
            contender = pack(bench, f"{files:,} files, {backend}", tree, backend, "--jobs", "1")
            contender.watch_memory = True
            contenders.append(contender)
    series = bench.take_turns(contenders)
    for backend in BACKENDS:
        few, many = series[f"{FEW:,} files, {backend}"], series[f"{MANY:,} files, {backend}"]
        growth = many.median / few.median / (MANY / FEW)
        memory = statistics.median(many.peak_bytes) - statistics.median(few.peak_bytes)
        outcome.comparisons.append(Comparison(f"10^5 against 10^6, {backend}", few, many))
        outcome.readings += [
            Reading(
                f"time a file at 10^6 against 10^5, {backend}",
                growth,
                "×",
                at_least=1 - TOLERANCE,
                at_most=1 + TOLERANCE,
            ),
            Reading(f"memory, {backend}", memory / (MANY - FEW), "bytes a file", at_most=BYTES_PER_FILE),
            Reading(f"most memory at 10^6 files, {backend}", max(many.peak_bytes) / 1e6, "MB"),
        ]
    return outcome


FIGURE = Figure(
    "pack-million",
    "Does packing a million tiny files take ten times the time of a hundred thousand, and how much memory?",
    measure,
    rounds=3,
)
