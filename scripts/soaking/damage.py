"""Damaged datasets and tars: flipped bits, missing ends. None may pass as sound, none may crash a reader."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from soaking.check import Check, Setting
from soaking.command import BAD_DATA, DONE, WRONG_USAGE, Ended
from soaking.trees import LOG, make_tree

HEADER_BYTES = 512
CHECKSUM_FIELD = range(148, 156)


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    """The file with one bit flipped, for as long as the block lasts."""
    with file.open("r+b", buffering=0) as handle:

        def flip() -> None:
            handle.seek(bit // 8)
            byte = handle.read(1)[0]
            handle.seek(bit // 8)
            handle.write(bytes([byte ^ (1 << bit % 8)]))

        flip()
        try:
            yield
        finally:
            flip()


@contextmanager
def cut(file: Path, size: int) -> Iterator[None]:
    """The file cut to `size` bytes, for as long as the block lasts."""
    whole = file.read_bytes()
    file.write_bytes(whole[:size])
    try:
        yield
    finally:
        file.write_bytes(whole)


def pack_small(setting: Setting, name: str, *, files: int, mean_bytes: int, shards: int) -> Path:
    source = make_tree(setting.scratch / f"{name}-source", files=files, mean_bytes=mean_bytes)
    out = setting.scratch / f"{name}.pt"
    options = ["--shards", str(shards), "--sidecars", "wids,dali,energon", "--quiet"]
    ended = setting.command.run("pack", source, out, *options)
    if ended.code != DONE:
        raise RuntimeError(f"packing failed: {ended}")
    return out


def promised_files(dataset: Path) -> list[Path]:
    return sorted(path for path in dataset.rglob("*") if path.is_file() and path.name != LOG)


def flips(setting: Setting) -> Iterator[Check]:
    """Half of the flips hit a file each with equal chance, half a byte each: small files get their share."""
    count = setting.counts.flips
    check = Check(f"verify finds each of {count} single flipped bits")
    dataset = pack_small(setting, "flips", files=60, mean_bytes=3000, shards=3)
    files = [path for path in promised_files(dataset) if path.stat().st_size]
    sizes = [path.stat().st_size for path in files]
    hits = dict.fromkeys(files, 0)
    for number in range(count):
        file = setting.random.choices(files, sizes if number % 2 else None)[0]
        bit = setting.random.randrange(file.stat().st_size * 8)
        hits[file] += 1
        with flipped(file, bit):
            ended = setting.command.run("verify", dataset, "--quiet")
        where = f"bit {bit} of {file.relative_to(dataset)}"
        if ended.code != BAD_DATA:
            check.wrong.append(f"{where}: {ended}")
        elif file.name not in ended.out + ended.err:
            check.wrong.append(f"{where}: found, but {file.name} is not named: {ended}")
    if setting.command.run("verify", dataset, "--quiet").code != DONE:
        check.wrong.append("the dataset is damaged after the last flip was taken back")
    check.said = ", ".join(f"{path.relative_to(dataset)} {hits[path]}" for path in files)
    yield check


def chosen(setting: Setting, everything: Iterable[int], count: int) -> list[int]:
    """`count` of them by chance, or all where it is 0."""
    values = list(everything)
    return values if count == 0 or count >= len(values) else setting.random.sample(values, count)


def truncations(setting: Setting) -> Iterator[Check]:
    dataset = pack_small(setting, "cuts", files=3, mean_bytes=300, shards=1)
    shard = next(iter(dataset.glob("*.tar")))
    sizes = chosen(setting, range(shard.stat().st_size), setting.counts.truncations)
    check = Check(f"verify finds a shard cut short at {len(sizes)} places")
    for size in sizes:
        with cut(shard, size):
            ended = setting.command.run("verify", dataset, "--quiet")
        if ended.code != BAD_DATA:
            check.wrong.append(f"{shard.name} cut to {size} bytes: {ended}")
    yield check

    check = Check(f"index refuses a tar cut short at {len(sizes)} places")
    foreign = Tar(setting, shard)
    for size in sizes:
        with cut(foreign.path, size):
            ended = foreign.index()
        if ended.code not in foreign.codes_when_cut(size):
            check.wrong.append(f"cut to {size} bytes: {ended}")
    yield check


class Tar:
    """A copy of a shard without its dataset: a foreign container, with no checks but its headers'."""

    def __init__(self, setting: Setting, shard: Path) -> None:
        folder = setting.memory / "foreign"
        folder.mkdir(exist_ok=True)
        self.path = folder / shard.name
        shutil.copyfile(shard, self.path)
        self._setting = setting
        self._out = folder / "index"
        with tarfile.open(self.path) as archive:
            members = archive.getmembers()
        self.headers = [member.offset for member in members]
        last = members[-1]
        self.end = last.offset_data + -(-last.size // HEADER_BYTES) * HEADER_BYTES

    def index(self, *options: str) -> Ended:
        shutil.rmtree(self._out, ignore_errors=True)
        return self._setting.command.run(
            "index", self.path, "--out", self._out, "--json", "--quiet", *options
        )

    def codes_when_cut(self, size: int) -> set[int]:
        """Between two members nothing tells a cut from missing end blocks, which many writers leave out."""
        if size < HEADER_BYTES:
            return {BAD_DATA, WRONG_USAGE}  # nothing left by which to tell what it is
        if size in self.headers or size == self.end:
            return {DONE}
        return {DONE, BAD_DATA} if size > self.end else {BAD_DATA}


def header_flips(setting: Setting) -> Iterator[Check]:
    dataset = pack_small(setting, "headers", files=3, mean_bytes=300, shards=1)
    foreign = Tar(setting, next(iter(dataset.glob("*.tar"))))
    sound = foreign.index().json()
    bits = [header * 8 + bit for header in foreign.headers for bit in range(HEADER_BYTES * 8)]
    bits = chosen(setting, bits, setting.counts.header_flips)
    check = Check(f"index refuses a tar with a flipped bit in a header, {len(bits)} bits")
    harmless = 0
    for bit in bits:
        header = bit // 8 // HEADER_BYTES * HEADER_BYTES
        where = f"bit {bit - header * 8} of the header at {header}"
        with flipped(foreign.path, bit):
            ended = foreign.index()
        if ended.code == DONE and bit // 8 - header in CHECKSUM_FIELD and same_index(ended, sound):
            harmless += 1  # another way to write the same number
        elif ended.code != BAD_DATA:
            check.wrong.append(f"{where}: {ended}")
        elif str(header) not in ended.out + ended.err:
            check.wrong.append(f"{where}: the offset is not named: {ended}")
    check.said = f"{harmless} of them change how the checksum is written, not what it says"
    yield check
    yield recovery(foreign, sound["samples"])


def recovery(foreign: Tar, samples: int) -> Check:
    """A header whose name no longer fits its checksum takes no more than its own sample with it."""
    check = Check(f"index --recover goes on behind each of {len(foreign.headers)} damaged headers")
    for header in foreign.headers:
        with flipped(foreign.path, header * 8):
            ended = foreign.index("--recover")
        if ended.code != BAD_DATA:
            check.wrong.append(f"the header at {header}: {ended}, expected exit {BAD_DATA} for what was lost")
        elif ended.json().get("samples", 0) < samples - 1:
            check.wrong.append(
                f"the header at {header}: more than one sample of {samples} is lost: {ended.out}"
            )
    return check


def same_index(ended: Ended, sound: dict[str, object]) -> bool:
    return bool(ended.json()["samples"] == sound["samples"])
