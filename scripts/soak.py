"""What takes long: kills, flipped bits, lack of room, changes, readers, fuzzing, sizes, formats, installing.

`./dev soak` runs the full counts and keeps its log under bench/runs; `--small`, for `./dev test`, runs the
same with small counts and keeps no log. Needs build/dev; all is made in a scratch folder, gone afterwards.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from soaking.arm import arm
from soaking.changes import changes
from soaking.check import FULL, SMALL, Check, Part, Setting
from soaking.command import Command
from soaking.damage import flips, header_flips, truncations
from soaking.formats import formats
from soaking.fuzzing import fuzzing
from soaking.images import images
from soaking.install import install
from soaking.interop import interop
from soaking.kills import kills
from soaking.room import room
from soaking.sizes import sizes
from soaking.units import containers, order

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "bench" / "runs"
SHOWN_FAULTS = 10
MEMORY = Path("/dev/shm")

PARTS: dict[str, Part] = {
    "kills": kills,
    "flips": flips,
    "truncations": truncations,
    "headers": header_flips,
    "room": room,
    "changes": changes,
    "interop": interop,
    "images": images,
    "sizes": sizes,
    "formats": formats,
    "order": order,
    "install": install,
    "arm": arm,
    "fuzzing": fuzzing,
    "containers": containers,  # after fuzzing, which brings the build with AddressSanitizer up to date
}


class Log:
    """Says each line on the terminal and, where a file is given, there as well; counts what it is told."""

    def __init__(self, file: TextIO | None) -> None:
        self._outputs = [sys.stdout] if file is None else [sys.stdout, file]
        self.passed = self.failed = self.skipped = 0

    def say(self, line: str) -> None:
        for output in self._outputs:
            print(line, file=output, flush=True)

    def note(self, check: Check, seconds: float) -> None:
        if check.skipped:
            self.skipped += 1
            self.say(f"skipped  {check.name}: {check.skipped}")
            return
        self.passed += int(check.ok)
        self.failed += int(not check.ok)
        said = f": {check.said}" if check.said else ""
        self.say(f"{'ok' if check.ok else 'FAILED':8} {check.name} ({seconds:.1f} s){said}")
        for line in check.wrong[:SHOWN_FAULTS]:
            self.say(f"         {line}")
        if len(check.wrong) > SHOWN_FAULTS:
            self.say(f"         and {len(check.wrong) - SHOWN_FAULTS} more")


def soak(parts: list[str], setting: Setting, log: Log) -> None:
    for name in parts:
        scratch, memory = setting.scratch / name, setting.memory / name
        scratch.mkdir()
        memory.mkdir()
        begun = time.monotonic()
        try:
            for check in PARTS[name](replace(setting, scratch=scratch, memory=memory)):
                log.note(check, time.monotonic() - begun)
                begun = time.monotonic()
        except (
            OSError,
            RuntimeError,
            ValueError,
            KeyError,
        ) as error:  # the other parts still have something to say
            log.note(Check(name, wrong=[f"{type(error).__name__}: {error}"]), time.monotonic() - begun)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="small counts and no log, for ./dev test")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--seed", type=int, default=None, help="of the random moments and places; default: by time"
    )
    parser.add_argument(
        "--command", type=Path, help="the packtrain to try; default: $PACKTRAIN_COMMAND, build/dev"
    )
    parser.add_argument(
        "--scratch", type=Path, default=ROOT / "build", help="where the scratch folder is made"
    )
    parser.add_argument("--fuzz-seconds", type=int, metavar="N", help="time for each fuzz target")
    parser.add_argument(
        "--out", type=Path, help="the log; default: bench/runs/DATE-soak.txt, none with --small"
    )
    arguments = parser.parse_args()

    counts = SMALL if arguments.small else FULL
    if arguments.fuzz_seconds is not None:
        counts = replace(counts, fuzz_seconds=arguments.fuzz_seconds)
    default = os.environ.get("PACKTRAIN_COMMAND", ROOT / "build" / "dev" / "tools" / "packtrain")
    command = Command((arguments.command or Path(default)).resolve())
    if not os.access(command.path, os.X_OK):
        print(f"soak: there is no {command.path}; run ./dev build first", file=sys.stderr)
        return 2
    seed = arguments.seed if arguments.seed is not None else int(time.time())
    parts = arguments.only or list(PARTS)
    out = arguments.out or (None if arguments.small else RUNS / f"{time.strftime('%Y-%m-%d')}-soak.txt")
    memory = MEMORY if os.access(MEMORY, os.W_OK) else arguments.scratch
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
    file = out.open("w") if out else None
    log = Log(file)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="soak-", dir=arguments.scratch) as scratch,
            tempfile.TemporaryDirectory(prefix="soak-", dir=memory) as quick,
        ):
            log.say(f"{counts}")
            log.say(f"parts: {', '.join(parts)}; again with --seed {seed}")
            soak(parts, Setting(command, Path(scratch), Path(quick), counts, random.Random(seed)), log)
        log.say(f"{log.passed} passed, {log.failed} failed, {log.skipped} skipped")
    finally:
        if file:
            file.close()
    return 1 if log.failed else 0


if __name__ == "__main__":
    sys.exit(main())
