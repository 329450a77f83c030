"""NVIDIA DALI on the CPU over the packed shards: decodes only the crop, in threads of its own.

Its pipeline runs on from one epoch into the next, without torch: its quickest form, also to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from .common import MEAN, RATIO, SCALE, SHUFFLE_BUFFER, SIZE, STD, TRAIN, Data

GROUP = "dali"
READER = "reader"


@pipeline_def(device_id=None)
def graph(data: Data, mode: str, *, dense_labels: bool = False) -> Any:
    encoded, label = fn.readers.webdataset(
        paths=data.shards,
        index_paths=[str(Path(shard).with_suffix(".idx")) for shard in data.shards],
        ext=[data.field, "cls"],
        random_shuffle=True,
        initial_fill=SHUFFLE_BUFFER,
        name=READER,
    )
    if dense_labels:
        label = fn.pad(label, fill_value=ord(" "))
    if mode != TRAIN:
        return encoded, label
    images = fn.decoders.image_random_crop(
        encoded,
        device="cpu",
        output_type=types.RGB,
        random_area=list(SCALE),
        random_aspect_ratio=list(RATIO),
    )
    images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_LINEAR)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mirror=fn.random.coin_flip(),
        mean=[255 * value for value in MEAN],
        std=[255 * value for value in STD],
    )
    return images, label


class Labels:
    """The labels of a batch, which its shards hold as digits: numbers only for who asks for them."""

    def __init__(self, digits: Any) -> None:
        self.digits = digits

    def __len__(self) -> int:
        return len(self.digits)

    def __iter__(self) -> Iterator[int]:
        return (int(bytes(np.asarray(one))) for one in self.digits)


def make(data: Data, mode: str) -> Any:
    pipeline = graph(data, mode, batch_size=data.batch, num_threads=data.workers, prefetch_queue_depth=2)
    pipeline.build()
    steps = pipeline.reader_meta(READER)["epoch_size"] // data.batch

    def epoch() -> Iterator[Any]:
        for _ in range(steps):
            values, digits = pipeline.run()
            if mode == TRAIN:
                yield np.asarray(values.as_tensor()), Labels(digits)
            else:
                yield [shape[0] for shape in values.shape()], Labels(digits)

    return epoch
