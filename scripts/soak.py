"""The counts that take long: every fuzz target for a time.

`./dev soak` runs the full counts and keeps its log under bench/runs; `--small`, for `./dev test`, runs the
same with small counts and keeps no log.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "bench" / "runs"
FUZZERS = ROOT / "build" / "fuzz" / "fuzz"


@dataclass
class Counts:
    fuzz_seconds: int  # of each target


FULL = Counts(fuzz_seconds=600)
SMALL = Counts(fuzz_seconds=5)


@dataclass
class Result:
    name: str
    ok: bool
    said: str = ""
    skipped: bool = False


def fuzz(counts: Counts) -> Iterator[Result]:
    """Every target, on a corpus that starts from fuzz/corpus/TARGET and grows in the build tree."""
    if shutil.which("clang++-14") is None and shutil.which("clang++") is None:
        yield Result("fuzz", True, "left out: Clang is not installed", skipped=True)
        return
    built = subprocess.run([str(ROOT / "dev"), "build", "fuzz"], capture_output=True, text=True, check=False)
    if built.returncode:
        yield Result("fuzz build", False, built.stderr)
        return
    targets = sorted(path for path in FUZZERS.glob("fuzz_*") if os.access(path, os.X_OK))
    if not targets:
        yield Result("fuzz", False, f"there is no target in {FUZZERS}")
    for target in targets:
        corpus = FUZZERS / "corpus" / target.name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = ROOT / "fuzz" / "corpus" / target.name.removeprefix("fuzz_")
        run = subprocess.run(
            [
                str(target),
                f"-max_total_time={counts.fuzz_seconds}",
                "-timeout=10",
                "-rss_limit_mb=2048",
                f"-artifact_prefix={FUZZERS}/",
                "-print_final_stats=1",
                str(corpus),
                *([str(seeds)] if seeds.is_dir() else []),
            ],
            cwd=FUZZERS,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        said = run.stderr if run.returncode else executions(run.stderr)
        yield Result(f"fuzz {target.name}", run.returncode == 0, said)


def executions(stderr: str) -> str:
    for line in stderr.splitlines():
        if "number_of_executed_units" in line:
            return f"{int(line.split(':')[-1]):,} inputs"
    return ""


PARTS: tuple[Callable[[Counts], Iterator[Result]], ...] = (fuzz,)


def soak(counts: Counts, logs: list[TextIO]) -> int:
    passed = failed = skipped = 0

    def say(line: str) -> None:
        for log in logs:
            print(line, file=log, flush=True)

    say(f"{counts}")
    for part in PARTS:
        begun = time.monotonic()
        for result in part(counts):
            spent, begun = time.monotonic() - begun, time.monotonic()
            word = "skipped" if result.skipped else "ok" if result.ok else "FAILED"
            say(f"{result.name}: {word} ({spent:.0f} s) {result.said}".rstrip())
            skipped += int(result.skipped)
            passed += int(result.ok and not result.skipped)
            failed += int(not result.ok)
    say(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev soak", description="The counts that take long.")
    parser.add_argument("--small", action="store_true", help="small counts and no log, for ./dev test")
    parser.add_argument("--fuzz-seconds", type=int, metavar="N", help="time for each fuzz target")
    arguments = parser.parse_args()
    counts = SMALL if arguments.small else FULL
    if arguments.fuzz_seconds is not None:
        counts.fuzz_seconds = arguments.fuzz_seconds
    if arguments.small:
        return soak(counts, [sys.stdout])
    RUNS.mkdir(parents=True, exist_ok=True)
    with (RUNS / f"{time.strftime('%Y-%m-%d')}-soak.txt").open("w") as log:
        return soak(counts, [sys.stdout, log])


if __name__ == "__main__":
    sys.exit(main())
