"""Every fuzz target for a time, on a corpus that starts from fuzz/corpus/NAME and grows in the build tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from soaking.check import Check, Setting

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "asan"
EXECUTIONS = re.compile(r"number_of_executed_units:\s*(\d+)")


def fuzzing(setting: Setting) -> Iterator[Check]:
    if shutil.which("clang++-14") is None and shutil.which("clang++") is None:
        yield Check("fuzz", skipped="Clang is not installed")
        return
    built = subprocess.run([str(ROOT / "dev"), "build", "asan"], capture_output=True, text=True, check=False)
    if built.returncode:
        yield Check("fuzz", wrong=[f"the targets cannot be built: {built.stderr}"])
        return
    wanted = sorted(path.stem for path in (ROOT / "fuzz").glob("fuzz_*.cc"))
    # Each target keeps one core busy.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(lambda name: run_target(name, setting.counts.fuzz_seconds), wanted)


def run_target(name: str, seconds: int) -> Check:
    check = Check(f"{name} for {seconds} s")
    target = BUILD / "fuzz" / name
    if not os.access(target, os.X_OK):
        check.wrong.append(f"{target} was not built")
        return check
    corpus = BUILD / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = ROOT / "fuzz" / "corpus" / target.name.removeprefix("fuzz_")
    run = subprocess.run(
        [
            str(target),
            f"-max_total_time={seconds}",
            "-timeout=10",
            "-rss_limit_mb=2048",
            f"-artifact_prefix={BUILD}/{target.name}-",
            "-print_final_stats=1",
            str(corpus),
            *([str(seeds)] if seeds.is_dir() else []),
        ],
        cwd=BUILD,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if run.returncode:
        check.wrong.append(run.stderr[-4000:])
    inputs = EXECUTIONS.search(run.stderr)
    check.said = f"{int(inputs[1]):,} inputs" if inputs else ""
    return check
