"""Packing one job at a time against tar."""

from __future__ import annotations

from harness.bench import BACKENDS, Bench, Figure
from harness.outcome import Comparison, Outcome
from harness.packing import pack, tar
from harness.workloads import PHOTOS, RECORDINGS

TARGET = 1.0


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    for workload in (PHOTOS, RECORDINGS):
        tree = bench.workloads.tree(workload)
        contenders = [tar(bench, f"tar, {workload}, sync", tree, sync=True)]
        contenders += [tar(bench, f"tar, {workload}, no sync", tree, sync=False)]
        for backend in BACKENDS:
            contenders += [
                pack(bench, f"pack, {workload}, {backend}, sync", tree, backend, "--jobs", "1"),
                pack(
                    bench, f"pack, {workload}, {backend}, no sync", tree, backend, "--jobs", "1", "--no-sync"
                ),
            ]
        series = bench.take_turns(contenders)
        for backend in BACKENDS:
            for sync, target in (("sync", TARGET), ("no sync", None)):
                ours, peer = (
                    series[f"pack, {workload}, {backend}, {sync}"],
                    series[f"tar, {workload}, {sync}"],
                )
                outcome.comparisons.append(Comparison(f"{workload}, {backend}, {sync}", ours, peer, target))
    return outcome


FIGURE = Figure(
    "pack-tar",
    "Is `packtrain pack` with one job as fast as `tar cf X && sync X` of the same tree on the same disk?",
    measure,
)
