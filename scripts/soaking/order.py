"""The properties of orders with their full counts: the unit tests of src/order, told to take their time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from soaking.check import SMALL, Check, Setting

TESTS = Path(__file__).resolve().parents[2] / "build" / "dev" / "src" / "order_test"


def order(setting: Setting) -> Iterator[Check]:
    check = Check("order: permutations up to 2^24, 20,000 shapes of runs")
    if replace(setting.counts, fuzz_seconds=SMALL.fuzz_seconds) == SMALL:
        check.skipped = "the unit tests run it with small counts"
    elif not os.access(TESTS, os.X_OK):
        check.skipped = f"there is no {TESTS}; run ./dev build first"
    else:
        run = subprocess.run(
            [str(TESTS), "--gtest_brief=1"],
            env={**os.environ, "PACKTRAIN_SOAK": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            check.wrong.append(run.stdout[-4000:])
    yield check
