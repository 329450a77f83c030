"""What is in a dataset, and what this machine offers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _core
from ._numpy import np
from .calls import told


@dataclass(frozen=True)
class Info:
    """What is in a dataset. No payload was read for it."""

    path: str
    id: str
    """The hash of the manifest: equal for equal datasets."""
    samples: int
    bytes: int
    """The size of all shards."""
    shards: int
    formats: list[str]
    fields: list[str]
    splits: dict[str, int]
    """Every split and its number of samples."""
    classes: dict[str, int]
    """Every class and its number of samples; empty if labels are plain numbers or absent."""
    labelled: int
    """How many samples have a label."""
    smallest_shard_samples: int
    largest_shard_samples: int


def info(
    dataset: str | os.PathLike[str] | _core.Dataset,
    *,
    progress: Callable[[_core.Progress], object] | None = None,
) -> Info:
    """What is in a dataset: counts, fields, splits, classes, evenness of shards.

    `progress` is called while containers without an index are indexed, which is all that takes time.
    """
    data = dataset if isinstance(dataset, _core.Dataset) else _core.Dataset(dataset, progress=progress)
    labels: Any = data.labels
    known = labels[labels != _core.NO_LABEL]
    names = data.classes
    counts = np.bincount(known[(known >= 0) & (known < len(names))], minlength=len(names))
    shards = data.shards
    return Info(
        path=data.path,
        id=data.id,
        samples=len(data),
        bytes=sum(shard.bytes for shard in shards),
        shards=len(shards),
        formats=sorted({shard.format for shard in shards}),
        fields=data.fields,
        splits=data.splits,
        classes={name: int(count) for name, count in zip(names, counts)},
        labelled=len(known),
        smallest_shard_samples=min((shard.samples for shard in shards), default=0),
        largest_shard_samples=max((shard.samples for shard in shards), default=0),
    )


@dataclass(frozen=True)
class Doctor:
    """What this machine offers to this process."""

    version: str
    granted: _core.Grant
    place: _core.Place
    io_uring_trouble: str
    """Why io_uring is not used here; empty if it works."""
    formats: dict[str, str]
    """Every container format, and what it is."""
    codecs: dict[str, bool]
    """Every codec, and whether it is compiled in."""
    images: dict[str, bool]
    """Every kind of image, and whether it can be decoded."""
    kernels: list[str]
    """Instruction sets that images can be transformed with, the best first."""
    audio: dict[str, bool]
    """Every kind of audio, and whether it can be decoded."""


def doctor(path: str | os.PathLike[str] = ".") -> Doctor:
    """What this machine offers: cores and memory granted, what `path` lies on, formats and codecs."""
    return Doctor(
        version=_core.version(),
        granted=_core.granted(),
        place=told(_core.place_of)(path),
        io_uring_trouble=_core.io_uring_trouble(),
        formats=_core.formats(),
        codecs=_core.codecs(),
        images=_core.image_decoders(),
        kernels=_core.kernel_names(),
        audio={"wav": True, "flac": _core.has_flac()},
    )
