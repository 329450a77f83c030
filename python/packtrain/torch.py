"""Batches as torch tensors, and a dataset for torch's own DataLoader. Imports torch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import Dataset as TorchDataset

from . import _core
from .choices import open_dataset
from .errors import InvalidError
from .loader import Batch
from .loader import Loader as ArrayLoader
from .mix import Mix, Source
from .samples import Sample


class Loader(ArrayLoader):
    """packtrain.Loader with tensors for arrays; stands where a DataLoader is expected.

    Tensors share the batch's memory. With layout="HWC" an image batch has the shape (N, 3, H, W) and
    channels-last strides. With `pin_memory` ("auto": where CUDA is there) they are copies in pinned memory of
    torch's own allocator, which knows of copies to the GPU that are still under way.
    """

    _called = "packtrain.torch.Loader"
    _attributes = ArrayLoader._attributes | {"drop_last", "pin_memory"}
    # What code that takes a DataLoader may look at.
    num_workers = 0
    batch_sampler = None

    def __init__(
        self,
        dataset: Source | Mix,
        *,
        pin_memory: bool | Literal["auto"] = "auto",
        **options: Any,
    ) -> None:
        if not isinstance(pin_memory, bool) and pin_memory != "auto":
            raise InvalidError(f'pin_memory= is True, False or "auto", not {pin_memory!r}')
        super().__init__(dataset, **options)
        can_pin = torch.cuda.is_available()
        if pin_memory is True and not can_pin:
            warnings.warn("pin_memory=True has no effect: torch finds no CUDA here", stacklevel=2)
        self.pin_memory = bool(pin_memory) and can_pin
        self.drop_last = self.last == "drop"

    def set_epoch(self, epoch: int) -> None:
        """As DistributedSampler has it; `loader.epoch = epoch` is the same."""
        self.epoch = epoch

    @property
    def end_of_dataloader(self) -> bool:
        """Whether the last batch of an epoch was handed out, and none of another one since."""
        return 0 < self._steps == self._course.taken

    @property
    def sampler(self) -> EpochSetter:
        """By it, frameworks say which epoch begins."""
        return EpochSetter(self)

    def _finished(self, batch: _core.Batch) -> Batch:
        columns = super()._finished(batch)
        if not self.pin_memory:
            return columns
        return {name: _pinned(column) for name, column in columns.items()}

    def _arrays(self, columns: Batch) -> Batch:
        tensors = {name: _tensor(column) for name, column in columns.items()}
        if self.image is not None:
            image = tensors["image"]
            if self.image.dtype == "bfloat16":
                image = image.view(torch.bfloat16)
            tensors["image"] = image.permute(0, 3, 1, 2) if self.image.layout == "HWC" else image
        return tensors

    def _stacked(self, values: Any) -> Any:
        first = values[0] if len(values) else None
        if isinstance(first, torch.Tensor):
            same = all(isinstance(v, torch.Tensor) and v.shape == first.shape for v in values)
            return torch.stack(values) if same else values
        return _tensor(super()._stacked(values))


class EpochSetter:
    """What is left of a sampler where the order is the loader's own affair."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)


def _tensor(column: Any) -> Any:
    """On the same memory; what is no array, or of a type that torch has not, as it is."""
    if isinstance(column, list):
        return [_tensor(value) for value in column]
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "biufc":
        return column
    try:
        return torch.from_numpy(column)
    except TypeError:  # torch has learned unsigned types late
        return column


def _pinned(column: Any) -> Any:
    """Every tensor of a column, as far as it is made of lists, tuples and dicts."""
    if isinstance(column, torch.Tensor):
        return torch.empty_like(column, pin_memory=True).copy_(column)
    if type(column) in (list, tuple):
        return type(column)(_pinned(value) for value in column)
    if type(column) is dict:
        return {name: _pinned(value) for name, value in column.items()}
    return column


class Dataset(TorchDataset):  # type: ignore[type-arg, misc, unused-ignore]
    """Samples as dicts for torch's DataLoader, where transforms and collate are a user's own.

    Opened by path in each worker, so it is safe with fork, forkserver and spawn. `fields` names what a sample
    has ("__key__" too); `transform` is called with each sample.
    """

    def __init__(
        self,
        dataset: str | os.PathLike[str] | _core.Dataset,
        split: str | None = None,
        *,
        fields: Sequence[str] | None = None,
        transform: Callable[[Sample], Any] | None = None,
    ) -> None:
        self.data = open_dataset(dataset, split)
        self.fields = fields
        self.transform = transform

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        return self.data.labels

    @property
    def classes(self) -> list[str]:
        return self.data.classes

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, position: int) -> Any:
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[int]) -> list[Any]:
        """DataLoader asks for a whole batch by it: many reads are in flight at once."""
        samples = self.data.read(positions, self.fields)
        return samples if self.transform is None else [self.transform(sample) for sample in samples]
