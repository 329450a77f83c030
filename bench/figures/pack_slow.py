"""Packing from a slow filesystem against tar from it, and how many metadata calls it asks for."""

from __future__ import annotations

import slowfs
from harness.bench import BACKENDS, Bench, Figure
from harness.measure import Contender
from harness.outcome import Comparison, Outcome, Reading
from harness.packing import pack, tar
from harness.workloads import PHOTOS, RECORDINGS

TARGET = 6.0
CALLS_PER_FILE = 3.05  # three, and the few that a run makes at all
KNOBS = slowfs.Knobs(metadata_ms=2, read_ms=0.5)
FILES, CLASSES = 1500, 10  # few, as each takes tar about 10 ms


class CallCount:
    """Metadata calls on files in a contender's last run."""

    def __init__(self, mount: slowfs.Mount, contender: Contender) -> None:
        self.calls = 0  # but for listings, of which there is one a folder
        self._mount = mount
        self._before, self._after = contender.before, contender.after
        contender.before, contender.after = self._begin, self._end

    def _begin(self) -> None:
        self._before()
        self._started = self._mount.counters()

    def _end(self) -> None:
        made = self._mount.counters() - self._started
        self.calls = made.metadata_calls - made.listings
        self._after()


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    if slowfs.trouble():
        outcome.notes.append(f"not measured: {slowfs.trouble()}")
        return outcome
    bench.workloads.described["filesystem"] = f"`slowfs DATA/TREE DATA/slow {' '.join(KNOBS.options())}`"
    for workload in (PHOTOS, RECORDINGS):
        tree = bench.workloads.tree(workload, FILES, CLASSES)
        files = sum(path.is_file() for path in tree.rglob("*"))
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
