"""Fields of a batch that are delivered beside its image: their names, and bytes turned into values."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ._core import BatchField, Dataset, ValueSpec
from ._numpy import np
from .errors import CorruptError, InvalidError
from .samples import Failures, made_of
from .values import Array, Audio, Image

LABEL_FIELD = "cls"  # its number is batch["label"]

Decode = Callable[[bytes], Any]
Kind = Union[str, Array, Audio, Image, Decode]
Fields = Union[Sequence[str], Mapping[str, Kind]]


@dataclass(frozen=True)
class Field:
    """What becomes of a field: `spec` on the engine's threads, then `decode` on what is bytes, in Python.

    `also` names further columns about its values, and how they are had.
    """

    spec: ValueSpec
    decode: Decode | None = None
    also: tuple[tuple[str, Callable[[BatchField], Any]], ...] = ()

    def column(self, values: BatchField) -> Any:
        """As the engine has decoded it."""
        return values if self.spec.is_bytes else stacked(values.arrays())


def _read_torch(content: bytes) -> Any:
    from .tensors import read_tensors  # imports torch

    return read_tensors(content)


def _torch_field() -> Field:
    if importlib.util.find_spec("torch") is None:
        raise InvalidError('fields of the kind "torch" are read by torch, which is not installed here')
    return Field(_BYTES, _read_torch)


def _read_pickle(content: bytes) -> Any:
    from .unpickle import unpickled  # imports NumPy

    return unpickled(content)


_BYTES = ValueSpec("bytes")
_KINDS: dict[str, Callable[[], Kind | Field]] = {
    "bytes": lambda: Field(_BYTES),
    "str": lambda: Field(ValueSpec("text"), bytes.decode),
    "json": lambda: Field(_BYTES, json.loads),
    "npy": lambda: Field(ValueSpec("npy")),
    "pickle": lambda: Field(ValueSpec("pickle"), _read_pickle),
    "audio": Audio,
    "image": Image,
    "torch": _torch_field,
}
_RAW = "raw:"  # and a type, as NumPy calls it


def chosen_fields(data: Dataset, fields: Fields | None, reserved: Sequence[str]) -> dict[str, Field]:
    """What to deliver, and how. `fields` None means all but the label's. `reserved` names what the loader
    itself puts into a batch."""
    if isinstance(fields, str):
        raise InvalidError(f'fields= is a list of names, or {{name: kind}}: fields=["{fields}"]')
    if fields is None:
        fields = [name for name in data.fields if name != LABEL_FIELD]
    try:
        names: Any = list(fields)
    except TypeError:  # no list of anything
        names = [fields]
    for name in names:
        if not isinstance(name, str):
            raise InvalidError(f"fields= is a list of names, or {{name: kind}}; {name!r} is no name")
    kinds = fields if isinstance(fields, Mapping) else dict.fromkeys(names, "bytes")
    chosen = {name: _field(name, kind) for name, kind in kinds.items()}
    taken = [*reserved, *(also for field in chosen.values() for also, _ in field.also)]
    for name in chosen:
        if name in taken:
            others = ", ".join(other for other in data.fields if other not in taken)
            raise InvalidError(
                f"the field '{name}' cannot be delivered under its name, which a batch has another use for; "
                f"choose others with fields= (there are: {others or 'none'})",
                data.path,
            )
    return chosen


def _field(name: str, kind: Kind) -> Field:
    if isinstance(kind, str):
        if kind.startswith(_RAW):
            kind = Array(kind.removeprefix(_RAW))
        elif kind in _KINDS:
            known = _KINDS[kind]()
            if isinstance(known, Field):
                return known
            kind = known
        else:
            words = ", ".join([*_KINDS, _RAW + "uint16"])
            raise InvalidError(
                f"the field '{name}' cannot be read as '{kind}'; choose {words}, packtrain.Array, "
                "packtrain.Audio, packtrain.Image or a function"
            )
    if isinstance(kind, (Array, Audio, Image)):
        also: list[tuple[str, Callable[[BatchField], Any]]] = []
        if kind.pad is not None and isinstance(kind, Image):
            also.append((f"{name}_size", BatchField.sizes))
        elif kind.pad is not None:
            also.append((f"{name}_length", BatchField.lengths))
        if isinstance(kind, Audio):
            also.append((f"{name}_rate", BatchField.rates))
        return Field(kind.spec, None, tuple(also))
    if isinstance(kind, type) and issubclass(kind, (Array, Audio, Image)):
        raise InvalidError(f"the field '{name}' is read as {kind.__name__}(), with parentheses")
    if callable(kind):
        return Field(_BYTES, kind)
    raise InvalidError(f"the field '{name}' cannot be read as {kind!r}; see packtrain.Loader's fields=")


def decoded(name: str, field: BatchField, decode: Decode, goes_on: bool) -> tuple[Any, Failures]:
    """What `decode` makes of the bytes of each value, and where it failed, as made_of. What the engine has
    made arrays of stays as it is, and None where a sample has no such field."""
    contents: Any = field.arrays()
    if isinstance(contents, np.ndarray):
        return contents, {}

    def value(content: Any) -> Any:
        if not isinstance(content, bytes):
            return content[()] if isinstance(content, np.ndarray) and content.ndim == 0 else content
        try:
            return decode(content)
        except (ValueError, EOFError) as error:
            raise CorruptError(f"the field '{name}' cannot be decoded: {error}") from error

    return made_of(value, contents, goes_on)


def stacked(values: Any) -> Any:
    """Arrays of one shape and type, or numbers, as one array; anything else stays a list."""
    if isinstance(values, np.ndarray):
        return values
    first = values[0] if values else None
    if isinstance(first, np.ndarray):
        if all(
            isinstance(v, np.ndarray) and v.shape == first.shape and v.dtype == first.dtype for v in values
        ):
            return np.stack(values)
    elif isinstance(first, (int, float, np.generic)) and all(isinstance(v, type(first)) for v in values):
        return np.asarray(values)
    return values
