"""Photos to training batches: packtrain's loader against the loaders that users have."""

from __future__ import annotations

import statistics

from harness.bench import Bench, Figure
from harness.loading import CORES, TRAIN, Entry, Loading, LoadSeries
from harness.outcome import Comparison, Outcome, Reading

OURS, DALI = "packtrain", "DALI"
TARGETS = {
    "torch DataLoader, loose files": 3.0,
    "WebDataset": 3.2,
    DALI: 1.7,
    "FFCV, its own JPEG": 1.6,
    "SPDL": 3.5,
}
CPU_OF_DALI = 0.60
START_OF_FASTEST = 1 / 3
MEGABYTES = 300

ENTRIES = [
    Entry(OURS, "packtrain_loader", epochs=2),
    Entry("torch DataLoader, loose files", "torch_files", "torch"),
    Entry("WebDataset", "webdataset_shards", "torch"),
    Entry(DALI, "dali_shards", "dali"),
    Entry("FFCV, its own JPEG", "ffcv_jpeg", "ffcv", prepared=True),
    Entry("SPDL", "spdl_files", "spdl"),
]
# Like with like where the torch of the peers is part of the start.
WITH_TORCH = [
    Entry("packtrain, torch tensors", "packtrain_torch", "torch", epochs=0),
    Entry("DALI, torch tensors", "dali_torch", "dali", epochs=0),
]


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    loading = Loading(bench, bench.workloads.training(), TRAIN)
    series = loading.take_turns([*ENTRIES, *WITH_TORCH], outcome.notes)
    ours = series[OURS]
    for name, target in TARGETS.items():
        if name in series:
            outcome.comparisons.append(Comparison(f"a photo, {name}", ours, series[name], target, CORES))
    timed = [one for one in series.values() if one.seconds]
    for one in timed:
        outcome.readings.append(Reading(f"rate, {one.name}", one.rate, "img/s"))
    for one in timed:
        outcome.readings.append(Reading(f"processor time, {one.name}", 1e3 * one.cpu, "ms/img"))
    if DALI in series:
        outcome.readings.append(
            Reading("processor time against DALI's", ours.cpu / series[DALI].cpu, "×", at_most=CPU_OF_DALI)
        )
    outcome.readings += starts(series)
    for one in series.values():
        bound = MEGABYTES if one is ours else None
        what = f"peak memory of all processes (PSS), {one.name}"
        outcome.readings.append(Reading(what, one.peak_bytes[0] / 1e6, "MB", at_most=bound))
    outcome.notes += [
        f"{CORES} worker processes or threads each; every other argument is the loader's default",
        "memory is that of an epoch outside the rounds, in which count, labels and pixels are checked too",
        "DALI runs without torch, its quickest form; FFCV reads JPEGs of quality 90 that it wrote itself",
        "the bound on the start is against the quickest peer as its guide writes it: with torch",
    ]
    return outcome


def starts(series: dict[str, LoadSeries]) -> list[Reading]:
    """From the start of a process to its first batch, imports included."""
    readings = [
        Reading(f"start to first batch, {one.name}", one.start, "s") for one in series.values() if one.starts
    ]
    # The peers as their guides write them, DALI through its iterator for torch; then like with like, where a
    # part of the time is that of Python, NumPy and torch on both sides.
    as_written = [entry.name for entry in [*ENTRIES, WITH_TORCH[1]] if entry.group and entry.name != DALI]
    for name, peers, bound in (
        (OURS, as_written, START_OF_FASTEST),
        (OURS, [DALI], None),
        (WITH_TORCH[0].name, [WITH_TORCH[1].name], None),
    ):
        present = [series[peer] for peer in peers if peer in series]
        if name in series and present:
            fastest = min(present, key=lambda one: one.start)
            what = f"start to first batch, {name} against {fastest.name}"
            imports = statistics.median(series[name].imports)
            reason = f"{imports:.2f} of its {series[name].start:.2f} s are the start of Python and imports"
            readings.append(
                Reading(what, series[name].start / fastest.start, "×", at_most=bound, reason=reason)
            )
    return readings


FIGURE = Figure(
    "load-train",
    "How fast do photos become training batches (64 random crops of 224 px, half of them mirrored, float32)?",
    measure,
    rounds=3,
)
