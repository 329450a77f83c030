"""What the arguments of a loader come to: dataset, batch size, order, selection, weights."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from . import _core
from ._numpy import np
from .errors import InvalidError

ClassWeights = Union[Sequence[float], Mapping[str, float]]
Weights = Union[ClassWeights, Callable[[_core.Dataset], Optional[ClassWeights]]]

ORDERS = ("auto", "global", "streams", "source")
FAR_PLACES = ("network", "fuse", "unknown")


def open_dataset(dataset: str | os.PathLike[str] | _core.Dataset, split: str | None) -> _core.Dataset:
    if isinstance(dataset, _core.Dataset):
        if split is None or split == dataset.split:
            return dataset
        return _core.Dataset(dataset.path, split=split)
    data = _core.Dataset(dataset, split=split)
    if split is None and len(data.splits) > 1:
        raise InvalidError(
            f"there are the splits {', '.join(data.splits)}: say which to load with split=, or give "
            "packtrain.Dataset(path) to load them all",
            data.path,
        )
    return data


def choose_batch_size(batch_size: int | None, global_batch_size: int | None, world_size: int) -> int:
    """Samples of a step over all ranks."""
    if (batch_size is None) == (global_batch_size is None):
        raise InvalidError("give either batch_size= (of each rank) or global_batch_size= (of all ranks)")
    size = batch_size if global_batch_size is None else global_batch_size
    try:
        size = operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidError(f"the size of a batch is a whole number, not {size!r}") from None
    if size < 1:
        raise InvalidError(f"a batch has at least one sample, not {size}")
    if global_batch_size is None:
        return size * world_size
    if size % world_size:
        below = size // world_size * world_size
        nearest = [str(each) for each in (below, below + world_size) if each]
        raise InvalidError(
            f"global_batch_size={size} cannot be shared equally by {world_size} ranks; the nearest that can: "
            + " and ".join(nearest)
        )
    return size


def choose_order(data: _core.Dataset, shuffle: bool, order: str, reads_any: bool) -> str:
    """Where bytes are far, large sequential reads; else an exact shuffle. `reads_any`: samples are taken from
    anywhere, which large reads would not serve."""
    if order not in ORDERS:
        raise InvalidError(f"order= is one of {', '.join(map(repr, ORDERS))}, not {order!r}")
    if not shuffle:
        if order not in ("auto", "source"):
            raise InvalidError(
                f'shuffle=False and order="{order}" contradict each other; leave one of them out'
            )
        return "source"
    if order != "auto":
        return order
    return "streams" if not reads_any and _is_far(data) else "global"


def _is_far(data: _core.Dataset) -> bool:
    shards = data.shards
    return bool(shards) and _core.place_of(Path(data.path) / shards[0].path).kind in FAR_PLACES


def choose_indices(data: _core.Dataset, indices: Any) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """Positions within the split, from positions, a mask, or a function of the dataset that gives either."""
    if indices is None:
        return None
    chosen = np.asarray(indices(data) if callable(indices) else indices)
    if chosen.ndim != 1:
        raise InvalidError(f"indices= is a list of positions or a mask, not an array of shape {chosen.shape}")
    if chosen.dtype == np.bool_:
        if len(chosen) != len(data):
            raise InvalidError(f"a mask has one entry a sample: {len(data)}, not {len(chosen)}")
        chosen = np.flatnonzero(chosen)
    if len(chosen) and not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidError(f"indices= are whole numbers or a mask, not {chosen.dtype}")
    if len(chosen) and int(chosen.min()) < 0:
        raise InvalidError("indices= count from 0; there is no negative one")
    return np.ascontiguousarray(chosen, dtype=np.uint64)


def choose_weights(data: _core.Dataset, weights: Weights | None) -> list[float]:
    """How often each class comes, by its number; empty: as often as it is there."""
    weights = weights(data) if callable(weights) else weights
    if weights is None:
        return []
    if not isinstance(weights, Mapping):
        return [float(weight) for weight in weights]
    unknown = sorted(set(weights) ^ set(data.classes))
    if unknown:
        raise InvalidError(f"weights= must name every class, and no other: {', '.join(unknown)}", data.path)
    return [float(weights[name]) for name in data.classes]
