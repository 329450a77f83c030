"""Random reads by index against bare preads of the same extents."""

from __future__ import annotations

import json
from pathlib import Path

from harness.bench import BACKENDS, Bench, Figure, with_backend
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome
from harness.workloads import PHOTOS, RECORDINGS

TARGET = 0.9
READS = {PHOTOS: 5000, RECORDINGS: 50_000}


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes.append(
        "a bare pread checks nothing; reads with checks are what `Dataset` does unless told not to"
    )
    for workload, reads in READS.items():
        dataset = bench.workloads.dataset(workload)
        for backend in BACKENDS:
            command: list[str | Path] = [
                bench.program("random_reads"),
                dataset,
                str(reads),
                str(bench.rounds),
            ]
            printed, foreign = run_program(command, with_backend(backend))
            result = json.loads(printed)
            words = bench.in_words(f"PACKTRAIN_IO={backend} " + " ".join(map(str, command)))
            series = {
                kind: Series(f"{kind}, {workload}, {backend}", words, seconds, foreign_cores=[foreign])
                for kind, seconds in result["seconds"].items()
            }
            for kind, target in (("unchecked", TARGET), ("checked", None)):
                what = f"{workload}, {backend}, {kind}"
                outcome.comparisons.append(Comparison(what, series[kind], series["pread"], target))
    return outcome


FIGURE = Figure(
    "random-reads",
    "Are random reads by index, in one thread, as fast as a bare `pread` loop over the same extents?",
    measure,
    rounds=15,
)
