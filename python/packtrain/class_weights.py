"""How often each class comes: what a user says, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

from . import _core
from ._numpy import np
from .checks import whole_number
from .errors import InvalidError

ClassWeights = Union[Sequence[float], Mapping[str, float], Mapping[int, float]]
Weights = Union[ClassWeights, Callable[[_core.Dataset], Optional[ClassWeights]]]


def choose_weights(
    data: _core.Dataset, weights: Weights | None, indices: np.ndarray[Any, Any] | None
) -> list[float]:
    """Of each class, by its number; empty: as often as it is there. `indices`: which samples are loaded."""
    given: Any = weights(data) if callable(weights) else weights
    if given is None:
        return []
    labels = data.labels if indices is None else data.labels[indices]
    _check_labels(data, labels)
    highest = max(len(data.classes) - 1, int(labels.max()) if len(labels) else -1)
    if isinstance(given, Mapping):
        of_class = _from_mapping(data, given, highest)
    else:
        of_class = _from_sequence(data, given, highest)
    needed = range(len(data.classes)) if data.classes else np.unique(labels).tolist()
    without = [_name(data, number) for number in needed if number not in of_class]
    if without:
        raise InvalidError(
            f"weights= must have every class, and has none for {_some(without)}; give 0 to those that are "
            "never to come",
            data.path,
        )
    return [of_class.get(number, 0.0) for number in range(highest + 1)]


def _check_labels(data: _core.Dataset, labels: np.ndarray[Any, Any]) -> None:
    unlabelled = int((labels == _core.NO_LABEL).sum())
    if unlabelled:
        raise InvalidError(
            f"weights= is for samples with labels, and {unlabelled} of {len(labels)} have none; leave these "
            "out with indices=lambda data: data.labels != packtrain.NO_LABEL",
            data.path,
        )


def _from_mapping(data: _core.Dataset, weights: Mapping[Any, Any], highest: int) -> dict[int, float]:
    """By number or name."""
    numbers = {name: number for number, name in enumerate(data.classes)}
    unknown = [key for key in weights if isinstance(key, str) and key not in numbers]
    if unknown:
        raise InvalidError(
            f"weights= must name every class, and no other: {_some(unknown)} is none; there are "
            f"{_some(list(numbers))}",
            data.path,
        )
    of_class: dict[int, float] = {}
    for key, weight in weights.items():
        number = numbers[key] if isinstance(key, str) else whole_number("a class in weights", key, 0, highest)
        of_class[number] = _number(weight)
    return of_class


def _from_sequence(data: _core.Dataset, weights: Any, highest: int) -> dict[int, float]:
    """In the order of the classes."""
    wanted = f"weights= is a number for each of the {highest + 1} classes, or {{class: number}}"
    try:
        if isinstance(weights, (str, bytes)):
            raise TypeError
        given = list(weights)
    except TypeError:  # no list of anything
        raise InvalidError(f"{wanted}, not {weights!r}", data.path) from None
    numbers = [_number(weight) for weight in given]
    # Without names of classes it is not known whether there are more than samples have.
    if len(numbers) <= highest or (data.classes and len(numbers) > highest + 1):
        raise InvalidError(f"{wanted}; {len(numbers)} were given", data.path)
    return dict(enumerate(numbers[: highest + 1]))


def _number(weight: Any) -> float:
    try:
        return float(weight)
    except (TypeError, ValueError):
        raise InvalidError(f"weights=: the weight of a class is a number, not {weight!r}") from None


def _name(data: _core.Dataset, number: int) -> str:
    return data.classes[number] if number < len(data.classes) else str(number)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
