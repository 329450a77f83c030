"""Photographs to compare transforms on, boxes of every size in them, and how far two images are apart."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from packtrain._core import ImageSpec, crop_box
from PIL import Image

# The soak sets the one to 10,000, and hands on the other: a folder of real photographs.
CROPS = int(os.environ.get("PACKTRAIN_TEST_CROPS", "150"))
PHOTOS = os.environ.get("PACKTRAIN_TEST_PHOTOS")

SIZES = [(224, 224), (224, 224), (1, 1), (17, 33), (224, 100), (301, 500)]  # width, height


def image_spec(width: int, height: int, **options: object) -> ImageSpec:
    arguments: dict[str, object] = {"crop": "random_resized", "dtype": "uint8", "layout": "HWC", "flip": 0.5}
    return ImageSpec(width=width, height=height, **(arguments | options))  # type: ignore[arg-type]


def photo_files(made: Path) -> list[Path]:
    """All of the real ones, or those that a test has made."""
    folder = Path(PHOTOS) if PHOTOS else made
    files = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")]
    assert files, f"there is no JPEG in {folder}"
    return files


def as_pillow(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def random_crops(files: list[Path]) -> Iterator[tuple[Path, bytes, ImageSpec, int]]:
    """So many crops, over all files in turn: their specs and keys. Boxes are of every size: single pixels,
    whole frames, and what lies between."""
    draw = random.Random(1)
    seen: set[str] = set()
    for number in range(CROPS):
        file = files[number % len(files)]
        data = file.read_bytes()
        with Image.open(io.BytesIO(data)) as header:
            width, height = header.size
        boxes: list[dict[str, Any]] = [
            {"scale": (0.08, 1.0)},
            {"scale": (0.08, 1.0)},
            {"scale": (1e-5, 1e-3), "ratio": (0.1, 10.0)},
            {"scale": (1 / (width * height),) * 2, "ratio": (1.0, 1.0)},  # one pixel
            {"scale": (1.0, 1.0), "ratio": (width / height,) * 2},  # the whole frame
        ]
        spec, key = image_spec(*draw.choice(SIZES), **draw.choice(boxes)), draw.getrandbits(64)
        _, _, across, down, _ = crop_box(spec, width, height, key=key)
        seen |= {"pixel"} if (across, down) == (1, 1) else set()
        seen |= {"frame"} if (across, down) == (width, height) else set()
        yield file, data, spec, key
    assert seen == {"pixel", "frame"}


class Differences:
    """Of many pairs of images: none may be more than a level apart, and all together 0.2 in the mean."""

    def __init__(self) -> None:
        self.total, self.images = 0.0, 0

    def add(self, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], where: object) -> None:
        assert ours.shape == theirs.shape, where
        apart = np.abs(ours.astype(int) - theirs.astype(int))
        assert apart.max() <= 1, where
        self.total += float(apart.mean())
        self.images += 1

    def check(self) -> None:
        assert self.images
        # Which axis comes first depends on Pillow's version, and is worth one level here and there.
        assert self.total / self.images <= 0.2
