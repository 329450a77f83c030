"""Packing that is killed, or asked to stop, at random moments, and started again.

Whatever the moment, the next run must finish the work: the same bytes as a run that nobody disturbed, a clean
`verify`, and nothing left behind.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from soaking.check import Check, Setting
from soaking.command import DONE, STOPPED, Ended, finish
from soaking.trees import differences, digest, make_tree, strays

TASKS = 4
SHARDS = 12
SET_UP_SECONDS, SET_UP_LOOKS = 0.01, 500
LOOK_SECONDS = 0.001
USUAL = "webdataset"
ONE_FILE = ("hdf5-vlen",)  # is not cut into shards
ARRAYS_ONLY = ("npy",)  # takes no files
ONE_IN = 10  # of the kills, for each of the other formats
MOST_MORE = 20  # trials, where chance has hit no run in one of its phases


@dataclass
class Reference:
    """The source, and what packing it undisturbed gives and takes."""

    source: Path
    hashes: dict[str, str]
    seconds: float
    plan_seconds: float  # until the plan is there
    format: str = USUAL


@dataclass
class Moments:
    """Where the interrupted runs were when they were hit."""

    planning: int = 0
    writing: int = 0
    over: int = 0  # too late: the run had ended

    def note(self, out: Path, ended: Ended) -> None:
        if ended.code == DONE:
            self.over += 1
        elif part_of(out).joinpath("plan").exists():
            self.writing += 1
        else:
            self.planning += 1

    def plan(self, count: int) -> Iterator[tuple[int, bool]]:
        """Numbers of trials and whether each is to be hit while it plans: every other one, and when those
        are over, some more of a phase in which chance has hit none."""
        yield from ((number, number % 2 == 0) for number in range(count))
        for number in range(count, count + MOST_MORE):
            if self.planning and self.writing:
                return
            yield number, not self.planning

    def conclude(self, check: Check) -> Check:
        """Runs that were all hit in one phase say nothing of the other."""
        check.said = f"hit while planning {self.planning}, while writing {self.writing}, too late {self.over}"
        if self.planning == 0:
            check.wrong.append("no run was hit while planning")
        if self.writing == 0:
            check.wrong.append("no run was hit while writing")
        return check


@dataclass
class Trial:
    """One interrupted packing, in a folder of its own that is gone once it passed."""

    setting: Setting
    reference: Reference
    name: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = self.setting.scratch / self.name
        self.folder.mkdir()
        self.out = self.folder / "out.pt"

    def start(self, *more: str) -> subprocess.Popen[str]:
        return self.setting.command.start(
            *pack_arguments(self.reference.source, self.out, self.reference.format), *more
        )

    def wait(self, process: subprocess.Popen[str], *, planning: bool) -> None:
        """Until some moment of the run: before its plan is there, or behind that."""
        chance, of = self.setting.random, self.reference
        if planning:
            time.sleep(chance.uniform(0, 0.8 * of.plan_seconds))  # starting and killing take their time too
            return
        while process.poll() is None and not (part_of(self.out) / "plan").exists():
            time.sleep(LOOK_SECONDS)
        time.sleep(chance.uniform(0, 0.9 * (of.seconds - of.plan_seconds)))

    def expect_done(self, ended: Ended, what: str) -> None:
        if ended.code != DONE:
            self.wrong.append(f"{self.name}: {what}: {ended}")

    def finish_up(self) -> None:
        """Runs once more where nothing was published, and looks at what came of it all."""
        if not self.out.exists():
            self.expect_done(finish(self.start()), "the last run")
        if not self.wrong:
            found = differences(self.reference.hashes, digest(self.out)) + strays(
                self.folder, {self.out.name}
            )
            self.wrong += [f"{self.name}: {line}" for line in found]
            self.expect_done(self.setting.command.run("verify", self.out, "--quiet"), "verify")
        if not self.wrong:
            shutil.rmtree(self.folder)


def part_of(out: Path) -> Path:
    """The folder in which a dataset grows before it is published."""
    return out.with_name(out.name + ".part")


def pack_arguments(source: Path, out: Path, format_name: str) -> list[str]:
    shards = [] if format_name in ONE_FILE else ["--shards", str(SHARDS)]
    return ["pack", str(source), str(out), "--format", format_name, *shards, "--jobs", "2", "--quiet"]


def make_reference(setting: Setting, format_name: str = USUAL) -> Reference:
    source = setting.scratch / "source"
    if not source.exists():
        make_tree(source, files=3000, mean_bytes=20_000)
    out = setting.scratch / f"reference-{format_name}.pt"
    seconds = []
    for _ in range(3):
        shutil.rmtree(out, ignore_errors=True)
        begun = time.perf_counter()
        ended = setting.command.run(*pack_arguments(source, out, format_name))
        seconds.append(time.perf_counter() - begun)
        if ended.code != DONE:
            raise RuntimeError(f"an undisturbed pack failed: {ended}")
    planned = setting.scratch / f"planned-{format_name}.pt"
    plan_seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        process = setting.command.start(*pack_arguments(source, planned, format_name), "--plan")
        while process.poll() is None and not (part_of(planned) / "plan").exists():
            pass  # a moment of sleep would be a good part of it
        plan_seconds.append(time.perf_counter() - begun)
        finish(process)
        shutil.rmtree(part_of(planned))
    return Reference(source, digest(out), sorted(seconds)[1], min(plan_seconds), format_name)


def wait_until_it_listens(process: subprocess.Popen[str], to: signal.Signals) -> None:
    """A process that has not yet set up its signals ends by them, as every process does."""
    for _ in range(SET_UP_LOOKS):
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return
        caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
        if int(caught, 16) >> (to - 1) & 1 or process.poll() is not None:
            return
        time.sleep(SET_UP_SECONDS)


def interrupt(process: subprocess.Popen[str], with_signal: signal.Signals) -> Ended:
    if with_signal != signal.SIGKILL:
        wait_until_it_listens(process, with_signal)
    if process.poll() is None:
        process.send_signal(with_signal)
    return finish(process)


def kill_one(setting: Setting, reference: Reference, count: int) -> Check:
    """One process, killed, every other time while it plans; every third time the run after it as well."""
    check = Check(f"{reference.format}: SIGKILL of one process at {count} random moments")
    moments = Moments()
    for number, planning in moments.plan(count):
        trial = Trial(setting, reference, f"kill-{reference.format}-{number}")
        process = trial.start()
        trial.wait(process, planning=planning)
        moments.note(trial.out, interrupt(process, signal.SIGKILL))
        if number % 3 == 0 and not trial.out.exists():
            process = trial.start()
            trial.wait(process, planning=False)
            interrupt(process, signal.SIGKILL)
        trial.finish_up()
        check.wrong += trial.wrong
    return moments.conclude(check)


def kill_one_of_four(setting: Setting, reference: Reference, count: int) -> Check:
    """Four tasks pack together, one is killed and started again at once, as a scheduler would."""
    check = Check(f"SIGKILL of one of {TASKS} tasks at {count} random moments")
    moments = Moments()
    for number, planning in moments.plan(count):
        trial = Trial(setting, reference, f"task-kill-{number}")
        tasks = [trial.start("--task", f"{task}/{TASKS}") for task in range(TASKS)]
        victim = setting.random.randrange(TASKS)
        trial.wait(tasks[victim], planning=planning)
        moments.note(trial.out, interrupt(tasks[victim], signal.SIGKILL))
        if not trial.out.exists():
            tasks[victim] = trial.start("--task", f"{victim}/{TASKS}")
        for task, process in enumerate(tasks):
            ended = finish(process)
            if ended.code not in (DONE, -signal.SIGKILL):
                trial.wrong.append(f"{trial.name}: task {task}: {ended}")
        trial.finish_up()
        check.wrong += trial.wrong
    return moments.conclude(check)


def terminate_one(setting: Setting, reference: Reference, count: int) -> Check:
    """A process that is asked to stop says that it can be resumed, and can be."""
    check = Check(f"SIGTERM at {count} random moments")
    moments = Moments()
    for number, planning in moments.plan(count):
        trial = Trial(setting, reference, f"term-{number}")
        process = trial.start()
        trial.wait(process, planning=planning)
        ended = interrupt(process, signal.SIGTERM)
        moments.note(trial.out, ended)
        if ended.code not in (DONE, STOPPED):
            trial.wrong.append(f"{trial.name}: exit {ended.code} instead of {STOPPED}: {ended.last_line}")
        if ended.code == STOPPED and not ended.last_line:
            trial.wrong.append(f"{trial.name}: it does not say how to go on")
        trial.finish_up()
        check.wrong += trial.wrong
    return moments.conclude(check)


def kills(setting: Setting) -> Iterator[Check]:
    reference = make_reference(setting)
    yield kill_one(setting, reference, setting.counts.kills)
    yield kill_one_of_four(setting, reference, setting.counts.kills)
    yield terminate_one(setting, reference, setting.counts.terminations)
    for name in other_formats(setting):
        yield kill_one(setting, make_reference(setting, name), max(2, setting.counts.kills // ONE_IN))


def other_formats(setting: Setting) -> list[str]:
    """Those that this build writes, but for the usual one."""
    told = setting.command.run("doctor", "--json").json()["formats"]
    return [known["name"] for known in told if known["write"] and known["name"] not in (USUAL, *ARRAYS_ONLY)]
