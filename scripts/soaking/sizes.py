"""Sources at the far ends: very many tiny files, and one file that is larger than 32 bits can say."""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting
from soaking.command import DONE, Ended, finish

FILES_IN_FOLDER = 1000
BYTES_PER_FILE = 200  # of memory, for one with a label of its own
BYTES_AT_ALL = 50_000_000  # the program, and the buffers of JOBS threads
JOBS = "2"  # whatever the machine has, so that the bound holds everywhere
POLL_SECONDS = 0.02
PIECE = 1 << 20


def sizes(setting: Setting) -> Iterator[Check]:
    if setting.counts.tiny_files:
        yield tiny_files(setting, setting.counts.tiny_files)
    if setting.counts.large_file_bytes:
        yield large_file(setting, setting.counts.large_file_bytes)


def make_tiny_tree(folder: Path, files: int) -> Path:
    for number in range(files):
        if number % FILES_IN_FOLDER == 0:
            below = folder / f"{number // FILES_IN_FOLDER:04d}"
            below.mkdir(parents=True)
        (below / f"{number:07d}.txt").write_text(str(number))
    return folder


def run_watched(process: subprocess.Popen[str]) -> tuple[Ended, int]:
    """Waits for a process that prints little; how it ended, and the most memory it had."""
    peak = 0
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
        time.sleep(POLL_SECONDS)
    return finish(process), peak


def tiny_files(setting: Setting, count: int) -> Check:
    check = Check(f"{count:,} tiny files")
    source = make_tiny_tree(setting.scratch / "tiny", count)
    out = setting.scratch / "tiny.pt"
    begun = time.monotonic()
    ended, peak = run_watched(setting.command.start("pack", source, out, "--jobs", JOBS, "--json", "--quiet"))
    seconds = time.monotonic() - begun
    check.said = f"{seconds:.1f} s, {peak / 1e6:.0f} MB of memory at most ({peak / count:.0f} bytes a file)"
    if ended.code != DONE:
        check.wrong.append(str(ended))
        return check
    if ended.json()["samples"] != count:
        check.wrong.append(f"{ended.json()['samples']:,} samples")
    if peak > BYTES_AT_ALL + BYTES_PER_FILE * count:
        check.wrong.append(f"memory is above {BYTES_PER_FILE} bytes a file: {peak / 1e6:.0f} MB")
    verified = setting.command.run("verify", out, "--quiet")
    if verified.code != DONE:
        check.wrong.append(f"verify: {verified}")
    return check


def large_file(setting: Setting, size: int) -> Check:
    check = Check(f"one file of {size:,} bytes")
    source, out = setting.scratch / "large", setting.scratch / "large.pt"
    (source / "huge").mkdir(parents=True)
    file = source / "huge" / "one.bin"
    with file.open("wb") as handle:  # holes, with something to tell every stretch of them apart
        for offset in range(0, size - PIECE, 64 * PIECE):
            handle.seek(offset)
            handle.write(str(offset).encode())
        handle.truncate(size)
    ended = setting.command.run("pack", source, out, "--json", "--quiet")
    if ended.code != DONE:
        check.wrong.append(str(ended))
        return check
    verified = setting.command.run("verify", out, "--quiet")
    if verified.code != DONE:
        check.wrong.append(f"verify: {verified}")
    extracted = setting.scratch / "extracted"
    back = setting.command.run("extract", out, extracted, "--quiet")
    if back.code != DONE:
        check.wrong.append(f"extract: {back}")
    elif hash_of(extracted / "huge" / "one.bin") != hash_of(file):
        check.wrong.append("extract gives other bytes")
    return check


def hash_of(file: Path) -> str:
    digest = hashlib.blake2b()
    with file.open("rb") as handle:
        while piece := handle.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
