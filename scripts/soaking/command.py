"""The packtrain command, as a user would start it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 300  # more than this is a hang, whatever the command does

DONE = 0
BAD_DATA = 1
WRONG_USAGE = 2
NO_ROOM = 3
STOPPED = 4
FAILED = 5


@dataclass(frozen=True)
class Ended:
    code: int  # negative: the signal that ended it
    out: str
    err: str

    @property
    def last_line(self) -> str:
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else ""

    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed

    def __str__(self) -> str:
        return f"exit {self.code}: {self.last_line}"


@dataclass(frozen=True)
class Command:
    path: Path

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A process of its own, which the caller ends or waits for by `finish`."""
        return subprocess.Popen(
            [str(self.path), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "XDG_CACHE_HOME": "/nonexistent"},  # no index of an earlier check is used
        )

    def run(self, *arguments: str | Path) -> Ended:
        return finish(self.start(*arguments))


def finish(process: subprocess.Popen[str]) -> Ended:
    """Waits for the end; a process that hangs is killed, and seen by its code."""
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += f"\nkilled: it did not end within {SECONDS} s"
    return Ended(process.returncode, out, err)
