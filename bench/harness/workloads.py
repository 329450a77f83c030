"""The data that figures are measured on, made once and kept between runs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

PHOTOS, RECORDINGS = "photos", "recordings"
KINDS = {PHOTOS: "photos", RECORDINGS: "audio"}
COUNTS = {PHOTOS: 3000, RECORDINGS: 30_000}
CLASSES = 100


@dataclass
class Workloads:
    """Trees and datasets below one folder; `described` says what was used."""

    packtrain: Path
    data: Path
    scale: float = 1.0
    described: dict[str, str] = field(default_factory=dict)

    def tree(self, name: str, samples: int | None = None, classes: int = CLASSES) -> Path:
        """A class tree, its pages in memory."""
        count = max(classes, int((samples or COUNTS[name]) * self.scale))
        folder = self.data / f"{name}-{count}"
        if not folder.exists():
            self._make(
                folder, "synth", "--kind", KINDS[name], "--samples", str(count), "--classes", str(classes)
            )
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        mean = sum(sizes) / len(sizes)
        self.described[name] = f"{count:,} {name} of {mean / 1e3:.3g} kB, {classes} classes (packtrain synth)"
        warm(folder)
        return folder

    def dataset(self, name: str) -> Path:
        tree = self.tree(name)
        folder = tree.with_name(tree.name + ".pt")
        if not folder.exists():
            subprocess.run(
                [self.packtrain, "pack", tree, folder, "--quiet"], check=True, stdout=subprocess.DEVNULL
            )
        warm(folder)
        return folder

    def scratch(self, name: str) -> Path:
        """A path for a contender's output; what an earlier run left there is removed."""
        path = self.data / "out" / name
        remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _make(self, folder: Path, verb: str, *options: str) -> None:
        part = folder.with_name(folder.name + ".making")
        remove(part)
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [self.packtrain, verb, part, *options, "--quiet"], check=True, stdout=subprocess.DEVNULL
        )
        part.rename(folder)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def warm(folder: Path) -> None:
    """Reads everything once, so that all contenders find it in memory."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()
