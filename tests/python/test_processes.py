"""A dataset is safe across fork, spawn and pickling, and from many threads."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command

opened: pt.Dataset | None = None  # what a forked child inherits


def read_inherited(positions: list[int]) -> list[dict[str, object]]:
    assert opened is not None
    return opened.read(positions)


def read_given(data: pt.Dataset, positions: list[int]) -> list[dict[str, object]]:
    return [data[position] for position in positions]


def read_missing(data: pt.Dataset) -> None:
    data["no such key"]


def test_it_pickles_by_path(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(packed.parent)
    data = pt.Dataset(packed.name, split="val")
    state = pickle.dumps(data)
    assert len(state) < 1000
    monkeypatch.chdir("/")
    again = pickle.loads(state)
    assert (again.path, again.split, again.id, len(again)) == (str(packed), "val", data.id, 4)
    assert list(again) == list(data)


def test_another_dataset_in_its_place_is_noticed(copy: Path, photos: Path) -> None:
    state = pickle.dumps(pt.Dataset(copy))
    shutil.rmtree(copy)
    pt.pack(photos / "val", copy, sync=False)
    with pytest.raises(pt.InvalidError, match="another dataset"):
        pickle.loads(state)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_read_the_same(packed: Path, method: str) -> None:
    data = pt.Dataset(packed)
    expected = list(data)
    parts = [list(range(start, 40, 3)) for start in range(3)]
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for part, got in zip(parts, pool.map(read_given, [data] * 3, parts)):
            assert got == [expected[position] for position in part]
        with pytest.raises(pt.NotFoundError, match="no such key"):
            pool.submit(read_missing, data).result()


@pytest.mark.parametrize("backend", ["pool", "io_uring"])
def test_a_forked_child_goes_on_reading(packed: Path, backend: str) -> None:
    """With reads done before the fork, so that whatever the storage keeps for them is inherited."""
    program = f"""
import os, packtrain as pt
data = pt.Dataset({str(packed)!r})
expected = data.read(range(40))
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if data.read(range(40)) == expected and data[7] == expected[7] else 1)
    children.append(child)
assert data.read(range(40)) == expected
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
"""
    environment = {**os.environ, "PACKTRAIN_IO": backend}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_forked_while_others_read_is_sound(packed: Path) -> None:
    global opened
    opened = pt.Dataset(packed)
    expected = list(opened)
    stop = threading.Event()

    def read_on() -> None:
        while not stop.is_set():
            read_inherited(list(range(40)))

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for got in pool.map(read_inherited, [[1, 2, 3], list(range(40)), [-1]]):
                assert all(sample in expected for sample in got)
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def test_many_threads_read_the_same(packed: Path) -> None:
    data = pt.Dataset(packed)
    expected = list(data)

    def read_all(start: int) -> bool:
        order = [(start + 7 * i) % 40 for i in range(40)]
        singly = [data[position] for position in order]
        return singly == data.read(order) == [expected[position] for position in order]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read_all, range(48)))


def test_leaving_with_everything_open_is_quiet(packed: Path) -> None:
    program = f"""
import packtrain as pt
data = pt.Dataset({str(packed)!r})
labels, keys = data.labels, data.keys
data.read(range(40)), keys[3]
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_module_is_the_command(command: Command) -> None:
    path = os.pathsep.join([str(Path(command.path).resolve().parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "packtrain", "--version"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert pt.__version__ in done.stdout
