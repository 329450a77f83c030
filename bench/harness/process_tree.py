"""A process and all that it started: processor time and memory. Standard library only, as peers use it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 0.05


def with_descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):  # it ended meanwhile
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time, that of children which ended included."""
    total = 0
    for each in with_descendants(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def proportional_bytes(pid: int) -> int:
    """Memory of all processes, what several share counted once."""
    total = 0
    for each in with_descendants(pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


class PeakMemory:
    """Follows proportional_bytes() of a process until it is told to stop."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="peak-memory")
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            self.peak_bytes = max(self.peak_bytes, proportional_bytes(self._pid))

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self.peak_bytes


class Meter:
    """What this process and its workers spend between two moments, and what others take meanwhile."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._cpu, self._busy = cpu_seconds(os.getpid()), busy_seconds()

    def read(self) -> dict[str, float]:
        seconds = time.monotonic() - self._begun
        cpu = cpu_seconds(os.getpid()) - self._cpu
        others = max(0.0, busy_seconds() - self._busy - cpu) / seconds
        return {"seconds": seconds, "cpu_seconds": cpu, "foreign_cores": others}


def busy_seconds() -> float:
    """Processor time of the whole machine since it started, idle excluded."""
    fields = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle, waiting = fields[3], fields[4]
    return (sum(fields) - idle - waiting) / TICKS
