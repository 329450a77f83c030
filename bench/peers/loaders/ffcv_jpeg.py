"""FFCV over a file of its own, in which it stores every photo as a JPEG of quality 90."""

from __future__ import annotations

from typing import Any

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image

from .common import MEAN, RATIO, SCALE, SIZE, STD, TRAIN, Data, list_tree

GROUP = "ffcv"
FILE = "images.beton"
PAGE_BYTES = 1 << 25  # its writer waits for ever when a sample is larger than a page


class Photos:
    def __init__(self, samples: list[tuple[str, int]]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        path, label = self.samples[i]
        return Image.open(path).convert("RGB"), label


def prepare(data: Data) -> None:
    fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
    writer = DatasetWriter(str(data.store / FILE), fields, page_size=PAGE_BYTES, num_workers=data.workers)
    writer.from_indexed_dataset(Photos(list_tree(data.tree)))


def make(data: Data, mode: str) -> Any:
    if mode != TRAIN:
        raise ValueError("FFCV pads bytes to the largest sample: it is there for training only")
    image = [
        RandomResizedCropRGBImageDecoder((SIZE, SIZE), SCALE, RATIO),
        RandomHorizontalFlip(),
        NormalizeImage(255 * np.array(MEAN), 255 * np.array(STD), np.float32),
        ToTensor(),
        ToTorchImage(),
    ]
    loader = Loader(
        str(data.store / FILE),
        batch_size=data.batch,
        num_workers=data.workers,
        order=OrderOption.RANDOM,
        os_cache=True,
        drop_last=True,
        pipelines={"image": image, "label": [IntDecoder(), ToTensor(), Squeeze()]},
    )
    return lambda: loader
