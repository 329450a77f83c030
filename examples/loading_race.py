"""The same photographs into training batches: packed through packtrain, loose through torch's DataLoader.

    python examples/loading_race.py [PHOTOS PACKED]

PHOTOS is a class tree, PACKED the dataset made of it; without them a small set is made. Both sides shuffle,
decode, crop at random to 224 x 224, flip and normalise, in batches of 32, with all cores: packtrain by its
threads, torch by a worker a core, with Pillow as torchvision uses it. Without torch or Pillow their side is
left out.
"""

from __future__ import annotations

import importlib.util
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import packtrain as pt

BATCH = 32
SIZE = 224
EPOCHS = 3  # the first is not counted: it starts threads and processes

Box = tuple[int, int, int, int]


def packed_batches(packed: Path) -> Callable[[], Iterator[Any]]:
    crop = pt.RandomResizedCrop(SIZE, flip=0.5, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
    loader = pt.Loader(packed, batch_size=BATCH, image=crop)
    return lambda: (batch["image"] for batch in loader)


def random_box(width: int, height: int) -> Box:
    """Left, top, right and bottom of a box as torchvision's RandomResizedCrop draws it: an area of 8 to
    100 %, a ratio of sides from 3/4 to 4/3; the middle where no such box fits."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < across <= width and 0 < down <= height:
            left, top = random.randint(0, width - across), random.randint(0, height - down)
            return left, top, left + across, top + down
    across, down = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    left, top = (width - across) // 2, (height - down) // 2
    return left, top, left + across, top + down


def loose_batches(photos: Path) -> Callable[[], Iterator[Any]]:
    import numpy as np
    import torch
    from PIL import Image, ImageOps
    from torch.utils.data import DataLoader

    mean = torch.tensor(pt.IMAGENET_MEAN).view(3, 1, 1)
    std = torch.tensor(pt.IMAGENET_STD).view(3, 1, 1)

    class Folder:
        files = sorted(photos.rglob("*.jpg"))

        def __len__(self) -> int:
            return len(self.files)

        def __getitem__(self, position: int) -> Any:
            image = Image.open(self.files[position]).convert("RGB")
            image = image.crop(random_box(*image.size)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
            if random.random() < 0.5:
                image = ImageOps.mirror(image)
            pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
            return pixels.float().div_(255).sub_(mean).div_(std)

    loader = DataLoader(
        Folder(),  # type: ignore[arg-type,unused-ignore]
        batch_size=BATCH,
        shuffle=True,
        num_workers=len(os.sched_getaffinity(0)),
        persistent_workers=True,
        drop_last=True,
    )
    return lambda: iter(loader)


def images_per_second(batches: Callable[[], Iterator[Any]]) -> float:
    rates = []
    for _ in range(EPOCHS):
        begun, images = time.perf_counter(), 0
        for batch in batches():
            images += len(batch)
        rates.append(images / (time.perf_counter() - begun))
    return max(rates[1:])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) == 3:
            photos, packed = Path(sys.argv[1]), Path(sys.argv[2])
        else:
            photos, packed = Path(folder) / "photos", Path(folder) / "photos.pt"
            pt.synth(photos, samples=128, classes=4)
            pt.pack(photos, packed)
        ours = images_per_second(packed_batches(packed))
        print(f"packtrain, packed photos:        {ours:7,.0f} images a second")
        absent = [name for name in ("torch", "PIL") if importlib.util.find_spec(name) is None]
        if absent:
            print(f"torch's DataLoader, loose files: left out, no {' and no '.join(absent)} here")
            return
        theirs = images_per_second(loose_batches(photos))
        print(f"torch's DataLoader, loose files: {theirs:7,.0f} images a second")
        print(f"packtrain is {ours / theirs:.1f} times as fast")


if __name__ == "__main__":
    main()
