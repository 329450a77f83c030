"""The pipeline of dali_shards.py through DALI's iterator for torch, as its guides write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIGenericIterator

from .common import TRAIN, Data
from .dali_shards import READER, Labels, graph

GROUP = "dali"


def make(data: Data, mode: str) -> Any:
    if mode != TRAIN:
        raise ValueError("dali_torch is there for training only")
    pipeline = graph(data, mode, dense_labels=True, batch_size=data.batch, num_threads=data.workers)
    iterator = DALIGenericIterator(
        [pipeline],
        ["image", "label"],
        reader_name=READER,
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.DROP,
    )

    def epoch() -> Iterator[Any]:
        for (batch,) in iterator:
            yield batch["image"], Labels(batch["label"])

    return epoch
