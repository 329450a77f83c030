"""The data that figures are measured on, made once and kept between runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

PHOTOS, RECORDINGS = "photos", "recordings"
KINDS = {PHOTOS: "photos", RECORDINGS: "audio"}
COUNTS = {PHOTOS: 3000, RECORDINGS: 30_000}
CLASSES = 100
TRAINING_PHOTOS = 2048
TRAINING_CLASSES = 64
# Shards of two batches of 64: whole batches for each of two workers, so that no loader drops a sample.
TRAINING_SHARD = 128
WARM_BYTES = 1 << 20  # at a time


@dataclass
class Workloads:
    """Trees and datasets below one folder; `described` says what was used."""

    packtrain: Path
    data: Path
    scale: float = 1.0
    photos: Path | None = None  # a class tree of the user's, for the figures of loading
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

    def training(self) -> TrainingPhotos:
        """Photos for the figures of loading: the user's, copied until there are enough, or made ones."""
        count = max(1, round(TRAINING_PHOTOS * self.scale / (2 * TRAINING_SHARD))) * 2 * TRAINING_SHARD
        if self.photos is None:
            tree = self.data / f"training-{count}"
            if not tree.exists():
                self._make(tree, "synth", "--samples", str(count), "--classes", str(TRAINING_CLASSES))
        else:
            tree = self.data / f"training-{self.photos.name}-{count}"
            if not tree.exists():
                copy_until(count, self.photos, tree)
        dataset = tree.with_name(tree.name + ".pt")
        shards = count // TRAINING_SHARD
        if not dataset.exists():
            subprocess.run(
                [
                    self.packtrain,
                    "pack",
                    tree,
                    dataset,
                    "--shards",
                    str(shards),
                    "--sidecars",
                    "dali",
                    "--quiet",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        warm(tree)
        warm(dataset)
        photos = TrainingPhotos.of(tree, dataset)
        source = "packtrain synth" if self.photos is None else "photos of the user, copied"
        self.described["training photos"] = (
            f"{count:,} JPEGs of {photos.bytes / count / 1e3:.3g} kB, {photos.classes} classes ({source}); "
            f"packed in {shards} shards, which WebDataset and DALI read too"
        )
        return photos

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


@dataclass(frozen=True)
class TrainingPhotos:
    """A class tree of photos and the same packed."""

    tree: Path
    dataset: Path
    samples: int
    bytes: int
    classes: int
    label_sum: int  # over all samples, classes numbered by name
    field: str  # of the photo within a packed sample

    @property
    def shards(self) -> list[Path]:
        return sorted(self.dataset.glob("*.tar"))

    @classmethod
    def of(cls, tree: Path, dataset: Path) -> TrainingPhotos:
        classes = sorted(path for path in tree.iterdir() if path.is_dir())
        files = [(path, label) for label, folder in enumerate(classes) for path in folder.iterdir()]
        with tarfile.open(next(dataset.glob("*.tar"))) as shard:
            names = (member.name.partition(".")[2] for member in shard)
            field = next(name for name in names if name in ("jpg", "jpeg"))
        return cls(
            tree,
            dataset,
            len(files),
            sum(path.stat().st_size for path, _ in files),
            len(classes),
            sum(label for _, label in files),
            field,
        )


def copy_until(count: int, photos: Path, tree: Path) -> None:
    """The class tree `photos` at `tree`, its files copied in turn until there are `count`."""
    part = tree.with_name(tree.name + ".making")
    remove(part)
    files = sorted(path for path in photos.glob("*/*") if path.is_file())
    for number in range(count):
        source = files[number % len(files)]
        folder = part / source.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / f"{source.stem}_{number // len(files)}.jpg")
    part.rename(tree)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def warm(folder: Path) -> None:
    """Reads everything of a folder, or one file, once, so that all contenders find it in memory.

    What was only just written is forgotten first: the kernel keeps written pages singly and read ones in
    runs, and a training node has read its data, not written it.
    """
    for path in [folder, *folder.rglob("*")]:
        if not path.is_file():
            continue
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while file.read(WARM_BYTES):
                pass


def evict(path: Path) -> None:
    """Nothing of a file or folder is in this machine's memory; what is below a virtual disk may still be."""
    for file_path in [path, *path.rglob("*")]:
        if file_path.is_file():
            with file_path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def touch(folder: Path) -> None:
    """Reads everything of a folder once more, just before a run.

    Some machines give up what nobody has read for a minute, and contenders that waited for their turn would
    find more or less of it, by their number of files.
    """
    reading = subprocess.Popen(["tar", "cf", "-", "-C", folder, "."], stdout=subprocess.PIPE)
    assert reading.stdout is not None  # a pipe: tar knows /dev/null, and then reads nothing
    while reading.stdout.read(WARM_BYTES):
        pass
    if reading.wait() != 0:
        raise RuntimeError(f"cannot read {folder}")
