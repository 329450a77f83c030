"""Every container format at the far ends: very many tiny samples, and more bytes than 32 bits can count."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from soaking.check import Check, Setting
from soaking.command import DONE, Ended
from soaking.sizes import FILES_IN_FOLDER, make_tiny_tree

LARGE_SAMPLES = 24  # that share a container's bytes
ARRAYS_ONLY = {"npy"}  # takes no other files


def formats(setting: Setting) -> Iterator[Check]:
    counts = setting.counts
    told = setting.command.run("doctor", "--json").json()["formats"]
    known = {known["name"] for known in told if known["write"]} - {"webdataset"}
    of_files = sorted(known - ARRAYS_ONLY)
    tiny, large = f"{counts.format_samples:,} tiny samples", f"{counts.format_bytes:,} bytes"
    places = setting.memory, setting.scratch
    yield from all_ways(setting, tiny, make_tiny_tree(places[0] / "tiny", counts.format_samples), of_files)
    yield from all_ways(
        setting, large, make_large_tree(places[1] / "large", counts.format_bytes, setting.random), of_files
    )
    of_arrays = sorted(known & ARRAYS_ONLY)
    yield from all_ways(
        setting, tiny, make_arrays(places[0] / "tiny-arrays", counts.format_samples, 8), of_arrays
    )
    yield from all_ways(
        setting,
        large,
        make_arrays(places[1] / "large-arrays", LARGE_SAMPLES, counts.format_bytes // LARGE_SAMPLES),
        of_arrays,
    )


def all_ways(setting: Setting, what: str, tree: Path, names: list[str]) -> Iterator[Check]:
    direct = setting.scratch / "direct.pt"
    ended = pack(setting, tree, direct, "webdataset")
    if ended.code == DONE:
        wanted = shards_of(direct)
        for name in names:
            yield there_and_back(setting, name, tree, wanted, f"{what} as {name}, and back to the same tar")
        shutil.rmtree(direct)
    else:
        yield Check(f"{what} as webdataset", wrong=[str(ended)])
    shutil.rmtree(tree)


def pack(setting: Setting, source: Path, out: Path, name: str) -> Ended:
    options = [] if name == "hdf5-vlen" else ["--shard-size", "100G"]  # which is one file anyway
    return setting.command.run(
        "pack", source, out, "--format", name, "--order", "source", "--quiet", "--no-sync", *options
    )


def shards_of(dataset: Path) -> list[str]:
    """The hash of every shard, which covers all of its bytes."""
    manifest = json.loads((dataset / "manifest.json").read_text())
    return [shard["hash"] for shard in manifest["shards"]]


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


def make_arrays(folder: Path, count: int, size: int) -> Path:
    """Arrays of one shape, which differ from each other."""
    for number in range(count):
        below = folder / f"{number // FILES_IN_FOLDER:04d}"
        below.mkdir(parents=True, exist_ok=True)
        np.save(below / f"{number:07d}.npy", np.arange(number, number + size // 8, dtype=np.int64))
    return folder


def there_and_back(setting: Setting, name: str, source: Path, wanted: list[str], what: str) -> Check:
    check = Check(what)
    out, back = setting.scratch / "out.pt", setting.scratch / "back.pt"
    steps: list[tuple[str, Callable[[], Ended]]] = [
        ("pack", lambda: pack(setting, source, out, name)),
        ("verify", lambda: setting.command.run("verify", out, "--quiet")),
        ("pack it as webdataset", lambda: pack(setting, out, back, "webdataset")),
    ]
    for step, run in steps:
        ended = run()
        if ended.code != DONE:
            check.wrong.append(f"{step}: {ended}")
            break
    else:
        if shards_of(back) != wanted:
            check.wrong.append("the shards are not those of packing the source itself")
    for folder in (out, out.with_name(out.name + ".part"), back, back.with_name(back.name + ".part")):
        shutil.rmtree(folder, ignore_errors=True)
    return check
