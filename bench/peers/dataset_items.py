"""Every sample of a dataset once, read in several ways that take turns; prints seconds as JSON."""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import packtrain
import webdataset
from webdataset.tariterators import tarfile_samples


def by_index(dataset: packtrain.Dataset, order: list[int], field: str) -> int:
    total = 0
    for i in order:
        total += len(dataset[i][field])
    return total


def by_webdataset(shards: list[str], field: str) -> int:
    total = 0
    for sample in webdataset.WebDataset(shards, shardshuffle=False):
        total += len(sample[field])
    return total


def by_tar_iterator(shards: list[str], field: str) -> int:
    total = 0
    for sample in tarfile_samples({"url": shard} for shard in shards):
        total += len(sample[field])
    return total


def by_files(paths: list[str]) -> int:
    total = 0
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123 - as users write it, and quicker
            total += len(file.read())
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset", type=Path)
    parser.add_argument("tree", type=Path)
    parser.add_argument("rounds", type=int)
    arguments = parser.parse_args()

    dataset = packtrain.Dataset(str(arguments.dataset))
    paths = sorted(str(path) for path in arguments.tree.rglob("*") if path.is_file())
    field = os.path.splitext(paths[0])[1][1:]  # noqa: PTH122
    shards = sorted(map(str, arguments.dataset.glob("*.tar")))
    in_order = list(range(len(dataset)))
    shuffled = random.Random(7).sample(in_order, len(in_order))

    ways: dict[str, Callable[[], int]] = {
        "Dataset[i], random order": lambda: by_index(dataset, shuffled, field),
        "Dataset[i], source order": lambda: by_index(dataset, in_order, field),
        "webdataset": lambda: by_webdataset(shards, field),
        "webdataset tar iterator": lambda: by_tar_iterator(shards, field),
        "open().read()": lambda: by_files(paths),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    totals = set()
    for number in range(-1, arguments.rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            begun = time.perf_counter()
            totals.add(ways[name]())
            if number >= 0:
                seconds[name].append(time.perf_counter() - begun)
    if len(totals) != 1:
        raise RuntimeError(f"the ways read different numbers of bytes: {totals}")
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
