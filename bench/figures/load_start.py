"""A large set: how soon its first batch comes, and whether the change of epochs is noticed."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

from harness.bench import Bench, Figure
from harness.loading import BATCH
from harness.measure import run_program
from harness.outcome import Outcome, Reading
from harness.workloads import remove, warm

SAMPLES = 1_280_000  # as many as ImageNet has
SHARD = 1024
FIRST_SECONDS = 0.5
STEPS = 2.0  # that the step into a new epoch may take, of others in the same loop
SHARE_OF_WORK = 0.1  # that it may take of the time between two batches of a loop that works
ORDERS = {"global": 'order="global"', "streams": 'order="streams"', "source": "shuffle=False"}


def large_set(bench: Bench) -> Path:
    """The training photos again and again, in shards that are links: an index of full size, few bytes."""
    photos = bench.workloads.training()
    data = bench.workloads.data
    times = -(-SAMPLES // photos.samples)
    folder = data / f"repeated-{photos.dataset.stem}-{times}"
    if not (folder / "manifest.json").exists():
        packed = bench.workloads.scratch("to-repeat.pt")
        options = ["--shards", str(max(1, photos.samples // SHARD)), "--quiet"]
        subprocess.run([bench.packtrain, "pack", photos.tree, packed, *options], check=True)
        remove(folder)
        subprocess.run([bench.program("open_index"), "repeat", packed, folder, str(times)], check=True)
        remove(packed)
    shards = sorted(folder.glob("train-0-*.tar"))
    warm(folder / "index.npz")
    for shard in shards:
        warm(shard)
    bench.workloads.described["large set"] = (
        f"{times * photos.samples:,} samples in {times * len(shards):,} shards: the training photos {times} "
        "times, by hard links, so that all bytes are in memory"
    )
    return folder


def ask(bench: Bench, question: str, dataset: Path, order: str) -> Any:
    command = [*bench.prefix, *bench.peer("load_start"), question, dataset, order, "--batch", str(BATCH)]
    paths = f"{bench.root / 'bench'}:{bench.build / 'python'}"
    printed, _ = run_program(command, {"PYTHONPATH": paths})
    return json.loads(printed)


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    dataset = large_set(bench)
    firsts: dict[str, list[float]] = {order: [] for order in ORDERS}
    changes: dict[str, list[Any]] = {order: [] for order in ORDERS}
    for _ in range(bench.rounds):
        for order in ORDERS:
            firsts[order].append(ask(bench, "first", dataset, order)["seconds"])
            changes[order].append(ask(bench, "change", dataset, order))
    for order, words in ORDERS.items():
        seen = changes[order]
        steps = statistics.median(second for one in seen for second in one["loop"]["others"])
        slow = statistics.median(one["loop"]["change"] for one in seen)
        waits = statistics.median(second for one in seen for second in one["work"]["others"])
        wait = statistics.median(one["work"]["change"] for one in seen)
        work = seen[0]["work_seconds"]
        outcome.readings += [
            Reading(
                f"first batch from Loader(…), {words}, median",
                statistics.median(firsts[order]),
                "s",
                at_most=FIRST_SECONDS,
            ),
            Reading(f"the same, slowest of {len(seen)}", max(firsts[order]), "s"),
            Reading(
                f"first step of a new epoch against others, loop that does nothing else, {words}",
                slow / steps,
                "×",
                at_most=STEPS,
                reason=f"{slow * 1e3:.0f} ms where others take {steps * 1e3:.0f}",
            ),
            Reading(
                f"first next() of a new epoch, loop that works {work:g} s a batch, {words}",
                wait * 1e3,
                "ms",
                at_most=SHARE_OF_WORK * work * 1e3,
                reason=f"others take {waits * 1e3:.2g} ms",
            ),
            Reading("the same of other batches", waits * 1e3, "ms"),
        ]
    outcome.notes.append(
        f"each in a process of its own, packtrain being imported; batches of {BATCH} photos, as in load-train"
    )
    return outcome


FIGURE = Figure(
    "load-start",
    "How soon comes the first batch of 1.28 million samples, and does a new epoch begin without a stall?",
    measure,
    rounds=5,
)
