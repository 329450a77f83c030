"""Two jobs against one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.bench import BACKENDS, Bench, Figure
from harness.outcome import Comparison, Outcome
from harness.packing import pack
from harness.workloads import PHOTOS, RECORDINGS

TARGET = 1.6
SHARDS = "8"  # as any set of a few GB has: on one file a filesystem lets only one thread write at a time
MEMORY = Path("/dev/shm")


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes.append(
        "the target holds where the disk allows it: it is asked of packing into memory (tmpfs), "
        f"into {SHARDS} shards"
    )
    with tempfile.TemporaryDirectory(prefix="packtrain-bench-", dir=MEMORY) as memory:
        for workload in (PHOTOS, RECORDINGS):
            tree = bench.workloads.tree(workload)
            contenders = []
            for backend in BACKENDS:
                for place, folder in (("disk", bench.workloads.data / "out"), ("memory", Path(memory))):
                    for jobs in ("1", "2"):
                        name = f"{jobs} jobs, {workload}, {backend}, {place}"
                        out = folder / f"{workload}-{backend}-{jobs}"
                        contenders.append(
                            pack(bench, name, tree, backend, "--jobs", jobs, "--shards", SHARDS, out=out)
                        )
            series = bench.take_turns(contenders)
            for backend in BACKENDS:
                for place, target in (("memory", TARGET), ("disk", None)):
                    what = f"{workload}, {backend}, {place}"
                    ours, peer = series[f"2 jobs, {what}"], series[f"1 jobs, {what}"]
                    outcome.comparisons.append(Comparison(what, ours, peer, target, cores=2))
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        outcome.notes.append(f"only {cores} core is granted here: two jobs have nothing to gain")
    return outcome


FIGURE = Figure("pack-jobs", "How much faster are two jobs than one, on two free cores?", measure)
