"""Packing one job at a time against the loop that webdataset's documentation recommends."""

from __future__ import annotations

import json

from harness.bench import BACKENDS, Bench, Figure
from harness.measure import Contender
from harness.outcome import Comparison, Outcome
from harness.packing import clear, pack
from harness.workloads import PHOTOS, RECORDINGS, remove

TARGETS = {PHOTOS: 2.0, RECORDINGS: 6.0}


def shard_writer(bench: Bench, workload: str, sync: str) -> Contender:
    name = f"ShardWriter, {workload}, {sync}"
    out = bench.workloads.scratch(f"shard-writer-{workload}-{sync.replace(' ', '-')}")
    options = ["--sync"] if sync == "sync" else []
    return Contender(
        name,
        [*bench.peer("shard_writer"), bench.workloads.tree(workload), out, *options],
        before=lambda: clear(out),
        after=lambda: remove(out),
        own_seconds=lambda text: float(json.loads(text)["seconds"]),
    )


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes.append(
        "the loop is timed without the start of Python and its imports, packtrain from its start"
    )
    for workload, target in TARGETS.items():
        tree = bench.workloads.tree(workload)
        contenders = [shard_writer(bench, workload, sync) for sync in ("sync", "no sync")]
        for backend in BACKENDS:
            contenders += [
                pack(bench, f"pack, {workload}, {backend}, sync", tree, backend, "--jobs", "1"),
                pack(
                    bench, f"pack, {workload}, {backend}, no sync", tree, backend, "--jobs", "1", "--no-sync"
                ),
            ]
        series = bench.take_turns(contenders)
        for backend in BACKENDS:
            for sync in ("sync", "no sync"):
                ours = series[f"pack, {workload}, {backend}, {sync}"]
                peer = series[f"ShardWriter, {workload}, {sync}"]
                outcome.comparisons.append(Comparison(f"{workload}, {backend}, {sync}", ours, peer, target))
    return outcome


FIGURE = Figure(
    "pack-webdataset",
    "How much faster is `packtrain pack` with one job than a `webdataset.ShardWriter` loop?",
    measure,
    rounds=5,
)
