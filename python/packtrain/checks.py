"""Arguments of the wrong kind are refused where they are given, in a sentence that names them."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import CorruptError, InvalidError

MOST = 2**64 - 1  # that the engine can count
MOST_OF_FEW = 2**32 - 1  # of threads, ranks, pixels


def whole_number(name: str, value: Any, least: int = 0, most: int = MOST) -> int:
    """An int, or what stands for one, such as NumPy's integers. True is none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        range_of_it = f"of at least {least}" if number < least else f"up to {most}"
        raise InvalidError(f"{name}= is a whole number {range_of_it}, not {value!r}")
    return number


def is_count(value: Any, most: int = MOST) -> bool:
    return isinstance(value, int) and 0 <= value <= most


def amount(name: str, value: Any, most: int = MOST) -> int:
    """So many, or 0 for "auto"."""
    if isinstance(value, str) and value == "auto":
        return 0
    try:
        return whole_number(name, value, 1, most)
    except InvalidError:
        raise InvalidError(f'{name}= is "auto" or a whole number from 1 to {most}, not {value!r}') from None


def one_of(name: str, value: Any, words: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in words:
        raise InvalidError(f"{name}= is one of {', '.join(map(repr, words))}, not {value!r}")


def number(name: str, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidError(f"{name}= is a number, not {value!r}") from None


def numbers(name: str, value: Any, count: int) -> tuple[float, ...]:
    """So many of them, from any sequence."""
    try:
        found = tuple(number(name, each) for each in value)
    except (TypeError, InvalidError):
        found = ()
    if isinstance(value, (str, bytes)) or len(found) != count:
        raise InvalidError(f"{name}= is {count} numbers, not {value!r}")
    return found


def flag(name: str, value: Any) -> bool:
    """True or False, NumPy's too: of a word such as "False" nobody knows which it is meant to be."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise InvalidError(f"{name}= is True or False, not {value!r}")
    return bool(value)


def plain_state(state: Any) -> dict[str, int | str]:
    """What state_dict gave, wherever it has been since; other kinds of whole numbers become ints."""
    if not isinstance(state, Mapping):
        hint = "; read it with json.loads first" if isinstance(state, (str, bytes)) else ""
        raise InvalidError(f"load_state_dict takes the dict that state_dict gave, not {state!r}{hint}")
    try:
        plain: dict[str, int | str] = json.loads(json.dumps(dict(state), default=operator.index))
    except (TypeError, ValueError) as error:
        raise CorruptError(f"this is no state that state_dict gave: {error}") from None
    return plain
