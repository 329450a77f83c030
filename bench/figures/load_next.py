"""What the consumer of batches notices: the call of next(), the heap, and a busy thread beside it."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from harness.bench import Bench, Figure
from harness.loading import BATCH
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome, Reading

MICROSECONDS = 20
BESIDE = 0.9
HELD_UP = 0.05
# By number of the loader's threads, "" as many as it likes: the part of its speed that an epoch keeps beside
# a busy thread. A loader that uses all cores shares them with whoever else computes: of two cores three
# threads have 2/3 each, whatever next() costs. What the thread's being one of this interpreter costs is told
# by a process that computes instead.
BESIDE_THREADS = {"": None, "1": BESIDE}


def ask(bench: Bench, question: str, dataset: Path, *options: str, **environment: str) -> Any:
    command = [*bench.prefix, *bench.peer("load_next"), question, dataset, "--batch", str(BATCH), *options]
    paths = f"{bench.root / 'bench'}:{bench.build / 'python'}"
    printed, _ = run_program(command, {"PYTHONPATH": paths, **environment})
    return json.loads(printed)


def counted_readings(what: str, where: str, of_batches: list[int], reason: str) -> list[Reading]:
    """What nearly every batch takes, and what they take together: single ones may take more."""
    some = sum(count > 0 for count in of_batches)
    return [
        Reading(
            f"{what} a batch, {where}, median", statistics.median(of_batches), "", at_most=0, reason=reason
        ),
        Reading(
            f"the same, mean ({some} of {len(of_batches)} batches have any)",
            statistics.mean(of_batches),
            "",
            at_most=0,
            reason=reason,
        ),
    ]


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    dataset = bench.workloads.training().dataset
    waits: dict[str, list[float]] = defaultdict(list)
    beside: dict[str, dict[str, list[float]]] = {
        threads: {"alone": [], "together": [], "process": [], "held_up": []} for threads in BESIDE_THREADS
    }
    for _ in range(bench.rounds):
        for kind, microseconds in ask(bench, "wait", dataset).items():
            waits[kind] += microseconds
        for threads, seconds in beside.items():
            options = ["--threads", threads] if threads else []
            for which, more in ask(bench, "beside", dataset, *options).items():
                seconds[which] += more
    counted = ask(bench, "steady", dataset)
    library = bench.program("libcount_allocations.so")
    heap = ask(bench, "steady", dataset, LD_PRELOAD=str(library))
    if not heap["counted"]:
        raise RuntimeError(f"{library} was not loaded: there is nothing that counts allocations")

    for threads, least in BESIDE_THREADS.items():
        words = f"threads={threads}" if threads else "the loader's own choice of threads"
        together = Series("with the thread", seconds=beside[threads]["together"])
        alone = Series("without it", seconds=beside[threads]["alone"])
        process = Series("with a process that computes the same", seconds=beside[threads]["process"])
        outcome.comparisons += [
            Comparison(f"an epoch with a busy Python thread beside, {words}", together, alone, least),
            Comparison(f"the same, against a busy process, {words}", together, process, BESIDE),
        ]
        outcome.readings.append(
            Reading(
                f"part of its threads' time that the loader stood still meanwhile, {words}",
                statistics.median(beside[threads]["held_up"]),
                "",
                at_most=HELD_UP,
                reason="next() waited for the interpreter, and all batches ahead were made",
            )
        )
    rested, worked = waits["after_rest"], waits["after_work"]
    faults = ", ".join(f"{value:.0f}" for value in counted["page_faults_by_epoch"])
    of_engine = [
        all_of_them - here for all_of_them, here in zip(heap["allocations"], heap["allocations_of_consumer"])
    ]
    outcome.readings += [
        Reading(
            "next() with the batch there, after other work, median",
            statistics.median(worked),
            "µs",
            at_most=MICROSECONDS,
            reason="it makes three arrays and a dict, by code that has left the caches",
        ),
        Reading("the same, 99th percentile", statistics.quantiles(worked, n=100)[98], "µs"),
        Reading("next() right after another, median", statistics.median(waits["after_another"]), "µs"),
        Reading("next() of a thread that has slept, median", statistics.median(rested), "µs"),
        Reading("an empty call of such a thread, median", statistics.median(waits["empty_call"]), "µs"),
        Reading("numpy.empty of such a thread, median", statistics.median(waits["small_array"]), "µs"),
        *counted_readings(
            "page faults",
            "all threads",
            counted["page_faults"],
            reason=f"epoch by epoch {faults}: memory that is touched for the first time",
        ),
        *counted_readings(
            "heap allocations",
            "the loader's threads",
            of_engine,
            reason=f"{statistics.mean(heap['allocations_of_libjpeg']):.4g} a batch are libjpeg's own",
        ),
        *counted_readings(
            "heap allocations",
            "the consumer's thread",
            heap["allocations_of_consumer"],
            reason="Python objects around the batch, those of the interpreter and of NumPy included",
        ),
    ]
    outcome.notes += [
        f"batches of {BATCH} photos, as in load-train; {len(worked)} calls of each kind",
        "between two calls the consumer works as a training loop does, and the loader's threads, done with "
        "all batches ahead, sleep; a consumer that sleeps itself finds colder caches still: what an empty "
        "call and one small array cost then stands beside it",
        "counts are of every batch of the seventh and the eighth epoch; what the mean holds beside the "
        "median comes once an epoch (the order of the next one), or where more is under way than ever before",
        "beside the busy thread the loader runs once with its defaults, and once with one thread, which "
        "leaves the other core to the busy one. On two cores all of which the loader uses, a third busy "
        "thread leaves it 2/3 of its speed at most, so that the target stands at the other two comparisons: "
        "with a core for the thread, and against a process that takes as much of the cores and no lock",
    ]
    return outcome


FIGURE = Figure(
    "load-next",
    "What does next() cost when the batch is there, on the heap, and with a busy Python thread beside it?",
    measure,
    rounds=2,
)
