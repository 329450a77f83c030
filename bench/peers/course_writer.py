"""Writes a class tree as HDF5 or Arrow by the loop of the JSC course; prints its seconds as JSON."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path


def listed(tree: Path) -> list[tuple[Path, int]]:
    folders = sorted(path for path in tree.iterdir() if path.is_dir())
    return [(file, label) for label, folder in enumerate(folders) for file in sorted(folder.iterdir())]


def write_hdf5(samples: list[tuple[Path, int]], out: Path, quick: bool) -> None:
    import h5py
    import numpy

    with h5py.File(out, "w") as file:
        group = file.create_group("train")
        images = group.create_dataset(
            "images", (len(samples),), dtype=h5py.vlen_dtype(numpy.dtype(numpy.uint8))
        )
        targets = group.create_dataset("targets", (len(samples),), dtype=numpy.dtype("int16"))
        for number, (path, label) in enumerate(samples):
            data = path.read_bytes()
            # The course goes through a list of Python's numbers; whoever knows NumPy does not.
            images[number] = (
                numpy.frombuffer(data, numpy.uint8) if quick else numpy.array(list(data), dtype=numpy.uint8)
            )
            targets[number] = label


def write_arrow(samples: list[tuple[Path, int]], out: Path) -> None:
    import pyarrow

    schema = pyarrow.schema([("image_data", pyarrow.binary()), ("label", pyarrow.uint16())])
    with pyarrow.OSFile(str(out), "wb") as sink, pyarrow.ipc.new_file(sink, schema) as writer:
        for path, label in samples:
            columns = [
                pyarrow.array([path.read_bytes()], pyarrow.binary()),
                pyarrow.array([label], pyarrow.uint16()),
            ]
            writer.write(pyarrow.record_batch(columns, schema=schema))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("hdf5", "hdf5-quick", "arrow"))
    parser.add_argument("tree", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    samples = listed(arguments.tree)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    if arguments.kind == "arrow":
        write_arrow(samples, arguments.out)
    else:
        write_hdf5(samples, arguments.out, quick=arguments.kind == "hdf5-quick")
    print(json.dumps({"seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    main()
