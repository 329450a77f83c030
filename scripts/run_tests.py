"""The gate behind `./dev test`: stages run one after another, each with its time, and one summary at the end.

A stage's output goes to build/logs/STAGE.log; its end is shown where the stage failed. Runs inside .venv,
which ./dev sets up.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
SHOWN_LINES = 80
PYTHON_TESTS = ROOT / "tests" / "python"
TORCH_PYTHON = ROOT / "build" / "torch" / "bin" / "python"
COUNTS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")


@dataclass
class Outcome:
    """What one stage counted. A stage that broke before it could count has one failure."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        words = f"{self.passed} passed, {self.failed} failed"
        return f"{words}, {self.skipped} skipped" if self.skipped else words


Preparation = tuple[str, ...]  # the words of a ./dev that makes ready what a stage needs
TORCH: Preparation = ("setup", "torch")


class Ahead:
    """A preparation that begins while tests of other stages run, and gives way to them."""

    def __init__(self, words: Preparation, after: Ahead | None) -> None:
        self.words, self.after = words, after
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.code, self.output = 1, f"./dev {' '.join(words)} did not begin\n"

    def run(self) -> None:
        if self.after:
            self.after.thread.join()
        command = [
            *(["nice", "-n", "19"] if shutil.which("nice") else []),
            str(ROOT / "dev"),
            *self.words,
        ]
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.code, self.output = done.returncode, f"$ {' '.join(command)}\n{done.stdout}"

    def result(self) -> tuple[int, str]:
        self.thread.join()
        return self.code, self.output


AHEAD: dict[Preparation, Ahead] = {}


def prepare_ahead(preparations: Sequence[Preparation]) -> None:
    """One after the other: each uses all cores that are free."""
    before = None
    for words in preparations:
        before = AHEAD[words] = Ahead(words, before)
        before.thread.start()


class StageRun:
    """The commands of one stage, all of whose output is appended to its log."""

    def __init__(self, name: str) -> None:
        self.reports = LOGS / name
        self.log = LOGS / f"{name}.log"
        shutil.rmtree(self.reports, ignore_errors=True)
        self.reports.mkdir(parents=True)
        self.log.write_text("")

    def call(self, *command: str | Path, **environment: str) -> int:
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(map(str, command))}\n")
            log.flush()
            return subprocess.run(
                [str(word) for word in command],
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                check=False,
            ).returncode

    def counted(self, *command: str | Path, **environment: str) -> Outcome:
        """Runs a script whose last line of the form `N passed, M failed` is its count."""
        code = self.call(*command, **environment)
        counts = COUNTS.findall(self.log.read_text(errors="replace"))
        if not counts:
            return Outcome(passed=int(code == 0), failed=int(code != 0))
        passed, failed, skipped = (int(count or 0) for count in counts[-1])
        return Outcome(passed, failed + int(code != 0 and failed == 0), skipped)

    def prepare(self, *words: str) -> bool:
        if words in AHEAD:
            code, output = AHEAD[words].result()
            with self.log.open("a") as log:
                log.write(output)
            return code == 0
        return self.call(ROOT / "dev", *words) == 0

    def build(self, preset: str) -> bool:
        return self.prepare("build", preset)


def count_junit(files: Sequence[Path]) -> Outcome:
    """Adds up JUnit files as GoogleTest and pytest write them."""
    total = Outcome()
    for file in files:
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                total.failed += 1
            elif case.find("skipped") is not None or case.get("status") == "notrun":
                total.skipped += 1
            else:
                total.passed += 1
    return total


def cpp_tests(run: StageRun, preset: str) -> Outcome:
    if not run.build(preset):
        return Outcome(failed=1)
    # ThreadSanitizer does not see that the kernel hands io_uring's completions over; tests that ask for it
    # by name use it all the same. What a single thread does with damaged bytes is no matter for it: the other
    # builds try all of that.
    for_preset = {"PACKTRAIN_IO": "pool", "PACKTRAIN_FEW": "1"} if preset == "tsan" else {}
    code = run.call(
        "ctest",
        "--test-dir",
        f"build/{preset}",
        "--output-on-failure",
        "--no-tests=error",
        "-j2",
        GTEST_OUTPUT=f"xml:{run.reports}/",
        GTEST_BRIEF="1",  # the log tells of failures alone; the reports have the rest
        ASAN_OPTIONS="detect_stack_use_after_return=1",
        UBSAN_OPTIONS="print_stacktrace=1",
        TSAN_OPTIONS="second_deadlock_stack=1",
        **for_preset,
    )
    outcome = count_junit(sorted(run.reports.glob("*.xml")))
    # A program that crashed has written no report, yet it failed.
    return outcome if code == 0 or outcome.failed else outcome + Outcome(failed=1)


def python_tests(run: StageRun, *options: str | Path, python: str | Path = sys.executable) -> Outcome:
    if not run.build("dev"):
        return Outcome(failed=1)
    report = run.reports / "pytest.xml"
    code = run.call(
        python,
        "-m",
        "pytest",
        "-n2",
        "--dist=loadfile",  # what a file makes for its tests is made once
        f"--junitxml={report}",
        *options,
        PYTHONPATH=str(ROOT / "build/dev/python"),
        PACKTRAIN_COMMAND=str(ROOT / "build/dev/tools/packtrain"),
    )
    outcome = count_junit([report]) if report.exists() else Outcome()
    return outcome if code == 0 or outcome.failed else outcome + Outcome(failed=1)


