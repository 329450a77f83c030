"""Writing HDF5 and Arrow against the loops that the JSC course teaches."""

from __future__ import annotations

import json

from harness.bench import Bench, Figure
from harness.measure import Contender
from harness.outcome import Comparison, Outcome
from harness.packing import clear, pack
from harness.workloads import PHOTOS, RECORDINGS, remove

# The peer, our format, and how many times as fast ours is to be.
LOOPS = (("hdf5", "hdf5-vlen", 5.0), ("hdf5-quick", "hdf5-vlen", None), ("arrow", "arrow", 2.0))


def course_loop(bench: Bench, kind: str, workload: str) -> Contender:
    out = bench.workloads.scratch(f"course-{kind}-{workload}")
    return Contender(
        f"course's loop, {kind}, {workload}",
        [*bench.peer("course_writer"), kind, bench.workloads.tree(workload), out],
        before=lambda: clear(out, fresh=True),
        after=lambda: remove(out),
        own_seconds=lambda text: float(json.loads(text)["seconds"]),
    )


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes += [
        "the loops are timed without the start of Python and its imports, packtrain (one job) from its start",
        "neither waits for the disk; packtrain also takes checksums and writes its index",
        "hdf5-quick is the course's loop without its list of Python's numbers",
        "every run starts when free memory was in use just before: a page that the host of a virtual machine "
        "has taken back costs several times as much to write to, and whose turn it was to meet such pages "
        "decided",
    ]
    for workload in (PHOTOS, RECORDINGS):
        tree = bench.workloads.tree(workload)
        contenders = [course_loop(bench, kind, workload) for kind, _, _ in LOOPS]
        for name in ("hdf5-vlen", "arrow"):
            options = ("--jobs", "1", "--no-sync", "--format", name)
            what = f"pack, {name}, {workload}"
            contenders.append(pack(bench, what, tree, "io_uring", *options, fresh=True))
        series = bench.take_turns(contenders)
        for kind, name, target in LOOPS:
            ours, peer = series[f"pack, {name}, {workload}"], series[f"course's loop, {kind}, {workload}"]
            outcome.comparisons.append(Comparison(f"{workload}, {kind}", ours, peer, target))
    return outcome


FIGURE = Figure(
    "format-writes",
    "How much faster does `packtrain pack` write HDF5 and Arrow than the loops of the course?",
    measure,
    rounds=3,
)
