"""Trees of files in and out of memory, damaged datasets, and the command as a function."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import packtrain as pt


def write_tree(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its relative name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def without_log(folder: Path) -> dict[str, bytes]:
    """A dataset but for the record of how it was packed, which tells the time."""
    return {name: data for name, data in read_tree(folder).items() if name != "pack.log.json"}


def small_tree() -> dict[str, bytes]:
    """Three classes, twelve samples; some of two files."""
    files = {}
    for number in range(12):
        name = f"{('ant', 'bee', 'cat')[number % 3]}/{number:03}"
        files[f"{name}.jpg"] = b"\xff\xd8\xff" + bytes([number]) * (100 + number)
        if number % 2:
            files[f"{name}.json"] = json.dumps({"number": number}).encode()
    return files


@dataclass
class Ran:
    code: int
    out: str
    error: str

    @property
    def last_line(self) -> str:
        return self.error.rstrip().rsplit("\n", 1)[-1]

    def json(self) -> Any:
        """The one object on stdout; anything else there is a failure."""
        return json.loads(self.out)


@dataclass
class Command:
    path: str

    def __call__(self, *arguments: str | Path, **options: Any) -> Ran:
        done = subprocess.run(
            [self.path, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **options,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.path, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


def damage(folder: Path, positions: list[int], split: str = "train") -> None:
    """Changes one byte of the photographs of these samples, where they lie."""
    victims = [pt.Dataset(folder, split=split)[position]["jpg"] for position in positions]
    for shard in folder.glob("*.tar"):
        content = shard.read_bytes()
        for victim in victims:
            if victim in content:
                at = content.index(victim) + len(victim) // 2
                content = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        shard.write_bytes(content)
