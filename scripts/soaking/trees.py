"""Sources to pack, and what is left when packing is over."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

LOG = "pack.log.json"  # the one file outside the promise of equal bytes


def make_tree(folder: Path, *, files: int, mean_bytes: int, classes: int = 5, seed: int = 1) -> Path:
    """A class tree of random bytes. The same arguments give the same bytes."""
    chance = random.Random(seed)
    for number in range(files):
        path = folder / f"class{number % classes}" / f"{number:05d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randint(0, 2 * mean_bytes)))
    return folder


def digest(folder: Path) -> dict[str, str]:
    """The hash of every file below a folder, but for the log."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != LOG:
            hashes[str(path.relative_to(folder))] = hashlib.blake2b(path.read_bytes()).hexdigest()
    return hashes


def differences(expected: dict[str, str], got: dict[str, str]) -> list[str]:
    wrong = [f"{name} is missing" for name in expected.keys() - got.keys()]
    wrong += [f"{name} is there and should not be" for name in got.keys() - expected.keys()]
    wrong += [
        f"{name} has other bytes" for name in expected.keys() & got.keys() if expected[name] != got[name]
    ]
    return sorted(wrong)


def strays(folder: Path, expected: set[str]) -> list[str]:
    """Names in a folder that no finished run leaves behind."""
    return [f"{path.name} was left behind" for path in sorted(folder.iterdir()) if path.name not in expected]
