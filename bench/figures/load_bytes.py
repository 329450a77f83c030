"""Encoded bytes to the consumer, nothing decoded: the path under the decoder."""

from __future__ import annotations

from harness.bench import Bench, Figure
from harness.loading import BYTES, CORES, Entry, Loading
from harness.measure import Contender, Series, run_once
from harness.outcome import Comparison, Outcome, Reading

OURS, EACH, CAT = "packtrain", "packtrain, an array of each sample", "cat shards"
TARGETS = {"WebDataset": 15.0, "DALI": 1.3, "LMDB": 1.3}
AGAINST_CAT = 0.9
SECONDS = 1.0

ENTRIES = [
    Entry(OURS, "packtrain_loader", seconds=SECONDS),
    Entry(EACH, "packtrain_loader", options=("each=array",), seconds=SECONDS),
    Entry("WebDataset, 2 workers", "webdataset_shards", "torch"),
    Entry("WebDataset, own process", "webdataset_shards", "torch", workers=0),
    Entry("DALI, 2 threads", "dali_shards", "dali", seconds=SECONDS),
    Entry("DALI, 1 thread", "dali_shards", "dali", workers=1, seconds=SECONDS),
    Entry("LMDB, 2 workers", "lmdb_values", "torch", prepared=True, seconds=SECONDS),
    Entry("LMDB, own process", "lmdb_values", "torch", workers=0, prepared=True, seconds=SECONDS),
]


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    photos = bench.workloads.training()
    loading = Loading(bench, photos, BYTES)
    script = [*bench.prefix, "sh", "-c", 'cat "$0"/*.tar > /dev/null', photos.dataset]
    cat = Contender(CAT, script)
    cat_series = Series(CAT, bench.in_words(" ".join(map(str, script))))
    series = loading.who_can(ENTRIES, outcome.notes)
    able = [entry for entry in ENTRIES if entry.name in series]
    for number in range(bench.rounds):
        first = number % len(able)
        for entry in (*able[first:], *able[:first]):
            loading.run(entry, series[entry.name])
            run_once(cat, cat_series)
    ours = series[OURS]
    for peer, target in TARGETS.items():
        configurations = [one for name, one in series.items() if name.startswith(peer)]
        if configurations:
            best = min(configurations, key=lambda one: one.median)
            outcome.comparisons.append(Comparison(f"a sample, best of {peer}", ours, best, target, CORES))
    per_sample = [seconds / photos.samples for seconds in cat_series.seconds]
    cat_sample = Series(CAT, cat_series.command, per_sample, foreign_cores=cat_series.foreign_cores)
    outcome.comparisons.append(Comparison("a sample, cat", ours, cat_sample, AGAINST_CAT, CORES))
    for one in series.values():
        outcome.readings.append(Reading(f"rate, {one.name}", one.rate, "samples/s"))
        size = photos.bytes / photos.samples
        outcome.readings.append(Reading(f"bytes, {one.name}", one.rate * size / 1e9, "GB/s"))
    outcome.readings.append(Reading("bytes, cat", photos.bytes / cat_series.median / 1e9, "GB/s"))
    outcome.notes += [
        "all read in shuffled order; packtrain compares every sample with its recorded check, its default",
        "a sample is delivered when its bytes are in the consumer's memory",
        "LMDB and WebDataset make a Python object of each; DALI and packtrain hand out a batch, of which the "
        "second entry of packtrain makes an array for each",
        "cat reads the shards from the first byte to the last and is timed with its start",
    ]
    return outcome


FIGURE = Figure(
    "load-bytes",
    "How fast do encoded samples reach the consumer, nothing decoded?",
    measure,
    rounds=5,
)
