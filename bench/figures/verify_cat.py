"""verify against reading the shards and doing nothing with them."""

from __future__ import annotations

from harness.bench import BACKENDS, Bench, Figure, with_backend
from harness.measure import Contender
from harness.outcome import Comparison, Outcome
from harness.workloads import PHOTOS, RECORDINGS

TARGET = 0.6


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    for workload in (PHOTOS, RECORDINGS):
        dataset = bench.workloads.dataset(workload)
        contenders = [Contender(f"cat, {workload}", ["sh", "-c", 'cat "$0"/*.tar > /dev/null', dataset])]
        for backend in BACKENDS:
            for jobs, options in (("granted cores", []), ("1 job", ["--jobs", "1"])):
                contenders.append(
                    Contender(
                        f"verify, {workload}, {backend}, {jobs}",
                        [bench.packtrain, "verify", dataset, "--quiet", *options],
                        environment=with_backend(backend),
                    )
                )
        series = bench.take_turns(contenders)
        for backend in BACKENDS:
            for jobs, target in (("granted cores", TARGET), ("1 job", None)):
                what = f"{workload}, {backend}, {jobs}"
                ours, peer = series[f"verify, {what}"], series[f"cat, {workload}"]
                outcome.comparisons.append(Comparison(what, ours, peer, target))
    return outcome


FIGURE = Figure(
    "verify-cat",
    "How fast is `packtrain verify` against `cat shards > /dev/null`?",
    measure,
    rounds=11,
)
