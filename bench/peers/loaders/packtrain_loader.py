"""packtrain's own loader, as a user calls it. Runs in the benchmarks' environment, which has no torch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import packtrain

from .common import MEAN, SIZE, STD, TRAIN, Data

GROUP = ""


def arguments(data: Data, mode: str) -> dict[str, Any]:
    """Defaults, but for what the workload asks and for what a figure varies."""
    wanted: dict[str, Any] = {"batch_size": data.batch}
    if mode == TRAIN:
        wanted["image"] = packtrain.RandomResizedCrop(SIZE, flip=0.5, mean=MEAN, std=STD)
    else:
        wanted["fields"] = [data.field]
    if "order" in data.options:
        wanted["order"] = data.options["order"]
    if "threads" in data.options:
        wanted["threads"] = int(data.options["threads"])
    return wanted


def compute(seconds: float) -> None:
    """So much of a core's time, as training on a CPU takes it."""
    until = time.thread_time() + seconds
    while seconds and time.thread_time() < until:
        sum(range(1000))


def epochs_of(loader: Any, data: Data, mode: str) -> Any:
    busy = float(data.options.get("busy", 0)) / 1e3

    def epoch() -> Iterator[Any]:
        for batch in loader:
            compute(busy)
            if mode == TRAIN:
                yield batch["image"], batch["label"]
            else:
                sizes = (len(value) for value in batch[data.field])  # a view of each, for who goes through
                yield (list(sizes) if "each" in data.options else sizes), batch["label"]

    return epoch


def make_loader(data: Data, mode: str) -> packtrain.Loader:
    return packtrain.Loader(str(data.dataset), **arguments(data, mode))


def make(data: Data, mode: str) -> Any:
    return epochs_of(make_loader(data, mode), data, mode)
