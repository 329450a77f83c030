"""Contenders that take turns, and what was measured of them.

A figure is the ratio of two medians over rounds in which every contender runs once; the order turns from one
round to the next, so that drift of the machine hits all alike. The processor time that other processes took
meanwhile is kept beside it: it says how far the figure can be trusted.
"""

from __future__ import annotations

import os
import resource
import shlex
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.process_tree import busy_seconds

POLL_SECONDS = 0.01


@dataclass
class Series:
    """One contender's rounds."""

    name: str
    command: str = ""  # as a user would type it
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    foreign_cores: list[float] = field(default_factory=list)  # taken by other processes meanwhile
    peak_bytes: list[int] = field(default_factory=list)  # of memory, where it was watched

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Slowest against fastest round, as a share of the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median

    @property
    def cores(self) -> float:
        """Cores kept busy, in the median."""
        shares = [cpu / wall for cpu, wall in zip(self.cpu_seconds, self.seconds)]
        return statistics.median(shares) if shares else 0.0

    @property
    def foreign(self) -> float:
        return statistics.median(self.foreign_cores) if self.foreign_cores else 0.0


@dataclass
class Contender:
    """Something to be timed: a command, with what goes before and after it unseen by the clock."""

    name: str
    command: Sequence[str | Path]
    environment: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    # Reads the time from what the command printed, where the command's own start is not to count against it.
    own_seconds: Callable[[str], float] | None = None
    watch_memory: bool = False


class MemoryWatch:
    """Follows the memory of a process until it ends. What wait4() tells would count the starter's too."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._status = Path(f"/proc/{pid}/status")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="memory-watch")
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            try:
                status = self._status.read_text()
            except OSError:  # it has just ended
                return
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    self.peak_bytes = int(line.split()[1]) * 1024

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self.peak_bytes


def run_program(command: Sequence[str | Path], environment: dict[str, str]) -> tuple[str, float]:
    """What a program that times its own contenders printed, and the cores that others took meanwhile."""
    busy, children = busy_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    wall = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return done.stdout, max(0.0, busy_seconds() - busy - cpu) / wall


def run_once(contender: Contender, series: Series) -> None:
    contender.before()
    busy, children = busy_seconds(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in contender.command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **contender.environment},
    )
    watch = MemoryWatch(process.pid) if contender.watch_memory else None
    out, err = process.communicate()
    wall = time.perf_counter() - begun
    if watch:
        series.peak_bytes.append(watch.stop())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = busy_seconds() - busy
    if process.returncode:
        raise RuntimeError(f"{contender.name}: exit {process.returncode}: {err.strip()[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    series.seconds.append(contender.own_seconds(out) if contender.own_seconds else wall)
    series.cpu_seconds.append(cpu)
    series.foreign_cores.append(max(0.0, busy - cpu) / wall)
    contender.after()


def take_turns(
    contenders: Sequence[Contender], rounds: int, words: Callable[[str], str]
) -> dict[str, Series]:
    """Each contender once a round, after a round that is not counted. `words` shortens commands."""
    series = {c.name: Series(c.name, words(in_words(c))) for c in contenders}
    for number in range(-1, rounds):
        first = number % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            sink = series[contender.name] if number >= 0 else Series(contender.name)
            run_once(contender, sink)
    return series


def in_words(contender: Contender) -> str:
    settings = [f"{name}={value}" for name, value in contender.environment.items()]
    return " ".join([*settings, shlex.join(map(str, contender.command))])
