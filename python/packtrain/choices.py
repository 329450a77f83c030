"""What the arguments of a loader come to: dataset, batch size, order, selection."""

from __future__ import annotations

import os
from typing import Any

from . import _core
from ._numpy import np
from .checks import MOST_OF_FEW, one_of, whole_number
from .errors import InvalidError

ORDERS = ("auto", "global", "streams", "source")
FAR_PLACES = ("network", "fuse", "unknown")


def open_dataset(dataset: str | os.PathLike[str] | _core.Dataset, split: str | None) -> _core.Dataset:
    if isinstance(dataset, _core.Dataset):
        if split is None or split == dataset.split:
            return dataset
        return _core.Dataset(dataset.path, split=split)
    if not isinstance(dataset, (str, os.PathLike)):
        raise InvalidError(
            "what is loaded is the path of a dataset, a packtrain.Dataset or a packtrain.Mix, not "
            f"{dataset!r}"
        )
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
    name, given = (
        ("batch_size", batch_size) if global_batch_size is None else ("global_batch_size", global_batch_size)
    )
    size = whole_number(name, given, 1, MOST_OF_FEW)
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
    one_of("order", order, ORDERS)
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
    if not shards:
        return False
    shard = os.path.join(data.path, shards[0].path)  # noqa: PTH118  a sixth of our import was pathlib's
    return _core.place_of(shard).kind in FAR_PLACES


def choose_indices(data: _core.Dataset, indices: Any) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """Positions within the split, from positions, a mask, or a function of the dataset that gives either."""
    if indices is None:
        return None
    given = indices(data) if callable(indices) else indices
    try:
        chosen = np.asarray(given)
    except ValueError:  # lists of several lengths
        chosen = np.asarray(None)
    if chosen.ndim != 1:
        raise InvalidError(
            f"indices= is a list of positions or a mask, or a function that gives one, not {given!r}"
        )
    if chosen.dtype == np.bool_:
        if len(chosen) != len(data):
            raise InvalidError(f"a mask has one entry a sample: {len(data)}, not {len(chosen)}")
        chosen = np.flatnonzero(chosen)
    if len(chosen) == 0:
        return np.empty(0, np.uint64)
    if not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidError(f"indices= are whole numbers or a mask, not {chosen.dtype}")
    if int(chosen.min()) < 0:
        raise InvalidError("indices= count from 0; there is no negative one")
    if int(chosen.max()) >= len(data):
        raise InvalidError(
            f"indices= has {int(chosen.max())}, and there are {len(data)} samples, counted from 0", data.path
        )
    return np.ascontiguousarray(chosen, dtype=np.uint64)
