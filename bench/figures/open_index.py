"""Opening an index of many samples against one of few."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path

from harness.bench import BACKENDS, Bench, Figure, with_backend
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome, Reading

FEW, MANY = 100_000, 10_000_000
SHARDS = 64
MORE_BYTES = 20e6
CALIBRE = 0.0005  # seconds: two openings that differ by less are the same to anyone


def index_of(bench: Bench, samples: int, shards: int) -> Path:
    folder = bench.workloads.data / f"index-{samples}-{shards}"
    if not (folder / "manifest.json").exists():
        subprocess.run([bench.program("open_index"), "make", folder, str(samples), str(shards)], check=True)
    for file in folder.iterdir():
        file.read_bytes()
    return folder


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes.append(
        f"both have {SHARDS} shards, so that only the number of samples differs; in shards of 512 MB, 10^7 "
        "photos would be 2,000, which the manifest names: the second row says what reading those costs"
    )
    folders = {
        "few": index_of(bench, FEW, SHARDS),
        "many": index_of(bench, MANY, SHARDS),
        "many shards": index_of(bench, MANY, 2000),
    }
    for backend in BACKENDS:
        seconds: dict[str, list[float]] = {name: [] for name in folders}
        foreign: list[float] = []
        grown: dict[str, list[int]] = {name: [] for name in folders}
        for number in range(-1, bench.rounds):
            names = list(folders)
            for name in names[number % 3 :] + names[: number % 3]:
                command: list[str | Path] = [bench.program("open_index"), "open", folders[name]]
                printed, taken = run_program(command, with_backend(backend))
                result = json.loads(printed)
                foreign.append(taken)
                if number >= 0:
                    seconds[name].append(result["open_seconds"])
                    grown[name].append(result["open_bytes"])
        words = {
            name: bench.in_words(f"PACKTRAIN_IO={backend} {bench.program('open_index')} open {folder}")
            for name, folder in folders.items()
        }
        series = {
            name: Series(f"{name}, {backend}", words[name], values, foreign_cores=foreign)
            for name, values in seconds.items()
        }
        noise = max(quartile_range(series["few"].seconds), quartile_range(series["many"].seconds), CALIBRE)
        slower = series["many"].median - series["few"].median
        outcome.comparisons += [
            Comparison(f"10^7 against 10^5 samples, {backend}", series["many"], series["few"]),
            Comparison(f"the same in 2,000 shards, {backend}", series["many shards"], series["few"]),
        ]
        more = statistics.median(grown["many"]) - statistics.median(grown["few"])
        outcome.readings += [
            Reading(f"time that 10^7 samples add, {backend}", slower * 1e3, "ms", at_most=noise * 1e3),
            Reading(f"memory that 10^7 samples add, {backend}", more / 1e6, "MB", at_most=MORE_BYTES / 1e6),
        ]
    return outcome


def quartile_range(values: list[float]) -> float:
    low, _, high = statistics.quantiles(values, n=4)
    return high - low


FIGURE = Figure(
    "open-index",
    "Does opening an index of 10^7 samples cost what opening one of 10^5 costs?",
    measure,
    rounds=21,
)
