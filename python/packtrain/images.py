"""What an image is turned into, as plain specs; and which field of a dataset is its image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from . import _core
from ._numpy import np
from .errors import CorruptError, Error, InvalidError, NotFoundError, StorageError

# Of red, green and blue over ImageNet's pixels in [0, 1]: what most published models were trained with.
IMAGENET_MEAN: tuple[float, float, float] = (0.485, 0.456, 0.406)
IMAGENET_STD: tuple[float, float, float] = (0.229, 0.224, 0.225)

Size = Union[int, tuple[int, int]]
Channels = Optional[tuple[float, float, float]]
PixelType = Literal["uint8", "float16", "bfloat16", "float32"]
Layout = Literal["CHW", "HWC"]


class ImageTransform:
    """What an image is turned into. Immutable; called with the bytes of an image file, it does so.

    `size`: a side, or (height, width). `flip`: how likely the result is mirrored. `mean` and `std`: of each
    channel, of pixels in [0, 1]. `dtype`: uint8 (0 to 255), or float32, float16, bfloat16 (0 to 1, then
    normalised). `exif_orientation`: turn the image upright first, which torchvision does not. `dct_scaling`:
    decode large JPEGs at a half, a quarter or an eighth, which is faster and not exact.
    """

    size: Size
    flip: float
    mean: Channels
    std: Channels
    dtype: PixelType
    layout: Layout
    exif_orientation: bool
    dct_scaling: bool
    spec: _core.ImageSpec
    """The same as the engine knows it."""

    def _set_spec(self, crop: str, **only_of_this_crop: Any) -> None:
        """Checks all of it at once."""
        if (self.mean is None) != (self.std is None):
            raise InvalidError("mean= and std= come together: give both or neither")
        height, width = (self.size, self.size) if isinstance(self.size, int) else self.size
        spec = _core.ImageSpec(
            crop=crop,
            width=width,
            height=height,
            flip=self.flip,
            mean=self.mean,
            std=self.std,
            dtype=self.dtype,
            layout=self.layout,
            exif=self.exif_orientation,
            dct_scaling=self.dct_scaling,
            **only_of_this_crop,
        )
        object.__setattr__(self, "spec", spec)  # the dataclasses are frozen

    def __call__(self, data: bytes, *, key: int = 0) -> np.ndarray[Any, Any]:
        """One image as a loader would make it. `key` settles every random choice; bfloat16 comes as its bits,
        in uint16."""
        return _core.transform_image(data, self.spec, key=key)


@dataclass(frozen=True)
class RandomResizedCrop(ImageTransform):
    """A box of random area (`scale`) and shape (`ratio`, width over height), resized, as torchvision does."""

    size: Size
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    mean: Channels = None
    std: Channels = None
    dtype: PixelType = "float32"
    layout: Layout = "CHW"
    exif_orientation: bool = False
    dct_scaling: bool = False

    def __post_init__(self) -> None:
        self._set_spec("random_resized", scale=self.scale, ratio=self.ratio)


@dataclass(frozen=True)
class CenterCrop(ImageTransform):
    """The shorter side resized to `resize`, then the middle: torchvision's Resize and CenterCrop."""

    size: Size
    resize: int = 256
    flip: float = 0.0
    mean: Channels = None
    std: Channels = None
    dtype: PixelType = "float32"
    layout: Layout = "CHW"
    exif_orientation: bool = False
    dct_scaling: bool = False

    def __post_init__(self) -> None:
        self._set_spec("centre", resize=self.resize)


@dataclass(frozen=True)
class Resize(ImageTransform):
    """The whole image to this size, whatever its shape: torchvision's Resize((height, width))."""

    size: Size
    flip: float = 0.0
    mean: Channels = None
    std: Channels = None
    dtype: PixelType = "float32"
    layout: Layout = "CHW"
    exif_orientation: bool = False
    dct_scaling: bool = False

    def __post_init__(self) -> None:
        self._set_spec("resize")


DECODED = ("jpeg", "png", "webp")


def is_image(content: bytes) -> bool:
    """Whether these bytes begin like a JPEG, PNG or WebP file; names do not count."""
    return _core.media_kind(content) in DECODED


LOOKS = 16  # for a sample that can be read, at places all over the dataset


def find_image_field(data: _core.Dataset) -> str:
    """The one field of a sample that holds an image; an error that names the fields otherwise."""
    if len(data) == 0:  # nothing will be decoded: any field does
        candidates = data.fields[:1]
    else:
        sample = first_readable(data)
        candidates = [name for name, value in sample.items() if isinstance(value, bytes) and is_image(value)]
    if len(candidates) == 1:
        return candidates[0]
    found = f"several: {', '.join(candidates)}" if candidates else "none"
    raise InvalidError(
        f"of the fields of a sample, those that hold a JPEG, PNG or WebP image are {found}; say "
        f"which one to decode with image_field= (there are: {', '.join(data.fields)})",
        data.path,
    )


def first_readable(data: _core.Dataset) -> dict[str, Any]:
    """The first sample, or one further on if it is bad: what becomes of such samples is decided later."""
    failure: Error | None = None
    for place in range(0, len(data), max(1, len(data) // LOOKS)):
        try:
            return data[place]
        except (CorruptError, NotFoundError, StorageError) as error:
            failure = failure or error
    assert failure is not None
    raise failure
