"""Sources that change, vanish or cannot be read while they are packed.

All else is packed, nothing is published, the file is named with exit 1. Once the file is as it was, the same
command finishes the work; with --skip-bad it does so without the file.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import soaking.slow as slow
from soaking.check import Check, Setting
from soaking.command import BAD_DATA, DONE, Ended, finish
from soaking.trees import differences, digest, make_tree

FILES = 600
PLAN_SECONDS = 60
WAIT_SECONDS = 0.0005


def vanish(file: Path) -> None:
    file.unlink()


def grow(file: Path) -> None:
    with file.open("ab") as handle:
        handle.write(b"more")


def shrink(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def rewrite(file: Path) -> None:
    """Other bytes, equally many: only the time of change tells."""
    file.write_bytes(bytes(file.stat().st_size))


@dataclass(frozen=True)
class Trouble:
    what: str
    apply: Callable[[Path], None]


TROUBLES = (
    Trouble("vanishes", vanish),
    Trouble("grows", grow),
    Trouble("shrinks", shrink),
    Trouble("is rewritten", rewrite),
)


class ChangingSource:
    """A source whose last file changes once the plan stands and before the file is read."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.folder = make_tree(setting.scratch / "source", files=FILES, mean_bytes=40_000)
        self.victim = max(path for path in self.folder.rglob("*.bin"))
        self._bytes = self.victim.read_bytes()
        self._times = self.victim.stat().st_mtime_ns
        reference = setting.scratch / "reference.pt"
        ended = setting.command.run(*self._arguments(reference))
        if ended.code != DONE:
            raise RuntimeError(f"an undisturbed pack failed: {ended}")
        self.hashes = digest(reference)

    def _arguments(self, out: Path) -> list[str]:
        return [
            "pack",
            str(self.folder),
            str(out),
            "--shards",
            "4",
            "--order",
            "source",
            "--jobs",
            "1",
            "--quiet",
        ]

    def restore(self) -> None:
        self.victim.write_bytes(self._bytes)
        os.utime(self.victim, ns=(self._times, self._times))

    def pack(self, out: Path, *options: str) -> Ended:
        return self._setting.command.run(*self._arguments(out), *options)

    def pack_while(self, trouble: Trouble, out: Path, *options: str) -> Ended:
        """Holds the process when its plan is there, so that the change comes neither early nor late."""
        process = self._setting.command.start(*self._arguments(out), *options)
        plan = out.with_name(out.name + ".part") / "plan"
        deadline = time.monotonic() + PLAN_SECONDS
        while not plan.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(WAIT_SECONDS)
        process.send_signal(signal.SIGSTOP)
        trouble.apply(self.victim)
        process.send_signal(signal.SIGCONT)
        return finish(process)


def changes(setting: Setting) -> Iterator[Check]:
    source = ChangingSource(setting)
    for number, trouble in enumerate(TROUBLES):
        check = Check(f"a file that {trouble.what} during a pack: named, nothing published, resumable")
        out = setting.scratch / f"changed-{number}.pt"
        ended = source.pack_while(trouble, out)
        if ended.code != BAD_DATA:
            check.wrong.append(f"{ended}, expected exit {BAD_DATA}")
        if source.victim.name not in ended.out + ended.err:
            check.wrong.append(f"{source.victim.name} is not named: {ended}")
        if out.exists():
            check.wrong.append("it was published all the same")
        source.restore()
        again = source.pack(out)
        if again.code == DONE:
            check.wrong += differences(source.hashes, digest(out))
        else:
            check.wrong.append(f"after the file was restored: {again}")
        yield check

        check = Check(f"a file that {trouble.what} during a pack with --skip-bad 1: left out")
        out = setting.scratch / f"skipped-{number}.pt"
        ended = source.pack_while(trouble, out, "--skip-bad", "1", "--json")
        source.restore()
        if ended.code != DONE:
            check.wrong.append(str(ended))
        else:
            if ended.json()["samples"] != FILES - 1:
                check.wrong.append(f"{ended.json()['samples']} samples instead of {FILES - 1}")
            verified = setting.command.run("verify", out, "--quiet")
            if verified.code != DONE:
                check.wrong.append(f"verify: {verified}")
        yield check
    yield unreadable(setting, source)


def unreadable(setting: Setting, source: ChangingSource) -> Check:
    check = Check("files that cannot be read: named, nothing published, resumable")
    if slow.trouble():
        check.skipped = slow.trouble()
        return check
    mount, out = setting.scratch / "failing", setting.scratch / "unreadable.pt"
    arguments = ["pack", str(mount), str(out), "--shards", "4", "--order", "source", "--quiet"]
    with slow.mounted(source.folder, mount, slow.Knobs(fail_every=100)):
        ended = setting.command.run(*arguments)
    if ended.code != BAD_DATA:
        check.wrong.append(f"{ended}, expected exit {BAD_DATA}")
    if ".bin" not in ended.out + ended.err:
        check.wrong.append(f"no file is named: {ended}")
    if out.exists():
        check.wrong.append("it was published all the same")
    with slow.mounted(source.folder, mount, slow.Knobs()):
        again = setting.command.run(*arguments)
    if again.code == DONE:
        check.wrong += differences(source.hashes, digest(out))
    else:
        check.wrong.append(f"once they could be read: {again}")
    return check
