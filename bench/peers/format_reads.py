"""One field of random samples out of many containers, by packtrain and by each container's own library.

All ways take turns in every round; prints seconds as JSON. Every way gives bytes of its own: a view into a
mapped file would be a promise, not a read.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import packtrain

Read = Callable[[int], bytes]
ReadMany = Callable[[list[int]], list[bytes]]
AT_ONCE = 256  # samples of a call for many: a batch


def in_shards(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


def of_packtrain(folder: Path, field: str) -> Read:
    dataset = packtrain.Dataset(str(folder))
    return lambda i: dataset.field(i, field, check=False)


def of_zipfile(folder: Path, field: str) -> Read:
    archives = [zipfile.ZipFile(path) for path in in_shards(folder, "*.zip")]
    names = [
        (archive, name)
        for archive in archives
        for name in archive.namelist()
        if name.rpartition(".")[2] == field
    ]

    def read(i: int) -> bytes:
        archive, name = names[i]
        return archive.read(name)

    return read


def of_h5py_vlen(folder: Path, field: str) -> Read:
    import h5py

    file = h5py.File(next(iter(in_shards(folder, "*.h5"))))
    groups = [file[name] for name in file]
    column = "images" if "images" in groups[0] else field
    rows = [(group[column], i) for group in groups for i in range(len(group[column]))]

    def read(i: int) -> bytes:
        values, at = rows[i]
        return bytes(values[at])

    return read


def of_h5py_flat(folder: Path, field: str) -> Read:
    import h5py

    rows = []
    for path in in_shards(folder, "*.h5"):
        file = h5py.File(path)
        offsets = file[f"{field}_offsets"][:]
        rows += [(file[field], int(a), int(b)) for a, b in zip(offsets, offsets[1:])]

    def read(i: int) -> bytes:
        values, begin, end = rows[i]
        return values[begin:end].tobytes()

    return read


def of_pyarrow(folder: Path, field: str) -> Read:
    """As the JSC course reads: a batch per sample out of an operating system's file."""
    import pyarrow

    rows = []
    for path in in_shards(folder, "*.arrow"):
        reader = pyarrow.ipc.open_file(pyarrow.OSFile(str(path), "rb"))
        column = reader.schema.get_field_index("image_data" if "image_data" in reader.schema.names else field)
        rows += [(reader, column, batch) for batch in range(reader.num_record_batches)]

    def read(i: int) -> bytes:
        reader, column, batch = rows[i]
        return reader.get_batch(batch).column(column)[0].as_py()

    return read


@functools.cache
def lmdb_transaction(path: Path) -> Any:
    """A file can be open once in a process."""
    import lmdb

    return lmdb.open(str(path), readonly=True, lock=False).begin()


def of_lmdb(folder: Path, field: str) -> Read:
    rows = []
    for path in in_shards(folder, "*.lmdb"):
        transaction = lmdb_transaction(path)
        ending = f".{field}".encode()
        rows += [
            (transaction, key) for key in transaction.cursor().iternext(values=False) if key.endswith(ending)
        ]

    def read(i: int) -> bytes:
        transaction, key = rows[i]
        return transaction.get(key)

    return read


def many_of_packtrain(folder: Path, field: str) -> ReadMany:
    dataset = packtrain.Dataset(str(folder))
    return lambda part: [sample[field] for sample in dataset.read(part, [field], check=False)]


def many_of_lmdb(folder: Path, field: str) -> ReadMany:
    """Only for one shard: a cursor knows one file."""
    [path] = in_shards(folder, "*.lmdb")
    transaction = lmdb_transaction(path)
    ending = f".{field}".encode()
    keys = [key for key in transaction.cursor().iternext(values=False) if key.endswith(ending)]

    def read(part: list[int]) -> list[bytes]:
        return [value for _, value in transaction.cursor().getmulti([keys[i] for i in part])]

    return read


def of_zarr(folder: Path, field: str) -> Read:
    import zarr

    rows = []
    for path in in_shards(folder, "*.zarr*"):
        group = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
        offsets = group[f"{field}_offsets"][:]
        rows += [(group[field], int(a), int(b)) for a, b in zip(offsets, offsets[1:])]

    def read(i: int) -> bytes:
        values, begin, end = rows[i]
        return values[begin:end].tobytes()

    return read


