"""SPDL over loose files: FFmpeg decodes in threads, its filters crop, mirror and scale, torch normalises."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import spdl.io
import torch
from spdl.pipeline import PipelineBuilder

from .common import MEAN, RATIO, SCALE, SIZE, STD, TRAIN, Data, list_tree

GROUP = "spdl"
BATCHES_AHEAD = 3
OFFSET = torch.tensor(MEAN).mul(255).view(1, 3, 1, 1)
FACTOR = torch.tensor(STD).mul(255).reciprocal().view(1, 3, 1, 1)


def crop_box(width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, width and height, drawn as torchvision's RandomResizedCrop draws them."""
    low, high = (math.log(value) for value in RATIO)
    for _ in range(10):
        area = width * height * random.uniform(*SCALE)
        ratio = math.exp(random.uniform(low, high))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def decode(sample: tuple[str, int]) -> tuple[Any, int]:
    path, label = sample
    packets = spdl.io.demux_image(path)
    left, top, width, height = crop_box(packets.codec.width, packets.codec.height)
    mirror = "hflip," if random.random() < 0.5 else ""
    filters = f"crop={width}:{height}:{left}:{top}:exact=1,{mirror}scale={SIZE}:{SIZE}:flags=bilinear"
    return spdl.io.decode_packets(packets, filter_desc=filters + ",format=pix_fmts=rgb24"), label


def to_batch(samples: list[tuple[Any, int]]) -> tuple[Any, Any]:
    frames, labels = zip(*samples)
    pixels = torch.from_numpy(np.asarray(spdl.io.to_numpy(spdl.io.convert_frames(frames))))
    images = torch.empty((len(labels), 3, SIZE, SIZE))
    torch.sub(pixels.permute(0, 3, 1, 2), OFFSET, out=images)
    return images.mul_(FACTOR), torch.tensor(labels)


def make(data: Data, mode: str) -> Any:
    if mode != TRAIN:
        raise ValueError("SPDL is there for training only")
    torch.set_num_threads(1)
    samples = list_tree(data.tree)

    def epoch() -> Iterator[Any]:
        order = random.sample(samples, len(samples))
        pipeline = (
            PipelineBuilder()
            .add_source(order)
            .pipe(decode, concurrency=data.workers)
            .aggregate(data.batch, drop_last=True)
            .pipe(to_batch)
            .add_sink(BATCHES_AHEAD)
            .build(num_threads=data.workers)
        )
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()

    return epoch
