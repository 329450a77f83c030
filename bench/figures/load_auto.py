"""The loader's own choice of threads against the best fixed number, under four kinds of load."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import slowfs
from harness.bench import Bench, Figure
from harness.loading import BYTES, TRAIN, Entry, Loading, LoadSeries
from harness.outcome import Outcome, Reading

SHARE = 0.95
SECONDS = 0.7  # that are timed of each run, at least
# Decoding on two cores outruns it.
KNOBS = slowfs.Knobs(metadata_ms=2, read_ms=0.5, rate=100_000_000)
BUSY_MS = 20  # of computing on each batch, which the loader's threads make in about twice that


@dataclass(frozen=True)
class Case:
    """A kind of load, and how the seconds of an image are read from its rounds."""

    name: str
    loading: Loading
    entry: Entry
    seconds: Callable[[LoadSeries], float]


def epoch_median(series: LoadSeries) -> float:
    return series.median


def first_epoch_median(series: LoadSeries) -> float:
    return statistics.median(series.first_epochs)


def cases_of(bench: Bench, notes: list[str], until_end: ExitStack) -> list[Case]:
    photos = bench.workloads.training()
    near = Entry("", "packtrain_loader", seconds=SECONDS)
    training = Loading(bench, photos, TRAIN)
    cases = [
        Case("decoding", training, near, epoch_median),
        Case("bytes only", Loading(bench, photos, BYTES), near, epoch_median),
        Case("a busy consumer", training, replace(near, options=(f"busy={BUSY_MS}",)), epoch_median),
    ]
    if slowfs.trouble():
        notes.append(f"slow storage was not measured: {slowfs.trouble()}")
        return cases
    mounted = slowfs.mounted(photos.tree.parent, bench.workloads.data.parent / "slow", KNOBS)
    mount = until_end.enter_context(mounted)
    bench.workloads.described["slow storage"] = f"`slowfs DATA DATA/slow {' '.join(KNOBS.options())}`"
    far = Loading(bench, photos, TRAIN, mount.path / photos.tree.name, mount.path / photos.dataset.name)
    return [*cases, Case("slow storage", far, Entry("", "packtrain_loader", epochs=0), first_epoch_median)]


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    cores = len(os.sched_getaffinity(0))
    fixed = sorted({1, *(times * cores for times in (1, 2, 4))})
    settings = {"auto": (), **{f"threads={count}": (f"threads={count}",) for count in fixed}}
    with ExitStack() as until_end:
        for case in cases_of(bench, outcome.notes, until_end):
            series = {name: LoadSeries(name) for name in settings}
            for number in range(bench.rounds):
                turn = number % len(settings)
                names = list(settings)
                for name in (*names[turn:], *names[:turn]):
                    options = (*case.entry.options, *settings[name])
                    case.loading.run(replace(case.entry, name=name, options=options), series[name])
            rates = {name: 1 / case.seconds(one) for name, one in series.items()}
            best = max((name for name in rates if name != "auto"), key=rates.__getitem__)
            outcome.readings.append(
                Reading(
                    f"{case.name}: auto against the best, {best}",
                    rates["auto"] / rates[best],
                    "",
                    at_least=SHARE,
                )
            )
            outcome.readings += [
                Reading(f"{case.name}: {name} against auto", rate / rates["auto"], "")
                for name, rate in rates.items()
                if name != "auto"
            ]
    outcome.notes += [
        f"the cores granted are {cores}; fixed settings are one thread, and one, two and four a core",
        f"a busy consumer computes {BUSY_MS} ms on each batch; from slow storage, the first epoch is timed",
        "the best of several equal settings is above their mean by chance: 1 is not to be expected",
    ]
    return outcome


FIGURE = Figure(
    "load-auto",
    'Is threads="auto" as fast as the best fixed number of threads?',
    measure,
    rounds=5,
)
