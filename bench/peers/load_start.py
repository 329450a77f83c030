"""The first batch, and the step from one epoch into the next: prints JSON. Started by figures/load_start.py.

first DATASET ORDER    seconds from Loader(...) to the first batch, packtrain being imported already
change DATASET ORDER   seconds that next() takes around the end of an epoch: in a loop that does nothing
                       else, and in one that works between two batches
ORDER is global, streams, or source, which is shuffle=False.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import packtrain
from loaders.common import MEAN, SIZE, STD

STEPS = 12  # on either side of the end
WARM_STEPS = 4  # after the start in the middle of an epoch, of which nothing is counted
WORK_SECONDS = 0.3  # longer than two threads take for a batch


def make_loader(dataset: Path, order: str, batch: int) -> packtrain.Loader:
    image = packtrain.RandomResizedCrop(SIZE, flip=0.5, mean=MEAN, std=STD)
    how: dict[str, Any] = {"shuffle": False} if order == "source" else {"order": order}
    return packtrain.Loader(str(dataset), batch_size=batch, image=image, **how)


def first(dataset: Path, order: str, batch: int) -> dict[str, Any]:
    begun = time.perf_counter()
    loader = make_loader(dataset, order, batch)
    next(iter(loader))
    return {"seconds": time.perf_counter() - begun}


def endless(loader: packtrain.Loader) -> Iterator[Any]:
    while True:
        yield from loader


def waits_around_the_end(dataset: Path, order: str, batch: int, work: float) -> dict[str, Any]:
    """Of the last steps of an epoch and the first ones of the next; the epoch is entered close to its end."""
    with make_loader(dataset, order, batch) as loader:
        whole = len(loader) * batch
        state = {**loader.state_dict(), "consumed": whole - (WARM_STEPS + STEPS) * batch}
        loader.load_state_dict(state)
        batches = endless(loader)
        waits = []
        for _ in range(WARM_STEPS + 2 * STEPS):
            until = time.perf_counter() + work
            while time.perf_counter() < until:
                pass
            begun = time.perf_counter()
            next(batches)
            waits.append(time.perf_counter() - begun)
        if order != "source" and loader.epoch != 1:
            raise RuntimeError(f"the epoch has not changed: it is {loader.epoch}")
    counted = waits[WARM_STEPS:]
    return {"change": counted[STEPS], "others": counted[:STEPS] + counted[STEPS + 1 :]}


def change(dataset: Path, order: str, batch: int) -> dict[str, Any]:
    return {
        "loop": waits_around_the_end(dataset, order, batch, 0),
        "work": waits_around_the_end(dataset, order, batch, WORK_SECONDS),
        "work_seconds": WORK_SECONDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=["first", "change"])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("order", choices=["global", "streams", "source"])
    parser.add_argument("--batch", type=int, required=True)
    asked = parser.parse_args()
    answer = {"first": first, "change": change}[asked.question]
    print(json.dumps(answer(asked.dataset, asked.order, asked.batch)))


if __name__ == "__main__":
    main()
