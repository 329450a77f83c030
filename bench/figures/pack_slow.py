"""Packing from a slow filesystem against tar from it, and how many metadata calls it asks for."""

from __future__ import annotations

import slowfs
from harness.bench import BACKENDS, Bench, Figure
from harness.measure import Contender
from harness.outcome import Comparison, Outcome, Reading
from harness.packing import pack, tar
from harness.workloads import PHOTOS, RECORDINGS

TARGET = 6.0
CALLS_PER_FILE = 3.0
KNOBS = slowfs.Knobs(metadata_ms=2, read_ms=0.5)
SHARE = {PHOTOS: 0.3, RECORDINGS: 0.05}  # of the workloads: a file takes tar about 8 ms


class CallCount:
    """Metadata calls of a contender's last run."""

    def __init__(self, mount: slowfs.Mount, contender: Contender) -> None:
        self.calls = 0
        self._mount = mount
        self._before, self._after = contender.before, contender.after
        contender.before, contender.after = self._begin, self._end

    def _begin(self) -> None:
        self._before()
        self._started = self._mount.counters()

    def _end(self) -> None:
        self.calls = (self._mount.counters() - self._started).metadata_calls
        self._after()


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    if slowfs.trouble():
        outcome.notes.append(f"not measured: {slowfs.trouble()}")
        return outcome
    for workload in (PHOTOS, RECORDINGS):
        tree = bench.workloads.tree(workload, SHARE[workload])
        files = bench.workloads.count(workload, SHARE[workload])
        with slowfs.mounted(tree, bench.workloads.data / "slow", KNOBS) as mount:
            contenders = [tar(bench, f"tar, {workload}", mount.path, sync=True)]
            contenders += [
                pack(bench, f"pack, {workload}, {backend}", mount.path, backend) for backend in BACKENDS
            ]
            counts = {contender.name: CallCount(mount, contender) for contender in contenders}
            series = bench.take_turns(contenders)
        for backend in BACKENDS:
            name = f"pack, {workload}, {backend}"
            ours, peer = series[name], series[f"tar, {workload}"]
            outcome.comparisons.append(Comparison(f"{workload}, {backend}", ours, peer, TARGET, cores=2))
            calls = counts[name].calls / files
            outcome.readings.append(
                Reading(f"metadata calls, {workload}, {backend}", calls, "a file", at_most=CALLS_PER_FILE)
            )
        tar_calls = counts[f"tar, {workload}"].calls / files
        outcome.readings.append(Reading(f"metadata calls, {workload}, tar", tar_calls, "a file"))
    return outcome


FIGURE = Figure(
    "pack-slow",
    "How much faster than tar is `packtrain pack` from a filesystem of 2 ms a metadata call, 0.5 ms a read?",
    measure,
    rounds=3,
)
