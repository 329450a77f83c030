"""A user's own function on each sample of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core import BatchField
from .errors import InvalidError

Sample = dict[str, Any]


def transformed(
    function: Callable[[Sample], Sample], batch: dict[str, Any], stack: Callable[[list[Any]], Any]
) -> dict[str, Any]:
    """The batch of what `function` makes of each sample. What it hands through unchanged is not copied."""
    columns = [_values(column) for column in batch.values()]
    given = [dict(zip(batch, values)) for values in zip(*columns)]
    if not given:
        return batch
    made = [function(dict(sample)) for sample in given]
    for sample in made:
        if not isinstance(sample, dict) or sample.keys() != made[0].keys():
            raise InvalidError(
                "transform= must return a dict for every sample, always with the same names; it returned "
                + (
                    f"the names {sorted(sample)}"
                    if isinstance(sample, dict)
                    else f"a {type(sample).__name__}"
                )
            )
    result = {}
    for name in made[0]:
        values = [sample[name] for sample in made]
        kept = name in batch and all(new is old[name] for new, old in zip(values, given))
        result[name] = batch[name] if kept else stack(values)
    return result


def _values(column: Any) -> list[Any]:
    """One for each sample: plain numbers and bytes where that is what they are."""
    if isinstance(column, BatchField) or getattr(column, "ndim", 0) == 1:
        values: list[Any] = column.tolist()
        return values
    return list(column)
