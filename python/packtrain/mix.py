"""Several datasets as one stream: what a user says, and what it comes to."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Union

from ._core import Dataset, LoadPart
from .checks import whole_number
from .choices import open_dataset
from .errors import InvalidError
from .fields import Fields

Source = Union[str, "os.PathLike[str]", Dataset]


@dataclass(frozen=True, init=False, repr=False)
class Mix:
    """Datasets that a Loader interleaves in given fractions: packtrain.Mix({"a": 0.7, "b": 0.3}).

    Each is a path or a packtrain.Dataset; pairs in a list do for a dict. Fractions are relative to their sum.
    Each dataset is gone through in its own shuffles, one behind the other, whatever the mix's epochs are;
    those have `epoch_length` samples, or as many as all datasets have together. A plain value.
    """

    datasets: tuple[Source, ...]
    fractions: tuple[float, ...]
    """Of 1."""
    epoch_length: int | None

    def __init__(
        self,
        # Any: what is in a dict with both paths and datasets as keys is for a type checker any object
        parts: Mapping[Any, float] | Iterable[tuple[Source, float]],
        *,
        epoch_length: int | None = None,
    ) -> None:
        pairs = _pairs(parts)
        for source, fraction in pairs:
            if not isinstance(fraction, Real) or not 0 < float(fraction) < math.inf:
                raise InvalidError(
                    f"the fraction of a dataset in a mix is a number above 0, not {fraction!r}", _name(source)
                )
        largest = max(float(fraction) for _, fraction in pairs)  # a sum of such numbers may be too large
        shares = [float(fraction) / largest for _, fraction in pairs]
        total = math.fsum(shares)
        values = {
            "datasets": tuple(source for source, _ in pairs),
            "fractions": tuple(share / total for share in shares),
            "epoch_length": None if epoch_length is None else whole_number("epoch_length", epoch_length, 1),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # it is frozen

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{_name(source)!r}: {fraction:.4g}" for source, fraction in zip(self.datasets, self.fractions)
        )
        length = "" if self.epoch_length is None else f", epoch_length={self.epoch_length}"
        return f"packtrain.Mix({{{parts}}}{length})"


def _pairs(parts: Any) -> list[tuple[Source, float]]:
    given: Any = parts.items() if isinstance(parts, Mapping) else parts
    pairs: list[tuple[Source, float]] = []
    if not isinstance(given, (str, os.PathLike)):
        with contextlib.suppress(TypeError, ValueError):
            pairs = [(source, fraction) for source, fraction in given]
    if not pairs:
        raise InvalidError(
            'a mix is {dataset: fraction} of at least one dataset, such as {"a": 0.7, "b": 0.3}, not '
            f"{parts!r}"
        )
    for source, _ in pairs:
        if not isinstance(source, (str, os.PathLike, Dataset)):
            raise InvalidError(f"a dataset of a mix is a path or a packtrain.Dataset, not {source!r}")
    return pairs


def open_datasets(dataset: Source | Mix, split: str | None) -> tuple[Dataset, ...]:
    """The one, or those of a mix; there `split` is for those that have none of their own."""
    if not isinstance(dataset, Mix):
        return (open_dataset(dataset, split),)
    own = [source.split if isinstance(source, Dataset) else None for source in dataset.datasets]
    return tuple(open_dataset(source, name or split) for source, name in zip(dataset.datasets, own))


def check_samples(datasets: Sequence[Dataset], parts: Sequence[LoadPart]) -> None:
    """That something is left of every dataset."""
    for data, part in zip(datasets, parts):
        if len(part) == 0:
            raise InvalidError("of this dataset there are no samples to mix; leave it out", data.path)


def check_fields(datasets: Sequence[Dataset], fields: Fields | None) -> None:
    """That every dataset has them; None means all, and then every dataset must have the same."""
    shared = [name for name in datasets[0].fields if all(name in data.fields for data in datasets)]
    names = set(datasets[0].fields if fields is None else fields)
    for data in datasets:
        if fields is None and names ^ set(data.fields):
            raise InvalidError(
                f"the datasets of a mix have different fields: this one {', '.join(data.fields)}, and the "
                f"first {', '.join(datasets[0].fields)}; say with fields= which to deliver (all have: "
                f"{', '.join(shared) or 'none'})",
                data.path,
            )
        missing = sorted(names - set(data.fields))
        if missing:
            raise InvalidError(
                f"every dataset of a mix must have the fields that are delivered, and this one has no "
                f"'{missing[0]}' (all have: {', '.join(shared) or 'none'})",
                data.path,
            )


def _name(source: Source) -> str:
    return source.path if isinstance(source, Dataset) else os.fspath(source)
