"""Fields of a batch that are delivered beside its image: their names, and bytes turned into values."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from ._core import BatchField, Dataset
from ._numpy import np
from .errors import CorruptError, InvalidError
from .samples import Failures, made_of

LABEL_FIELD = "cls"  # its number is batch["label"]

Fields = Union[Sequence[str], Mapping[str, Union[str, Callable[[bytes], Any]]]]
Decode = Callable[[bytes], Any]


def _read_npy(content: bytes) -> Any:
    return np.load(io.BytesIO(content), allow_pickle=False)


_DECODERS: dict[str, Decode | None] = {
    "bytes": None,
    "str": lambda content: content.decode(),
    "json": json.loads,
    "npy": _read_npy,
}


def chosen_fields(data: Dataset, fields: Fields | None, reserved: Sequence[str]) -> dict[str, Decode | None]:
    """What to deliver, and by which function its bytes become values; None: as they are.

    `fields` None means all but the label's. `reserved` names what the loader itself puts into a batch.
    """
    if isinstance(fields, str):
        raise InvalidError(f'fields= is a list of names, or {{name: kind}}: fields=["{fields}"]')
    if fields is None:
        fields = [name for name in data.fields if name != LABEL_FIELD]
    kinds = fields if isinstance(fields, Mapping) else dict.fromkeys(fields, "bytes")
    for name in kinds:
        if name in reserved:
            others = ", ".join(other for other in data.fields if other not in reserved)
            raise InvalidError(
                f"the field '{name}' cannot be delivered under its name, which a batch has another use for; "
                f"choose others with fields= (there are: {others or 'none'})",
                data.path,
            )
    return {name: _decoder(name, kind) for name, kind in kinds.items()}


def _decoder(name: str, kind: str | Decode) -> Decode | None:
    if callable(kind):
        return kind
    if kind not in _DECODERS:
        raise InvalidError(
            f"the field '{name}' cannot be read as '{kind}'; choose {', '.join(_DECODERS)} or a function"
        )
    return _DECODERS[kind]


def decoded(name: str, field: BatchField, decode: Decode, goes_on: bool) -> tuple[list[Any], Failures]:
    """One value a sample, None where a sample has no such field; and where decoding failed, as made_of."""

    def value(content: bytes | None) -> Any:
        try:
            return None if content is None else decode(content)
        except (ValueError, EOFError) as error:
            raise CorruptError(f"the field '{name}' cannot be decoded: {error}") from error

    return made_of(value, field.tolist(), goes_on)


def stacked(values: list[Any]) -> Any:
    """Arrays of one shape and type, or numbers, as one array; anything else stays a list."""
    first = values[0] if values else None
    if isinstance(first, np.ndarray):
        if all(
            isinstance(v, np.ndarray) and v.shape == first.shape and v.dtype == first.dtype for v in values
        ):
            return np.stack(values)
    elif isinstance(first, (int, float, np.generic)) and all(isinstance(v, type(first)) for v in values):
        return np.asarray(values)
    return values
