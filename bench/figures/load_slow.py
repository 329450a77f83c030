"""Loading from a slow, far filesystem: how much of what it can give arrives."""

from __future__ import annotations

import statistics

import slowfs
from harness.bench import Bench, Figure
from harness.loading import BYTES, TRAIN, Entry, LoaderError, Loading, LoadSeries
from harness.outcome import Outcome, Reading

SHARE = 0.9
OPENS_A_SHARD = 2
RATE = 100_000_000
KNOBS = slowfs.Knobs(metadata_ms=2, read_ms=0.5, rate=RATE)

OURS = Entry("packtrain, streams", "packtrain_loader", options=("order=streams",), epochs=0)
ENTRIES = [
    OURS,
    Entry("packtrain, global", "packtrain_loader", options=("order=global",), epochs=0),
    Entry("WebDataset, 2 workers", "webdataset_shards", "torch", epochs=0),
    Entry("DALI, 2 threads", "dali_shards", "dali", epochs=0),
    Entry("torch DataLoader, loose files, 2 workers", "torch_files", "torch", epochs=0),
]
DECODING = Entry("packtrain, streams, decoded", "packtrain_loader", options=("order=streams",), epochs=0)


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    if slowfs.trouble():
        outcome.notes.append(f"not measured: {slowfs.trouble()}")
        return outcome
    photos = bench.workloads.training()
    bench.workloads.described["filesystem"] = f"`slowfs DATA DATA/slow {' '.join(KNOBS.options())}`"
    seen: dict[str, LoadSeries] = {}
    opens: dict[str, list[int]] = {}
    calls: dict[str, list[int]] = {}
    with slowfs.mounted(photos.tree.parent, bench.workloads.data.parent / "slow", KNOBS) as mount:
        places = mount.path / photos.tree.name, mount.path / photos.dataset.name
        by_mode = {mode: Loading(bench, photos, mode, *places) for mode in (BYTES, TRAIN)}
        for _ in range(bench.rounds):
            for entry in [*ENTRIES, DECODING]:
                if entry.group and not bench.python_of(entry.group).exists():
                    continue
                series = seen.setdefault(entry.name, LoadSeries(entry.name))
                before = mount.counters()
                try:
                    by_mode[TRAIN if entry is DECODING else BYTES].run(entry, series)
                except LoaderError as failure:
                    if not entry.group:
                        raise
                    outcome.notes.append(f"left out: {entry.name}: {failure}")
                    continue
                made = mount.counters() - before
                opens.setdefault(entry.name, []).append(made.opens)
                calls.setdefault(entry.name, []).append(made.metadata_calls)
    for name, series in seen.items():
        if not series.first_epochs:
            continue
        seconds = statistics.median(series.first_epochs)
        bound = SHARE if name == OURS.name else None
        share = photos.bytes / seconds / RATE
        outcome.readings += [
            Reading(f"share of the cap, {name}", share, "", at_least=bound),
            Reading(f"an epoch, opening included, {name}", seconds, "s"),
            Reading(f"metadata calls, {name}", statistics.median(calls[name]), ""),
        ]
    for name in (OURS.name, "packtrain, global"):
        a_shard = statistics.median(opens[name]) / len(photos.shards)
        outcome.readings.append(Reading(f"opens, {name}", a_shard, "a shard", at_most=OPENS_A_SHARD))
    outcome.notes += [
        "the first epoch of a process, from opening the data to its end, without imports",
        "bytes only, but for the entry that says decoded: decoding would hide what storage gives",
        "opens count the manifest and the index too",
    ]
    return outcome


FIGURE = Figure(
    "load-slow",
    "How much of a filesystem of 100 MB/s, 2 ms a metadata call and 0.5 ms a read arrives, cold?",
    measure,
    rounds=3,
)
