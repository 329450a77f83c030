"""What a figure is given: programs, data, and the number of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.measure import Contender, Series, take_turns
from harness.outcome import Outcome
from harness.workloads import Workloads

# Both ways in which packtrain reads: every figure is measured with each.
BACKENDS = ("io_uring", "pool")


@dataclass(frozen=True)
class Bench:
    root: Path
    build: Path
    python: Path  # the interpreter of the environment that holds the peers
    workloads: Workloads
    rounds: int
    prefix: tuple[str, ...] = ()  # in front of every command that is measured by the figures of loading

    @property
    def packtrain(self) -> Path:
        return self.workloads.packtrain

    def program(self, name: str) -> Path:
        return self.build / "bench" / name

    def peer(self, name: str) -> list[str | Path]:
        """The command that starts a program of bench/peers."""
        return [self.python, self.root / "bench" / "peers" / f"{name}.py"]

    def python_of(self, group: str) -> Path:
        """The interpreter of a group of bench/peers/setup.sh, or without one that of the benchmarks."""
        return self.root / "build" / "peers" / group / "bin" / "python" if group else self.python

    def take_turns(self, contenders: Sequence[Contender], rounds: int | None = None) -> dict[str, Series]:
        return take_turns(contenders, rounds or self.rounds, self.in_words)

    def in_words(self, command: str) -> str:
        """A command without the places of this machine."""
        for path, name in (
            (self.workloads.data, "DATA"),
            (self.root / "build" / "peers", "PEERS"),
            (self.python, "python"),
            (self.packtrain, "packtrain"),
            (self.build, "BUILD"),
            (self.root, "."),
        ):
            command = command.replace(str(path), name)
        return command


def with_backend(backend: str) -> dict[str, str]:
    return {"PACKTRAIN_IO": backend}


@dataclass(frozen=True)
class Figure:
    """A question and what answers it. `name` is that of the report's files."""

    name: str
    question: str
    measure: Callable[[Bench], Outcome]
    rounds: int = 7
