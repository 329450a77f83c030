"""WebDataset over the packed shards: shards shuffled, then samples in a buffer of each worker."""

from __future__ import annotations

from typing import Any

import webdataset

from .common import SHUFFLE_BUFFER, TRAIN, Data
from .pillow_transform import bytes_and_labels, open_rgb, sizes_of, training_transform

GROUP = "torch"


def make(data: Data, mode: str) -> Any:
    transform = training_transform()
    decode = (lambda encoded: transform(open_rgb(encoded))) if mode == TRAIN else (lambda encoded: encoded)
    collate = {} if mode == TRAIN else {"collation_fn": bytes_and_labels}
    samples = (
        webdataset.WebDataset(data.shards, shardshuffle=len(data.shards))
        .shuffle(SHUFFLE_BUFFER)
        .to_tuple(data.field, "cls")
        .map_tuple(decode, int)
        .batched(data.batch, partial=False, **collate)
    )
    loader = webdataset.WebLoader(
        samples, batch_size=None, num_workers=data.workers, persistent_workers=data.workers > 0
    )
    return (lambda: loader) if mode == TRAIN else (lambda: sizes_of(loader))
