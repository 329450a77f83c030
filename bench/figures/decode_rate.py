"""Photos to crops in a batch, on one core, against a bare loop that decodes them whole."""

from __future__ import annotations

import json

from harness.bench import Bench, Figure
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome, Reading

TARGET = 1.2
KERNELS = ("", "scalar")  # what the processor can do, and plain C++


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    photos = bench.workloads.training()
    for kernels in KERNELS:
        command = [*bench.prefix, bench.program("decode_rate"), photos.tree, str(bench.rounds)]
        environment = {"PACKTRAIN_KERNELS": kernels} if kernels else {}
        printed, foreign = run_program(command, environment)
        seen = json.loads(printed)
        setting = " ".join(f"{name}={value}" for name, value in environment.items())
        words = bench.in_words(" ".join([*([setting] if setting else []), *map(str, command)]))
        which = f", {kernels} kernels" if kernels else ""
        ours = Series(f"ImageReader{which}", words, seen["transform_seconds"], foreign_cores=[foreign])
        bare = Series("libjpeg-turbo", words, seen["full_decode_seconds"], foreign_cores=[foreign])
        what = f"decode and transform against a bare full decode{which}"
        outcome.comparisons.append(Comparison(what, ours, bare, None if kernels else TARGET))
        outcome.readings += [
            Reading(f"decode and transform{which}", seen["transform_per_second"], "img/s/core"),
            Reading(
                f"bare full decode{which and ', meanwhile'}", seen["full_decode_per_second"], "img/s/core"
            ),
        ]
    outcome.notes += [
        "processor time of one thread; turns of 25 photos, all in memory",
        "the bare loop decodes each whole photo into one buffer by the same library, and does nothing with "
        "it; ours decodes what a random crop needs of it, resizes to 224 x 224, mirrors and normalises it",
    ]
    return outcome


FIGURE = Figure(
    "decode-rate",
    "How many photos does one core turn into crops, where a bare decoder turns them into pixels?",
    measure,
    rounds=7,
)
