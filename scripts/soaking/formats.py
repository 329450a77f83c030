"""Every container format at the far ends: very many tiny samples, and more bytes than 32 bits can count."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from soaking.check import Check, Setting
from soaking.command import DONE
from soaking.sizes import hash_of, make_tiny_tree

LARGE_SAMPLES = 24  # that share a container's bytes


def formats(setting: Setting) -> Iterator[Check]:
    counts = setting.counts
    names = [
        known["name"] for known in setting.command.run("doctor", "--json").json()["formats"] if known["write"]
    ]
    tiny = make_tiny_tree(setting.scratch / "tiny", counts.format_samples)
    large = make_large_tree(setting.scratch / "large", counts.format_bytes, setting.random)
    for name in names:
        yield there_and_back(setting, name, tiny, f"{counts.format_samples:,} tiny samples as {name}")
        yield there_and_back(setting, name, large, f"{counts.format_bytes:,} bytes as {name}")


def make_large_tree(folder: Path, size: int, chance: random.Random) -> Path:
    """Files that differ from each other, and whose parts differ."""
    (folder / "class").mkdir(parents=True)
    piece = chance.randbytes(1 << 20)
    for number in range(LARGE_SAMPLES):
        left = size // LARGE_SAMPLES + number
        with (folder / "class" / f"{number:03d}.bin").open("wb") as file:
            for part in range(left // len(piece) + 1):
                file.write(
                    (f"{number} {part} ".encode() + piece)[: min(len(piece), left - part * len(piece))]
                )
    return folder


def there_and_back(setting: Setting, name: str, source: Path, what: str) -> Check:
    check = Check(what)
    out, back = setting.scratch / "out.pt", setting.scratch / "back"
    for verb in (
        ("pack", source, out, "--format", name, "--shard-size", "100G"),
        ("verify", out),
        ("extract", out, back),
    ):
        arguments = (
            verb[:-2] if name == "hdf5-vlen" and verb[0] == "pack" else verb
        )  # which is one file anyway
        ended = setting.command.run(*arguments, "--quiet")
        if ended.code != DONE:
            check.wrong.append(f"{verb[0]}: {ended}")
            break
    else:
        files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
        extracted = [path for path in back.rglob("*") if path.is_file()]
        if len(extracted) != len(files):
            check.wrong.append(f"extract gives {len(extracted):,} files of {len(files):,}")
        # All of a few files, some of very many.
        for file in setting.random.sample(files, min(len(files), 200)):
            if not (back / file).exists() or hash_of(back / file) != hash_of(source / file):
                check.wrong.append(f"extract gives other bytes for {file}")
    for folder in (out, out.with_name(out.name + ".part"), back):
        shutil.rmtree(folder, ignore_errors=True)
    return check
