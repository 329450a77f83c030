"""One read in a hundred a hundred times as slow: the read-ahead must hide it."""

from __future__ import annotations

import json
from pathlib import Path

from harness.bench import Bench, Figure
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome

TARGET = 0.95


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    training = bench.workloads.training()
    command: list[str | Path] = [
        *bench.prefix,
        bench.program("late_reads"),
        training.dataset,
        training.field,
        str(bench.rounds),
    ]
    printed, foreign = run_program(command, {})
    result = json.loads(printed)
    if not result["same_order"]:
        raise RuntimeError("late reads have changed the order of samples")
    words = bench.in_words(" ".join(map(str, command)))
    late = Series("1 % of reads take 50 ms", words, result["late"], foreign_cores=[foreign])
    even = Series("every read takes 0.5 ms", words, result["even"], foreign_cores=[foreign])
    outcome.comparisons.append(Comparison("an epoch with late reads", late, even, TARGET))
    outcome.notes.append("the order of samples is the same in both: compared")
    return outcome


FIGURE = Figure(
    "load-late",
    "Do batches wait for the one read in a hundred that takes a hundred times as long?",
    measure,
    rounds=7,
)
