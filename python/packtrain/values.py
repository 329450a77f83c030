"""What a field's bytes may be decoded to: plain specs for fields={name: spec}."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ._core import ValueSpec
from .checks import flag, numbers, one_of


@dataclass(frozen=True)
class Array:
    """An array of numbers. With `dtype` ("uint16") the bytes are nothing but such numbers, little-endian, as
    token files are; without it, a .npy file or a pickle of an array, told by content.

    `pad` makes the arrays of a batch as long as the longest, along the first axis, with this number behind
    them; their own lengths are batch[name + "_length"].
    """

    dtype: str | None = None
    pad: float | None = None

    def __post_init__(self) -> None:
        _check_pad(self.pad)

    @property
    def spec(self) -> ValueSpec:
        return ValueSpec("array" if self.dtype is None else "raw", dtype=self.dtype, pad=self.pad)


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
        _check_pad(self.pad)
        one_of("dtype", self.dtype, ("float32", "int16"))

    @property
    def spec(self) -> ValueSpec:
        return ValueSpec("audio", dtype=self.dtype, mono=self.mono, pad=self.pad)


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
        _check_pad(self.pad)
        flag("exif_orientation", self.exif_orientation)

    @property
    def spec(self) -> ValueSpec:
        return ValueSpec("image", exif_orientation=bool(self.exif_orientation), pad=self.pad)


def _check_pad(pad: float | None) -> None:
    if pad is not None:
        numbers("pad", [pad], 1)
