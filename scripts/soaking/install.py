"""What users install: `pip install .` as they type it, the same without optional libraries, the wheel.

The gate installs once too, with the flags of the other builds, so that ccache has most of it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting

ROOT = Path(__file__).resolve().parents[2]
WAYS = {
    "pip install . as it stands": ["scripts/try_install.sh", "plain"],
    "pip install . without any optional library": ["scripts/try_install.sh", "minimal"],
    "a wheel with all libraries inside, used by another user": ["scripts/wheel.sh"],
}


def install(setting: Setting) -> Iterator[Check]:
    if not setting.counts.installs:
        return
    if not (ROOT / "build" / "wheelhouse").is_dir():
        yield Check("install", skipped="there is no build/wheelhouse; ./dev soak makes it")
        return
    for name, command in WAYS.items():
        run = subprocess.run(["bash", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        check = Check(name, said=run.stdout.strip().rpartition("\n")[2])
        if run.returncode:
            check.wrong.append((run.stdout + run.stderr)[-4000:])
        yield check
