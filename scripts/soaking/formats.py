"""Every container format at the far ends: very many tiny samples, and more bytes than 32 bits can count."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from soaking.check import Check, Setting
from soaking.command import DONE, Ended
from soaking.sizes import make_tiny_tree

LARGE_SAMPLES = 24  # that share a container's bytes


def formats(setting: Setting) -> Iterator[Check]:
    counts = setting.counts
    told = setting.command.run("doctor", "--json").json()["formats"]
    names = [known["name"] for known in told if known["write"]]
    trees = {
        f"{counts.format_samples:,} tiny samples": make_tiny_tree(
            setting.memory / "tiny", counts.format_samples
        ),
        f"{counts.format_bytes:,} bytes": make_large_tree(
            setting.scratch / "large", counts.format_bytes, setting.random
        ),
    }
    for what, tree in trees.items():
        direct = setting.scratch / "direct.pt"
        ended = pack(setting, tree, direct, "webdataset")
        if ended.code != DONE:
            yield Check(f"{what} as webdataset", wrong=[str(ended)])
            continue
        wanted = shards_of(direct)
        for name in names:
            if name != "webdataset":
                yield there_and_back(
                    setting, name, tree, wanted, f"{what} as {name}, and back to the same tar"
                )
        shutil.rmtree(direct)


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
