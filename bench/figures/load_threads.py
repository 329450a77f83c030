"""Two threads of the loader against one, and against what two processes get from the same cores."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor

from harness.bench import Bench, Figure
from harness.loading import TRAIN, Entry, Loading, LoadSeries
from harness.outcome import Outcome, Reading

EFFICIENCY = 0.95
ONE = Entry("1 thread", "packtrain_loader", options=("threads=1",))
TWO = Entry("2 threads", "packtrain_loader", options=("threads=2",), epochs=2)
DEFAULT = Entry("default", "packtrain_loader", epochs=2)


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    loading = Loading(bench, bench.workloads.training(), TRAIN)
    series = {entry.name: LoadSeries(entry.name) for entry in (ONE, TWO, DEFAULT)}
    apart: list[float] = []  # seconds an image of each of two processes at once
    for _ in range(bench.rounds):
        for entry in (ONE, TWO, DEFAULT):
            loading.run(entry, series[entry.name])
        both = [LoadSeries("one of two processes") for _ in range(2)]
        with ThreadPoolExecutor(len(both)) as pool:
            list(pool.map(lambda one: loading.run(ONE, one), both))
        apart.append(statistics.mean(one.median for one in both))
    one, two, default = series.values()
    machine = one.median / statistics.median(apart)
    foreign = statistics.median([*one.foreign_cores, *two.foreign_cores])
    outcome.readings += [
        Reading("rate, 1 thread", one.rate, "img/s"),
        Reading("rate, 2 threads", two.rate, "img/s"),
        Reading("rate, default", default.rate, "img/s"),
        Reading(
            "efficiency from 1 to 2 threads",
            two.rate / one.rate / 2,
            "",
            at_least=EFFICIENCY,
            reason=f"two processes of one thread each get {machine:.2f} of the machine; others took "
            f"{foreign:.2f} cores meanwhile",
        ),
        Reading("the same of two processes of one thread each", machine, ""),
        Reading("cores that others took meanwhile", foreign, ""),
    ]
    outcome.notes.append("two processes share nothing but the machine: what they lose, no loader can keep")
    return outcome


FIGURE = Figure(
    "load-threads",
    "How much faster are two threads than one?",
    measure,
    rounds=3,
)
