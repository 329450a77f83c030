"""packtrain's loader seen by its consumer: prints JSON. Started by bench/figures/load_next.py.

wait     next() when the batch is there already, and calls that do nothing: microseconds of each
steady   page faults and, with libcount_allocations.so preloaded, heap allocations in a steady state
beside   seconds an epoch: alone, with a Python thread that computes beside it, and with a process that does
         the same; and what the thread held up
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from loaders.common import TRAIN, Data
from loaders.packtrain_loader import make_loader

CALLS = 40
REST_SECONDS = 0.15  # after two batches were taken: more than it takes to make others
WORK_SECONDS = 0.2  # after one was taken: the same with one core less
FLOOR_REST_SECONDS = 0.05
WARM_EPOCHS, STEADY_EPOCHS = 6, 2  # random crops and sizes: the largest of all come late
BESIDE_EPOCHS, BESIDE_TURNS = 1, 3
START_SECONDS = 1.0  # of a process that only computes
BATCH_LABELS = 64


def endless(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def wait(loader: Any) -> dict[str, Any]:
    batches = endless(loader)
    for _ in range(len(loader)):
        next(batches)
    engine = loader._engine
    timed: dict[str, list[float]] = {
        name: [] for name in ("after_work", "after_rest", "after_another", "empty_call", "small_array")
    }

    def clock(name: str, call: Callable[[], Any]) -> None:
        begun = time.perf_counter_ns()
        result = call()
        timed[name].append((time.perf_counter_ns() - begun) / 1e3)
        del result  # to let go of a batch is not part of getting one

    for _ in range(CALLS):
        work(WORK_SECONDS)
        clock("after_work", lambda: next(batches))
    for _ in range(CALLS):
        time.sleep(REST_SECONDS)
        clock("after_rest", lambda: next(batches))
        clock("after_another", lambda: next(batches))
    for _ in range(CALLS):
        time.sleep(FLOOR_REST_SECONDS)
        clock("empty_call", lambda: engine.consumed)
        time.sleep(FLOOR_REST_SECONDS)
        clock("small_array", lambda: np.empty(BATCH_LABELS))
    return timed


def work(seconds: float) -> None:
    """What a training loop does between two batches: this thread is awake, and its caches are its own."""
    until = time.perf_counter() + seconds
    numbers = np.arange(BATCH_LABELS)
    while time.perf_counter() < until:
        numbers = (numbers * 31 + 7) % 1_000_003


def heap_counters() -> list[Callable[[], int]]:
    """Of all threads, of this one, and from within libjpeg; none if the library that counts is not loaded."""
    preloaded = ctypes.CDLL(None)
    if not hasattr(preloaded, "heap_calls_all"):
        return []
    preloaded.heap_watch_library(b"libjpeg")
    counters = [preloaded.heap_calls_all, preloaded.heap_calls_of_main, preloaded.heap_calls_of_library]
    for counter in counters:
        counter.restype = ctypes.c_uint64
    return counters


def steady(loader: Any) -> dict[str, Any]:
    """Counts for every batch of the steady epochs; the loop itself does nothing but count."""
    counters = heap_counters()
    by_epoch: list[float] = []
    of_batches: list[list[int]] = []
    for epoch in range(WARM_EPOCHS + STEADY_EPOCHS):
        rows = []
        before = counts(counters)
        for _ in loader:
            after = counts(counters)
            rows.append([late - early for late, early in zip(after, before)])
            before = counts(counters)  # what counting itself takes is nobody's
        by_epoch.append(statistics.mean(row[0] for row in rows))
        if epoch >= WARM_EPOCHS:
            of_batches += rows
    faults, everywhere, here, of_jpeg = zip(*of_batches)
    return {
        "counted": bool(counters),
        "page_faults": faults,
        "page_faults_by_epoch": by_epoch,
        "allocations": everywhere,
        "allocations_of_consumer": here,
        "allocations_of_libjpeg": of_jpeg,
    }


def counts(heap: list[Callable[[], int]]) -> list[int]:
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return [faults, *(counter() for counter in heap)] if heap else [faults, 0, 0, 0]


def compute(over: threading.Event) -> None:
    number = 0
    while not over.is_set():
        for _ in range(1000):
            number = (number * 31 + 7) % 1_000_003


def compute_until_told() -> None:
    """Until the standard input ends."""
    over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_the_end).start()
    compute(over)


@contextlib.contextmanager
def busy_thread() -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=compute, args=(over,))
    thread.start()
    yield
    over.set()
    thread.join()


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    """Takes a core as the thread does, and shares no lock with the loader."""
    process = subprocess.Popen(
        [sys.executable, __file__, "compute", "-", "--batch", "0"], stdin=subprocess.PIPE
    )
    time.sleep(START_SECONDS)
    yield
    process.communicate()  # the end of its input is what it waits for


def beside(loader: Any) -> dict[str, Any]:
    """Alone, with the thread and with the process in turns; and with the thread, for what part of their time
    the loader's threads stood still because the loop did not take batches."""

    def seconds_an_epoch() -> float:
        begun = time.perf_counter()
        for _ in range(BESIDE_EPOCHS):
            for _ in loader:
                pass
        return (time.perf_counter() - begun) / BESIDE_EPOCHS

    def thread_seconds() -> tuple[float, float]:
        report = loader.report()
        return report.blocked, report.blocked + report.decode + report.read_wait

    seconds_an_epoch()
    alone, together, process, held_up = [], [], [], []
    for _ in range(BESIDE_TURNS):
        alone.append(seconds_an_epoch())
        with busy_thread():
            before = thread_seconds()
            together.append(seconds_an_epoch())
            blocked, all_of_it = (after - earlier for after, earlier in zip(thread_seconds(), before))
        held_up.append(blocked / all_of_it)
        with busy_process():
            process.append(seconds_an_epoch())
    return {"alone": alone, "together": together, "process": process, "held_up": held_up}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=["wait", "steady", "beside", "compute"])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", help="of the loader; as many as it likes if not given")
    asked = parser.parse_args()
    if asked.question == "compute":
        compute_until_told()
        return
    options = {"threads": asked.threads} if asked.threads else {}
    nowhere = Path()
    loader = make_loader(Data(nowhere, asked.dataset, nowhere, "", asked.batch, 0, options), TRAIN)
    answer = {"wait": wait, "steady": steady, "beside": beside}[asked.question]
    print(json.dumps(answer(loader)))


if __name__ == "__main__":
    main()
