"""Writes a class tree as shards by webdataset's own writer; prints the seconds of the loop as JSON."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import webdataset

SHARD_BYTES = 512_000_000  # as packtrain's
SHARD_SAMPLES = 1_000_000  # so that bytes decide


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sync", action="store_true", help="wait until the shards are on disk")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)

    begun = time.perf_counter()
    pattern = str(arguments.out / "%06d.tar")
    with webdataset.ShardWriter(pattern, maxcount=SHARD_SAMPLES, maxsize=SHARD_BYTES, verbose=0) as sink:
        for label, folder in enumerate(sorted(arguments.tree.iterdir())):
            for file in sorted(os.scandir(folder), key=lambda entry: entry.name):
                stem, _, extension = file.name.partition(".")
                with open(file.path, "rb") as source:  # noqa: PTH123 - as users write it, and quicker
                    data = source.read()
                sink.write({"__key__": f"{folder.name}/{stem}", extension: data, "cls": label})
    if arguments.sync:
        for shard in arguments.out.iterdir():
            descriptor = os.open(shard, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    print(json.dumps({"seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    main()
