"""Readers that bring PyTorch: the tests that need one, in the environment that has them all.

The stage `torch` of the gate runs most of them, where PyTorch can be had; here none of them may be skipped.
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "python"
READERS = ROOT / "build" / "torch"


def interop(setting: Setting) -> Iterator[Check]:
    module = setting.command.path.parent.parent / "python"
    if not any(READERS.glob("stamp-readers-*")):
        yield Check("readers with PyTorch", skipped="they are not in build/torch; ./dev soak installs them")
        return
    if not (module / "packtrain").is_dir():
        yield Check("readers with PyTorch", skipped=f"{setting.command.path} has no Python package beside it")
        return
    files, chosen = [TESTS / "test_interop.py"], "energon or wids"
    if setting.counts.torch_tests:
        files, chosen = [*files, *sorted(TESTS.glob("test_*torch*.py"))], f"{chosen} or torch"
    report = setting.scratch / "report.xml"
    options = ["-p", "no:cacheprovider", f"--basetemp={setting.scratch / 'tests'}", f"--junitxml={report}"]
    run = subprocess.run(
        [str(READERS / "bin" / "python"), "-m", "pytest", *options, "-k", chosen, *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(module)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        yield Check("readers with PyTorch", wrong=[(run.stdout + run.stderr)[-4000:]])
        return
    for case in ElementTree.parse(report).iter("testcase"):
        check = Check(f"{case.get('name')} ({case.get('time')} s)")
        check.wrong += [
            f"{trouble.tag}: {trouble.get('message')}"
            for trouble in case
            if trouble.tag in ("failure", "error", "skipped")
        ]
        yield check
