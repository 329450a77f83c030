"""The unit tests of a build for 64-bit Arm, in an emulator: the NEON kernels, and the core around them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from soaking.check import SMALL, Check, Setting

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "arm64"
LIBRARIES = ROOT / "build" / "arm64-root"
SECONDS = 3600  # of one program
# qemu 7.2 ends in an assertion of its own where a child of fork() starts a thread, which these tests do.
BEYOND_THE_EMULATOR = "Backends/ForkTest.*/pool"


def missing() -> str:
    """Why it cannot be run, and what to do about it; empty where it can."""
    for tool, package in (("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")):
        if shutil.which(tool) is None:
            return f"there is no {tool}: sudo apt-get install {package}, then ./dev build arm64"
    if not (BUILD / "src" / "decode_test").is_file():
        return "there is no build/arm64: ./dev build arm64"
    return ""


def run(program: Path, tests: str) -> tuple[list[str], str]:
    """The names of the tests that failed, and the end of what was said; a crash or a hang has no names."""
    command = ["qemu-aarch64", "-L", str(LIBRARIES), str(program), f"--gtest_filter={tests}"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return [], f"did not end within {SECONDS} s"
    marks = [line for line in ended.stdout.splitlines() if line.startswith("[  FAILED  ] ")]
    failed = sorted({mark.split()[3].rstrip(",") for mark in marks if "." in mark.split()[3]})
    return failed, "" if ended.returncode == 0 else (ended.stdout + ended.stderr)[-4000:]


def emulate(program: Path) -> Check:
    """What fails is tried once more, alone: an emulator is slow, and a few tests look at the clock."""
    check = Check(f"arm: {program.name}")
    if program.name == "io_test":
        check.said = f"left out, as this emulator cannot run them: {BEYOND_THE_EMULATOR}"
    failed, trouble = run(program, f"*-{BEYOND_THE_EMULATOR}")
    if failed:
        check.said = f"tried again: {', '.join(failed)}"
        failed, trouble = run(program, ":".join(failed))
    if trouble:
        check.wrong.append(trouble)
    return check


def arm(setting: Setting) -> Iterator[Check]:
    small = replace(setting.counts, fuzz_seconds=SMALL.fuzz_seconds) == SMALL
    why = "it takes a build of its own, which ./dev soak makes" if small else missing()
    if why:
        yield Check("arm: unit tests", skipped=why)
        return
    for program in sorted((BUILD / "src").glob("*_test")):
        yield emulate(program)
