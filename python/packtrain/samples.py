"""A user's own functions on each sample of a batch, and those on which they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._core import BatchField
from .errors import InvalidError

Sample = dict[str, Any]


Failures = dict[int, Exception]  # by place in the batch


def made_of(
    function: Callable[[Any], Any], values: Iterable[Any], goes_on: bool
) -> tuple[list[Any], Failures]:
    """What `function` makes of each value, None where it fails; ends with the first failure, or goes on."""
    made: list[Any] = []
    failures: Failures = {}
    for place, value in enumerate(values):
        try:
            made.append(function(value))
        except Exception as error:  # whatever a user's function may raise
            failures[place] = error
            made.append(None)
            if not goes_on:
                break
    return made, failures


class Transform:
    """A user's function on samples, as one on batches."""

    def __init__(self, function: Callable[[Sample], Sample]) -> None:
        self._function = function
        self._empty: dict[str, Any] | None = None  # a batch of its results without any sample

    def __call__(
        self, batch: dict[str, Any], stack: Callable[[list[Any]], Any], goes_on: bool
    ) -> tuple[dict[str, Any], Failures]:
        """The batch of what the function makes of each sample, without those on which it failed.

        What it hands through unchanged is not copied. A batch without samples has the columns of those before
        it, and as long as there was none, those that the function is given.
        """
        columns = [_values(column) for column in batch.values()]
        given = [dict(zip(batch, values)) for values in zip(*columns)]
        made, failures = made_of(lambda sample: self._function(dict(sample)), given, goes_on)
        if failures:
            places = [place for place in range(len(made)) if place not in failures]
            batch = {name: taken(column, places) for name, column in batch.items()}
            made, given = [made[place] for place in places], [given[place] for place in places]
        if made:
            result = _columns(made, given, batch, stack)
            if self._empty is None and goes_on:
                # Fields are views of their batch's memory, which is not to be kept: each batch has its own.
                self._empty = {
                    name: None if isinstance(column, BatchField) else taken(column, [])
                    for name, column in result.items()
                }
            return result, failures
        if self._empty is None:
            return batch, failures
        empty = {name: batch[name] if column is None else column for name, column in self._empty.items()}
        return empty, failures


def _columns(
    made: list[Sample], given: list[Sample], batch: dict[str, Any], stack: Callable[[list[Any]], Any]
) -> dict[str, Any]:
    """Of samples, at least one; `given` and `batch` are what they were made of."""
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


def taken(column: Any, places: list[int]) -> Any:
    """A column of some of its samples."""
    if isinstance(column, BatchField):
        return column.take(places)
    return [column[place] for place in places] if isinstance(column, list) else column[places]


def _values(column: Any) -> list[Any]:
    """One for each sample: plain numbers and bytes where that is what they are."""
    if isinstance(column, BatchField) or getattr(column, "ndim", 0) == 1:
        values: list[Any] = column.tolist()
        return values
    return list(column)