def of_npz(folder: Path, field: str) -> Read:
    """As NumPy reads it: a member is read whole, and then cut."""
    import numpy

    rows = []
    for path in in_shards(folder, "*-[0-9]*.npz"):  # the index is NPZ too
        archive = numpy.load(path)
        offsets = archive[f"{field}_offsets"]
        rows += [(archive, int(a), int(b)) for a, b in zip(offsets, offsets[1:])]

    def read(i: int) -> bytes:
        archive, begin, end = rows[i]
        return archive[field][begin:end].tobytes()

    return read


PEERS: dict[str, tuple[str, Callable[[Path, str], Read]]] = {
    "zip": ("zipfile", of_zipfile),
    "hdf5": ("h5py", of_h5py_flat),
    "hdf5-vlen": ("h5py", of_h5py_vlen),
    "arrow": ("pyarrow, as the course reads", of_pyarrow),
    "lmdb": ("py-lmdb", of_lmdb),
    "zarr": ("zarr-python", of_zarr),
    "npz": ("numpy", of_npz),
}


# Of these peers' reads only so many are made, and their time multiplied.
SLOW_PEERS = {"zarr": 5, "npz": 2}


def run(read: Read, order: list[int], threads: int) -> float:
    """Seconds for all of `order`, dealt out to threads."""
    failures: list[BaseException] = []

    def work(part: list[int]) -> None:
        try:
            for i in part:
                read(i)
        except BaseException as error:
            failures.append(error)

    begun = time.perf_counter()
    if threads == 1:
        work(order)
    else:
        workers = [threading.Thread(target=work, args=(order[n::threads],)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    spent = time.perf_counter() - begun
    if failures:
        raise failures[0]
    return spent


def run_many(read: ReadMany, order: list[int], threads: int) -> float:
    """As run(), a call for each AT_ONCE samples."""
    parts = [order[first : first + AT_ONCE] for first in range(0, len(order), AT_ONCE)]
    return run(lambda i: read(parts[i]), list(range(len(parts))), threads)  # type: ignore[arg-type, return-value]


# Libraries that have a call for many samples at once.
MANY = {"lmdb": (many_of_packtrain, many_of_lmdb)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="holds FORMAT.pt for each format")
    parser.add_argument("field")
    parser.add_argument("reads", type=int)
    parser.add_argument("rounds", type=int)
    arguments = parser.parse_args()

    ways: dict[str, tuple[Read, int]] = {}
    sizes: dict[str, int] = {}
    for folder in sorted(arguments.folder.glob("*.pt")):
        name = folder.stem
        ways[f"ours {name}"] = of_packtrain(folder, arguments.field), 1
        if name in PEERS:
            reads = min(SLOW_PEERS.get(name, arguments.reads), arguments.reads)
            ways[f"peer {name}"] = PEERS[name][1](folder, arguments.field), arguments.reads // reads
    many: dict[str, ReadMany] = {}
    for name, (ours, peer) in MANY.items():
        folder = arguments.folder / f"{name}.pt"
        if folder.exists() and len(in_shards(folder, f"*.{name}")) == 1:
            many[f"ours {name} many"] = ours(folder, arguments.field)
            many[f"peer {name} many"] = peer(folder, arguments.field)
    samples = len(packtrain.Dataset(str(arguments.folder / "webdataset.pt")))
    numbers = random.Random(7)
    order = [numbers.randrange(samples) for _ in range(arguments.reads)]
    for name, (read, one_in) in ways.items():
        if one_in == 1:
            sizes[name] = sum(len(read(i)) for i in range(samples))
    for name, read_many in many.items():
        sizes[name] = sum(len(value) for value in read_many(list(range(samples))))
    if len(set(sizes.values())) != 1:
        raise RuntimeError(f"the ways read different numbers of bytes: {sizes}")

    seconds: dict[str, dict[str, list[float]]] = {}
    for threads in (1, 2):
        for number in range(-1, arguments.rounds):
            names = [*ways, *many]
            first = number % len(names)
            for name in names[first:] + names[:first]:
                if name in many:
                    spent = run_many(many[name], order, threads)
                else:
                    read, one_in = ways[name]
                    spent = run(read, order[::one_in], threads) * one_in
                if number >= 0:
                    seconds.setdefault(f"{threads}", {}).setdefault(name, []).append(spent)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
