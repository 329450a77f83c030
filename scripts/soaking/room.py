"""Targets that cannot take the dataset: full, out of inodes, read-only, taken.

Nothing half-made is published, the exit code says why, and once there is room the same command finishes the
work.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import soaking.slow as slow
from soaking.check import Check, Setting
from soaking.command import DONE, FAILED, NO_ROOM, WRONG_USAGE, Ended
from soaking.trees import differences, digest, make_tree, strays

NOT_ROOT = "mounting a tmpfs needs root"


@contextmanager
def small_disk(at: Path, options: str) -> Iterator[Path]:
    """A tmpfs with mount options such as size=2M or nr_inodes=8."""
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "packtrain-soak", str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def remount(at: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(at)], check=True)


class Target:
    """Packs one source to wherever it is told."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.source = make_tree(setting.scratch / "source", files=200, mean_bytes=40_000)
        reference = setting.scratch / "reference.pt"
        ended = self.pack(reference)
        if ended.code != DONE:
            raise RuntimeError(f"packing with room enough failed: {ended}")
        self._hashes = digest(reference)

    def pack(self, out: Path) -> Ended:
        return self._setting.command.run("pack", self.source, out, "--shards", "4", "--quiet")

    def refused(self, check: Check, out: Path, codes: set[int]) -> None:
        ended = self.pack(out)
        if ended.code not in codes:
            check.wrong.append(f"{ended}, expected exit {codes}")
        if not ended.last_line:
            check.wrong.append("nothing is said on stderr")
        if (out / "manifest.json").exists():
            check.wrong.append("something was published")

    def finished(self, check: Check, out: Path) -> None:
        """The same command, now that there is room."""
        ended = self.pack(out)
        if ended.code != DONE:
            check.wrong.append(f"with room enough: {ended}")
            return
        check.wrong += differences(self._hashes, digest(out)) + strays(out.parent, {out.name})


def room(setting: Setting) -> Iterator[Check]:
    target = Target(setting)
    yield existing_target(setting, target)
    if os.geteuid() == 0:
        yield full_disk(setting, target)
        yield no_inodes(setting, target)
        yield read_only(setting, target)
    else:
        yield Check("full disk, no inodes, read-only target", skipped=NOT_ROOT)
    yield full_while_writing(setting, target)


def full_disk(setting: Setting, target: Target) -> Check:
    check = Check("a full disk: exit 3, finished once there is room")
    with small_disk(setting.scratch / "disk", "size=2M") as disk:
        target.refused(check, disk / "out.pt", {NO_ROOM})
        remount(disk, "size=1G")
        target.finished(check, disk / "out.pt")
    return check


def no_inodes(setting: Setting, target: Target) -> Check:
    check = Check("no inodes left: exit 3, finished once there are")
    with small_disk(setting.scratch / "inodes", "size=1G,nr_inodes=4") as disk:
        target.refused(check, disk / "out.pt", {NO_ROOM})
        remount(disk, "nr_inodes=1000")
        target.finished(check, disk / "out.pt")
    return check


def read_only(setting: Setting, target: Target) -> Check:
    check = Check("a read-only target: exit 5, finished once it can be written to")
    with small_disk(setting.scratch / "read-only", "size=1G") as disk:
        remount(disk, "ro")
        target.refused(check, disk / "out.pt", {FAILED})
        remount(disk, "rw")
        target.finished(check, disk / "out.pt")
    return check


def existing_target(setting: Setting, target: Target) -> Check:
    check = Check("an existing target: exit 2, left as it was")
    out = setting.scratch / "taken"
    out.mkdir()
    (out / "mine").write_text("precious")
    target.refused(check, out, {WRONG_USAGE})
    if [path.name for path in out.iterdir()] != ["mine"] or (out / "mine").read_text() != "precious":
        check.wrong.append("the existing folder was changed")
    return check


def full_while_writing(setting: Setting, target: Target) -> Check:
    """Where the filesystem cannot allocate, the lack of room shows only in the middle."""
    check = Check("a disk that fills up while writing: exit 3, finished once there is room")
    if slow.trouble():
        check.skipped = slow.trouble()
        return check
    store, mount = setting.scratch / "store", setting.scratch / "filling"
    store.mkdir()
    with slow.mounted(store, mount, slow.Knobs(no_space_after=5_000_000, no_allocate=True)):
        target.refused(check, mount / "out.pt", {NO_ROOM})
    with slow.mounted(store, mount, slow.Knobs(no_allocate=True)):
        target.finished(check, mount / "out.pt")
    return check
