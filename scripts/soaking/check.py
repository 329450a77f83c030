"""What a check says, and how many of each there are to be."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from soaking.command import Command


@dataclass(frozen=True)
class Counts:
    """How often each trouble is tried."""

    kills: int  # of one packing process, and again of one of four
    terminations: int
    flips: int  # over all files of a dataset
    truncations: int  # 0: at every byte
    header_flips: int  # 0: every bit of every header
    fuzz_seconds: int  # of each target
    tiny_files: int  # 0: left out
    large_file_bytes: int  # 0: left out
    format_samples: int  # of one container, in every format
    format_bytes: int
    installs: bool
    crops: int  # of photographs, against Pillow and torchvision
    torch_tests: bool  # all with PyTorch again; the gate has a stage of its own for them


FULL = Counts(
    kills=200,
    terminations=50,
    flips=2000,
    truncations=0,
    header_flips=0,
    fuzz_seconds=120,
    tiny_files=1_000_000,
    large_file_bytes=4_400_000_000,
    format_samples=100_000,
    format_bytes=4_400_000_000,
    installs=True,
    crops=10_000,
    torch_tests=True,
)
SMALL = Counts(
    kills=6,
    terminations=3,
    flips=40,
    truncations=20,
    header_flips=40,
    fuzz_seconds=5,
    tiny_files=2000,
    large_file_bytes=0,
    format_samples=500,
    format_bytes=10_000_000,
    installs=False,
    crops=500,
    torch_tests=False,
)


@dataclass
class Check:
    """The outcome of one check: passed where nothing is wrong, skipped where it could not be made."""

    name: str
    wrong: list[str] = field(default_factory=list)
    said: str = ""
    skipped: str = ""  # why

    @property
    def ok(self) -> bool:
        return not self.wrong


@dataclass(frozen=True)
class Setting:
    """Where and with what a part works. `scratch` is the part's own and empty; `memory` likewise, where
    writing is quick: on a tmpfs if there is one."""

    command: Command
    scratch: Path
    memory: Path
    counts: Counts
    random: random.Random


Part = Callable[[Setting], Iterator[Check]]
