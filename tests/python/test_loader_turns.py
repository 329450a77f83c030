"""Loader: closed, given a state, iterated or ended by others than the thread that waits for a batch."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import damage

SLOW = pt.Resize(600)  # so that a batch takes a while


@pytest.fixture
def train(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed, split="train")


def close(loader: pt.Loader) -> None:
    loader.close()


def go_back(loader: pt.Loader) -> None:
    loader.load_state_dict(loader.state_dict())


def begin_anew(loader: pt.Loader) -> None:
    next(iter(loader))


def is_whole_or_told(loader: pt.Loader) -> bool:
    """Whether a loop over it has all batches, or else ends by an error that says why."""
    try:
        return sum(1 for _ in loader) == len(loader)
    except pt.InvalidError as error:
        return any(reason in str(error) for reason in ("is over", "was closed", "another call"))


def collect(loader: pt.Loader, seen: list[int]) -> None:
    for batch in loader:
        seen += batch["index"].tolist()


@pytest.mark.parametrize("act", [close, go_back, begin_anew])
def test_a_signal_handler_may_use_the_loader_that_is_waited_for(
    train: pt.Dataset, act: Callable[[pt.Loader], None]
) -> None:
    """What batch systems ask for: SIGUSR1 some minutes before the end."""
    for attempt in range(6):
        loader = pt.Loader(train, batch_size=36, image=SLOW, threads=1)
        handler = signal.signal(signal.SIGUSR1, lambda *_, loader=loader: act(loader))
        timer = threading.Timer(0.02 * attempt, signal.raise_signal, [signal.SIGUSR1])
        timer.start()
        try:
            assert is_whole_or_told(loader)
        finally:
            timer.join()
            signal.signal(signal.SIGUSR1, handler)


@pytest.mark.parametrize("act", [close, go_back])
def test_another_thread_may_end_it(train: pt.Dataset, act: Callable[[pt.Loader], None]) -> None:
    random.seed(1)
    for _ in range(12):
        loader = pt.Loader(train, batch_size=6, image=SLOW)
        timer = threading.Timer(random.uniform(0, 0.1), act, [loader])
        timer.start()
        assert is_whole_or_told(loader)
        timer.join()


def test_threads_that_share_an_iterator_take_turns(train: pt.Dataset) -> None:
    for _ in range(5):
        loader = pt.Loader(train, batch_size=2, fields=[])
        batches: list[Any] = []
        shared = iter(loader)
        workers = [threading.Thread(target=batches.extend, args=[shared]) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(batches) == len(loader)
        assert sorted(i for batch in batches for i in batch["index"].tolist()) == list(range(36))


LOADS = """
loader = pt.Loader(sys.argv[2], split="train", batch_size=12, image=pt.Resize(300))
def work():
    while True:
        for batch in loader:
            pass
"""
READS = """
dataset = pt.Dataset(sys.argv[2])
def work():
    while True:
        dataset.read(range(len(dataset)))
"""


@pytest.mark.parametrize("work", [LOADS, READS], ids=["loads", "reads"])
def test_a_daemon_thread_does_not_spoil_the_end_of_the_program(packed: Path, work: str) -> None:
    program = f"""
import os, threading, time, sys
import packtrain as pt
{work}
# At once, so that the end does not come before it:
threading.excepthook = lambda told: os.write(2, repr(told.exc_value).encode())
threading.Thread(target=work, daemon=True).start()
time.sleep(float(sys.argv[1]))
"""
    for seconds in ("0", "0.02", "0.05", "0.1", "0.2", "0.3", "0.45"):
        done = subprocess.run(
            [sys.executable, "-c", program, seconds, packed], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")


def fails_at(count: int, error: BaseException) -> Callable[[Any], Any]:
    """A transform that raises `error` once, on its so-many-th sample."""
    calls = iter(range(1, 1_000_000))

    def transform(sample: Any) -> Any:
        if next(calls) == count:
            raise error
        return sample

    return transform


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no")])
def test_a_batch_that_was_not_handed_out_comes_again_after_a_resume(
    train: pt.Dataset, error: BaseException
) -> None:
    loader = pt.Loader(train, batch_size=6, fields=[], transform=fails_at(20, error))
    seen: list[int] = []
    with pytest.raises(type(error)):
        collect(loader, seen)
    assert len(seen) == 18
    rest = pt.Loader(train, batch_size=6, fields=[])
    rest.load_state_dict(loader.state_dict())
    collect(rest, seen)
    assert sorted(seen) == list(range(36))


def test_stop_iteration_of_a_function_does_not_end_the_epoch(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6, fields=[], transform=fails_at(8, StopIteration()))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(loader)


def test_a_batch_that_is_ready_is_taken_without_giving_up_the_gil(train: pt.Dataset) -> None:
    """Beside a thread that computes, getting it back takes a switch interval, 5 ms as a rule."""
    interval, over = sys.getswitchinterval(), threading.Event()

    def compute() -> None:
        while not over.is_set():
            pass

    loader = pt.Loader(train, batch_size=6, image=pt.Resize(16), prefetch=4)
    batches = iter(loader)
    next(batches)
    time.sleep(0.5)  # the others are made
    beside = threading.Thread(target=compute)
    sys.setswitchinterval(0.4)
    beside.start()
    try:
        for _ in range(3):
            time.sleep(0.01)  # comes back at the beginning of an interval
            begun = time.perf_counter()
            batch = next(batches)
            taken = time.perf_counter() - begun
            assert len(batch["index"]) == 6
            assert taken < 0.3
    finally:
        over.set()
        beside.join()
        sys.setswitchinterval(interval)


FORKS = """
import gc, os, random, signal, sys, threading, time
import packtrain as pt
data = pt.Dataset(sys.argv[2], split="train")
loader = pt.Loader(data, batch_size=18, image=pt.Resize(500), threads=1)
batches = iter(loader)
held = next(batches)
def work():
    try:
        for batch in batches:
            pass
        while True:
            for batch in loader:
                pass
    except pt.Error:
        pass
