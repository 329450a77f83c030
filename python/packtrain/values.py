"""What a field's bytes may be decoded to: plain specs for fields={name: spec}."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal

from ._core import ValueSpec
from .checks import flag, number, one_of
from .errors import InvalidError


@dataclass(frozen=True)
class Array:
    """An array of numbers. With `dtype` ("uint16") the bytes are nothing but such numbers, little-endian, as
    token files are; without it, a .npy file or a pickle of an array, told by content.

    `pad` makes the arrays of a batch as long as the longest, along the first axis, with this number behind
    them, which their type must hold; their own lengths are batch[name + "_length"].
    """

    dtype: str | None = None
    pad: float | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None and not isinstance(self.dtype, str):
            raise InvalidError(f'dtype= is a name of NumPy\'s, such as "uint16", not {self.dtype!r}')
        _ = self.spec  # what is wrong with it is said at once

    @property
    def spec(self) -> ValueSpec:
        kind = "array" if self.dtype is None else "raw"
        return ValueSpec(kind, dtype=self.dtype, pad=_pad_number(self.pad))


@dataclass(frozen=True)
class Audio:
    """WAV or FLAC, told by content: an array of the shape (channels, frames), or (frames,) with `mono`, which
    takes the mean of the channels. "float32" is within [-1, 1].

    `pad` is as of Array, along the frames. Samples a second are batch[name + "_rate"].
    """

    dtype: Literal["float32", "int16"] = "float32"
    mono: bool = False
    pad: float | None = None

    def __post_init__(self) -> None:
        one_of("dtype", self.dtype, ("float32", "int16"))
        flag("mono", self.mono)
        _ = self.spec  # what is wrong with it is said at once

    @property
    def spec(self) -> ValueSpec:
        return ValueSpec("audio", dtype=self.dtype, mono=bool(self.mono), pad=_pad_number(self.pad))


@dataclass(frozen=True)
class Image:
    """A JPEG, PNG, WebP or PNM in its own size, told by content: an array of uint8 of the shape (height,
    width, 3), the pixels of Pillow's convert("RGB"). `exif_orientation` turns it upright.

    `pad` makes the images of a batch as high as the highest and as wide as the widest, with this number below
    and to the right of them; their own heights and widths are batch[name + "_size"].
    """

    exif_orientation: bool = False
    pad: float | None = None

    def __post_init__(self) -> None:
        flag("exif_orientation", self.exif_orientation)
        _ = self.spec  # what is wrong with it is said at once

    @property
    def spec(self) -> ValueSpec:
        orientation = bool(self.exif_orientation)
        return ValueSpec("image", exif_orientation=orientation, pad=_pad_number(self.pad))


def _pad_number(pad: Any) -> float | None:
    """As the engine takes it: whole numbers stay exact, as far as any type has them."""
    if pad is None:
        return None
    try:
        whole = operator.index(pad)
    except TypeError:
        return number("pad", pad)
    return whole if -(2**63) <= whole < 2**64 else number("pad", whole)