def torch_tests(run: StageRun) -> Outcome:
    """In an environment of their own: .venv has no PyTorch, so that the stage `python` skips these files."""
    run.prepare(*TORCH)
    if not (TORCH_PYTHON.exists() and run.call(TORCH_PYTHON, "-c", "import pytest, torch, xdist") == 0):
        print(f"{'':8} left out: build/torch could not be made; build/logs/torch.log says why", flush=True)
        return Outcome(skipped=1)
    return python_tests(run, *sorted(PYTHON_TESTS.glob("test_*torch*.py")), python=TORCH_PYTHON)


def checks(run: StageRun) -> Outcome:
    if not run.build("dev"):
        return Outcome(failed=1)
    return run.counted(sys.executable, "scripts/check.py")


def documentation(run: StageRun) -> Outcome:
    if not run.build("dev"):
        return Outcome(failed=1)
    return run.counted(
        sys.executable,
        "scripts/run_doc_blocks.py",
        PATH=f"{ROOT / 'build/dev/tools'}:{os.environ['PATH']}",
        PYTHONPATH=str(ROOT / "build/dev/python"),
    )


def small_soak(run: StageRun) -> Outcome:
    if not run.build("dev"):
        return Outcome(failed=1)
    return run.counted(sys.executable, "scripts/soak.py", "--small")


def demo(run: StageRun) -> Outcome:
    if not run.build("dev"):
        return Outcome(failed=1)
    run.prepare(*TORCH)  # without it the race against torch is left out
    return run.counted("bash", "scripts/demo.sh", "build/dev")


def pip_install(run: StageRun) -> Outcome:
    return run.counted("bash", "scripts/try_install.sh")


@dataclass
class Stage:
    name: str
    what: str
    run: Callable[[StageRun], Outcome]
    quick: Callable[[StageRun], Outcome] | None = None  # what --quick runs of it
    ahead: Preparation = ()  # what it needs that no stage before it does


STAGES = [
    Stage("unit", "C++ tests", lambda run: cpp_tests(run, "dev"), lambda run: cpp_tests(run, "dev")),
    Stage("python", "Python tests", python_tests, lambda run: python_tests(run, "-m", "not slow")),
    Stage("torch", "Python tests with PyTorch", torch_tests, ahead=TORCH),
    Stage("check", "format, lint, types, includes", checks),
    Stage("docs", "code blocks of README and docs", documentation),
    Stage("demo", "the demo", demo),
    Stage(
        "asan",
        "C++ tests with AddressSanitizer and UBSan",
        lambda run: cpp_tests(run, "asan"),
        ahead=("build", "asan"),
    ),
    Stage(
        "tsan",
        "C++ tests with ThreadSanitizer",
        lambda run: cpp_tests(run, "tsan"),
        ahead=("build", "tsan"),
    ),
    Stage(
        "minimal",
        "C++ tests without any optional library",
        lambda run: cpp_tests(run, "minimal"),
        ahead=("build", "minimal"),
    ),
    Stage("pip", "pip install . into a fresh environment", pip_install),
    Stage("soak", "small counts of kills, flips and fuzzing", small_soak),
]


def show_log(log: Path) -> None:
    lines = log.read_text(errors="replace").splitlines()
    print(f"    the last lines of {log.relative_to(ROOT)}:")
    for line in lines[-SHOWN_LINES:]:
        print(f"    | {line}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the inner loop: one build, no slow tests")
    parser.add_argument("--only", nargs="+", metavar="STAGE", choices=[s.name for s in STAGES])
    parser.add_argument("--list", action="store_true", help="name the stages and stop")
    arguments = parser.parse_args()
    if arguments.list:
        for stage in STAGES:
            print(f"{stage.name:8} {stage.what}")
        return 0

    stages = [
        stage
        for stage in STAGES
        if (stage.quick or not arguments.quick) and (not arguments.only or stage.name in arguments.only)
    ]
    total = Outcome()
    broken: list[str] = []
    started = time.monotonic()
    for number, stage in enumerate(stages):
        if number == 1:  # the first has built what most of the others need
            prepare_ahead([later.ahead for later in stages[number:] if later.ahead])
        work = stage.quick if arguments.quick and stage.quick else stage.run
        begun = time.monotonic()
        print(f"{stage.name:8} {stage.what} …", flush=True)
        run = StageRun(stage.name)
        outcome = work(run)
        total += outcome
        print(f"{'':8} {outcome}  ({time.monotonic() - begun:.0f} s)", flush=True)
        if outcome.failed:
            broken.append(stage.name)
            show_log(run.log)
    minutes, seconds = divmod(int(time.monotonic() - started), 60)
    if broken:
        print(f"failed: {', '.join(broken)}; again with ./dev test --only {' '.join(broken)}")
    print(f"{total} in {minutes} min {seconds} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