def refused(call):
    try:
        call()
    except pt.InvalidError as error:
        assert "after fork()" in str(error), error
    else:
        raise AssertionError("not refused")
def child(act):
    if act == "exit":
        return
    if act == "next":
        refused(lambda: next(iter(loader)))
    elif act == "close":
        loader.close()
    elif act == "report":
        loader.report()
        loader.state_dict()
    elif act == "let go":
        global held
        held = None
        globals().pop("loader"), globals().pop("batches")
        gc.collect()
    elif act == "load":
        own = pt.Loader(sys.argv[2], split="train", batch_size=6, image=pt.Resize(8))
        assert len(list(own)) == 6
threading.Thread(target=work, daemon=True).start()
random.seed(1)
for _ in range(6):
    time.sleep(random.uniform(0.001, 0.04))
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        child(sys.argv[1])
        sys.exit(7)  # the usual way, with all that comes at the end of the interpreter
    assert os.waitpid(pid, 0)[1] == 7 << 8, "the child hangs, or failed"
os._exit(0)
"""


@pytest.mark.slow
def test_a_thread_that_computes_does_not_hold_up_the_threads_that_decode(train: pt.Dataset) -> None:
    """next() may have to wait for the interpreter; they make the batches after that one meanwhile."""
    over = threading.Event()

    def compute() -> None:
        number = 0
        while not over.is_set():
            for _ in range(1000):
                number = (number * 31 + 7) % 1_000_003

    loader = pt.Loader(train, batch_size=4, image=pt.Resize(200))
    beside = threading.Thread(target=compute)
    beside.start()
    try:
        for _ in range(8):
            for _ in loader:
                pass
    finally:
        over.set()
        beside.join()
    report = loader.report()
    assert report.batches == 72
    assert report.blocked < 0.2 * (report.blocked + report.decode + report.read_wait)


def test_a_batch_that_is_ready_is_handed_over_without_a_line_of_python(copy: Path) -> None:
    damage(copy, [7])
    loader = pt.Loader(copy, split="train", batch_size=6, shuffle=False, image=pt.Resize(16), prefetch=5)
    batches = iter(loader)
    next(batches)
    time.sleep(0.5)  # the others are made
    called: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        failed = False
        try:
            next(batches)
        except pt.CorruptError as error:
            failed = "sample 7" in str(error)
        called.clear()  # an error is made in Python
        batch = next(batches)
    finally:
        sys.setprofile(None)
    assert failed
    assert not called
    assert batch["index"].tolist() == [12, 13, 14, 15, 16, 17]
    assert loader.state_dict()["consumed"] == 18
    assert len(list(batches)) == 3
    assert list(batches) == []
    assert loader.state_dict()["epoch"] == 0
    assert loader.report().batches == 5


@pytest.mark.parametrize("pause", [0.0, 0.01])
def test_threads_that_share_an_iterator_count_every_batch(train: pt.Dataset, pause: float) -> None:
    """Some find the next batch ready, others have to wait for it."""
    loader = pt.Loader(train, batch_size=1, fields=[], prefetch=4)
    batches, seen = iter(loader), []

    def take() -> None:
        for batch in batches:
            seen.extend(batch["index"].tolist())
            time.sleep(pause)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for epoch in range(5):
            batches = iter(loader)
            seen.clear()
            threads = [threading.Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(seen) == list(range(36))
            assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (epoch + 1, 0)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("act", ["exit", "next", "close", "report", "let go", "load"])
def test_a_child_forked_while_a_batch_is_waited_for_does_not_hang(packed: Path, act: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, act, packed],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
