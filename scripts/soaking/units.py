"""Unit tests that have more to try than a gate has time for, told to take their time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from soaking.check import SMALL, Check, Setting

BUILDS = Path(__file__).resolve().parents[2] / "build"
ORDER = [BUILDS / "dev" / "src" / "order_test"]
# With AddressSanitizer where it is built: what is read out of bounds seldom ends in a crash without it.
CONTAINERS = [BUILDS / build / "tests" / "container_conformance_test" for build in ("asan", "dev")]


def with_full_counts(setting: Setting, name: str, programs: list[Path], *options: str) -> Check:
    check = Check(name)
    program = next((program for program in programs if os.access(program, os.X_OK)), None)
    if replace(setting.counts, fuzz_seconds=SMALL.fuzz_seconds) == SMALL:
        check.skipped = "the unit tests run it with small counts"
    elif program is None:
        check.skipped = f"there is no {programs[-1]}; run ./dev build first"
    else:
        run = subprocess.run(
            [str(program), "--gtest_brief=1", *options],
            env={**os.environ, "PACKTRAIN_SOAK": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            check.wrong.append((run.stdout + run.stderr)[-4000:])
    return check


def order(setting: Setting) -> Iterator[Check]:
    yield with_full_counts(setting, "order: permutations up to 2^24, 20,000 shapes of runs", ORDER)


def containers(setting: Setting) -> Iterator[Check]:
    yield with_full_counts(
        setting,
        "containers: 3,000 flipped bits in each of them",
        CONTAINERS,
        "--gtest_filter=*FlippedBitsNeverCrash*",
    )
