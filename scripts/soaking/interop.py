"""Readers that bring PyTorch: the tests that need one, in the environment that has them all.

In `./dev test` those tests are skipped, as .venv has no PyTorch; here none of them may be.
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "tests" / "python" / name for name in ("test_interop.py", "test_loader_torch.py")]
READERS = ROOT / "build" / "readers" / "bin" / "python"
CHOSEN = "(test_interop and (energon or wids)) or test_loader_torch"


def interop(setting: Setting) -> Iterator[Check]:
    module = setting.command.path.parent.parent / "python"
    if not READERS.exists():
        yield Check("readers with PyTorch", skipped="there is no build/readers; ./dev soak makes it")
        return
    if not (module / "packtrain").is_dir():
        yield Check("readers with PyTorch", skipped=f"{setting.command.path} has no Python package beside it")
        return
    report = setting.scratch / "report.xml"
    options = ["-p", "no:cacheprovider", f"--basetemp={setting.scratch / 'tests'}", f"--junitxml={report}"]
    run = subprocess.run(
        [str(READERS), "-m", "pytest", *options, "-k", CHOSEN, *map(str, FILES)],
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
