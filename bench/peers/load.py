"""One loader in a process of its own: prints as JSON what it did. Started by bench/harness/loading.py.

prepare   writes what the loader needs
look      one epoch whose samples, labels and pixels are checked; not to be timed
run       epochs, timed: the first is for warming up
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.process_tree import Meter
from loaders.common import BYTES, TRAIN, Data


def look(epoch: Any, mode: str) -> dict[str, Any]:
    """What one epoch holds, for the harness to compare between loaders."""
    import numpy as np

    count, label_sum, size = 0, 0, 0
    means, deviations = [], []
    for payload, labels in epoch():
        count += len(labels)
        label_sum += sum(int(label) for label in labels)
        if mode == BYTES:
            size += int(sum(payload))
            continue
        images = np.asarray(payload)
        if images.shape[1:] != (3, 224, 224) or images.dtype != np.float32:
            raise ValueError(f"a batch is {images.dtype} {images.shape}")
        means.append(float(images.mean()))
        deviations.append(float(images.std()))
    result: dict[str, Any] = {"count": count, "label_sum": label_sum}
    if mode == BYTES:
        return {**result, "bytes": size}
    return {**result, "mean": sum(means) / len(means), "deviation": sum(deviations) / len(deviations)}


def run(make: Callable[[], Any], epochs: int, seconds: float, started: float) -> dict[str, Any]:
    """At least `epochs` epochs and `seconds` of them after the first, whose first batch ends the start."""
    start = 0.0
    opened = time.monotonic()
    imports = opened - started
    epoch = make()
    for _ in epoch():
        start = start or time.monotonic() - started
    result: dict[str, Any] = {"start": start, "imports": imports, "first_epoch": time.monotonic() - opened}
    if epochs == 0:
        return result
    meter, begun = Meter(), time.monotonic()
    count = done = 0
    while done < epochs or time.monotonic() - begun < seconds:
        for _, labels in epoch():
            count += len(labels)
        done += 1
    return {**result, **meter.read(), "count": count, "epochs": done}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loader")
    parser.add_argument("action", choices=["prepare", "look", "run"])
    parser.add_argument("mode", choices=[TRAIN, BYTES])
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1, help="after the first")
    parser.add_argument("--seconds", type=float, default=0.0, help="more epochs until that much is measured")
    parser.add_argument("--started", type=float, default=time.monotonic(), help="by the monotonic clock")
    parser.add_argument("--field", required=True, help="of the photo within a packed sample")
    parser.add_argument("--with", dest="options", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    printer, sys.stdout = sys.stdout, sys.stderr  # libraries chat: standard output carries the result only

    options = dict(option.split("=", 1) for option in asked.options)
    data = Data(asked.tree, asked.dataset, asked.store, asked.field, asked.batch, asked.workers, options)
    loader = importlib.import_module(f"loaders.{asked.loader}")
    if asked.action == "prepare":
        data.store.mkdir(parents=True)
        loader.prepare(data)
        result: dict[str, Any] = {}
    elif asked.action == "look":
        result = look(loader.make(data, asked.mode), asked.mode)
    else:
        result = run(lambda: loader.make(data, asked.mode), asked.epochs, asked.seconds, asked.started)
    print(json.dumps(result), file=printer, flush=True)
    os._exit(0)  # the threads of some peers wait for ever while the interpreter ends


if __name__ == "__main__":
    main()
