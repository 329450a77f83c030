"""The same photographs into training batches: packed through packtrain, loose through torch's DataLoader.

    python examples/loading_race.py [PHOTOS PACKED]

PHOTOS is a class tree, PACKED the dataset made of it; without them a small set is made. Both sides shuffle,
decode, crop at random to 224 x 224, flip and normalise, in batches of 32, with all cores. Without torch,
torchvision or Pillow their side is left out.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import packtrain as pt

BATCH = 32
EPOCHS = 3  # the first is not counted: it starts threads and processes


def packed_batches(packed: Path) -> Callable[[], Iterator[Any]]:
    crop = pt.RandomResizedCrop(224, flip=0.5, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
    loader = pt.Loader(packed, batch_size=BATCH, image=crop)
    return lambda: (batch["image"] for batch in loader)


def loose_batches(photos: Path) -> Callable[[], Iterator[Any]]:
    from PIL import Image
    from torch.utils.data import DataLoader
    from torchvision import transforms  # type: ignore[import-not-found,unused-ignore]

    transform = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(pt.IMAGENET_MEAN, pt.IMAGENET_STD),
        ]
    )

    class Folder:
        files = sorted(photos.rglob("*.jpg"))

        def __len__(self) -> int:
            return len(self.files)

        def __getitem__(self, position: int) -> Any:
            return transform(Image.open(self.files[position]).convert("RGB"))

    cores = len(os.sched_getaffinity(0))
    loader = DataLoader(
        Folder(),  # type: ignore[arg-type,unused-ignore]
        batch_size=BATCH,
        shuffle=True,
        num_workers=cores,
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
        absent = [name for name in ("torch", "torchvision", "PIL") if importlib.util.find_spec(name) is None]
        if absent:
            print(f"torch's DataLoader, loose files: left out, no {' and no '.join(absent)} here")
            return
        theirs = images_per_second(loose_batches(photos))
        print(f"torch's DataLoader, loose files: {theirs:7,.0f} images a second")
        print(f"packtrain is {ours / theirs:.1f} times as fast")


if __name__ == "__main__":
    main()
