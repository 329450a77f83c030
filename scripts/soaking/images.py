"""Crops against Pillow, many more of them than a gate has time for.

PACKTRAIN_TEST_PHOTOS may name a folder of real photographs; without it they are synthetic.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "python" / "test_transform.py"
CROPS = 10_000


def images(setting: Setting) -> Iterator[Check]:
    module = setting.command.path.parent.parent / "python"
    if not (module / "packtrain").is_dir():
        yield Check("crops", skipped=f"{setting.command.path} has no Python package beside it")
        return
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "random_crops", str(TESTS)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(module), "PACKTRAIN_TEST_CROPS": str(CROPS)},
        capture_output=True,
        text=True,
        check=False,
    )
    check = Check(f"{CROPS} random crops equal Pillow's")
    if run.returncode != 0:
        check.wrong.append((run.stdout + run.stderr)[-4000:])
    yield check
