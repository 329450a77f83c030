"""Crops against Pillow and torchvision, many more of them than the gate has time for.

PACKTRAIN_TEST_PHOTOS may name a folder of real photographs, all of which are tried then; without it they are
synthetic.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "python"
TORCH = ROOT / "build" / "torch" / "bin" / "python"
CHOSEN = "photographs"


def images(setting: Setting) -> Iterator[Check]:
    module = setting.command.path.parent.parent / "python"
    if not (module / "packtrain").is_dir():
        yield Check("crops", skipped=f"{setting.command.path} has no Python package beside it")
        return
    photos = os.environ.get("PACKTRAIN_TEST_PHOTOS")
    crops = setting.counts.crops
    if photos:
        files = sum(path.suffix.lower() in (".jpg", ".jpeg") for path in Path(photos).rglob("*"))
        what = f"{files} real photographs"
    else:
        yield Check("real photographs", skipped="PACKTRAIN_TEST_PHOTOS names no folder of them")
        what = "made photographs"
    for whose, python, file in (
        ("Pillow", Path(sys.executable), TESTS / "test_transform.py"),
        ("torchvision", TORCH, TESTS / "test_torchvision.py"),
    ):
        check = Check(f"{crops} random crops, centre crops and resizes of {what} equal {whose}'s")
        if not python.exists():
            check.skipped = "there is no build/torch; ./dev soak makes it"
            yield check
            continue
        run = subprocess.run(
            [str(python), "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-k", CHOSEN, str(file)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(module), "PACKTRAIN_TEST_CROPS": str(crops)},
            capture_output=True,
            text=True,
            check=False,
        )
        said = (run.stdout + run.stderr)[-4000:]
        if run.returncode != 0:
            check.wrong.append(said)
        elif "skipped" in said:
            check.skipped = said.strip().splitlines()[-1]
        yield check
