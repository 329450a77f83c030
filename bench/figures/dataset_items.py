"""Dataset[i] in Python against webdataset and against loose files."""

from __future__ import annotations

import json

from harness.bench import BACKENDS, Bench, Figure, with_backend
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome
from harness.workloads import PHOTOS, RECORDINGS

AGAINST_WEBDATASET, AGAINST_FILES = 5.0, 1.3


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes += [
        "ours reads in random order, one thread; the peers read in the order that is best for them",
        "webdataset: the faster of its pipeline and of its bare tar iterator, nothing decoded",
        "open().read(): the paths are known beforehand, in the order of the tree",
    ]
    for workload in (PHOTOS, RECORDINGS):
        tree, dataset = bench.workloads.tree(workload), bench.workloads.dataset(workload)
        for backend in BACKENDS:
            command = [*bench.peer("dataset_items"), dataset, tree, str(bench.rounds)]
            environment = {**with_backend(backend), "PYTHONPATH": str(bench.build / "python")}
            printed, foreign = run_program(command, environment)
            words = bench.in_words(" ".join([f"PACKTRAIN_IO={backend}", *map(str, command)]))
            series = {
                kind: Series(f"{kind}, {workload}, {backend}", words, seconds, foreign_cores=[foreign])
                for kind, seconds in json.loads(printed).items()
            }
            best = min((series["webdataset"], series["webdataset tar iterator"]), key=lambda s: s.median)
            ours = series["Dataset[i], random order"]
            what = f"{workload}, {backend}"
            outcome.comparisons += [
                Comparison(f"{what}, webdataset", ours, best, AGAINST_WEBDATASET),
                Comparison(f"{what}, open().read()", ours, series["open().read()"], AGAINST_FILES),
                Comparison(f"{what}, source order", series["Dataset[i], source order"], best),
            ]
    return outcome


FIGURE = Figure(
    "dataset-items",
    "How much faster is `Dataset[i]` from Python than webdataset's iteration, and than reading loose files?",
    measure,
    rounds=5,
)
