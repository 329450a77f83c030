"""What an image is turned into, as plain specs; and which field of a dataset is its image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Optional, Union, get_args

from . import _core
from ._numpy import np
from .checks import MOST_OF_FEW, flag, number, numbers, one_of, whole_number
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
        """Checks all of it at once, and makes plain values of what was given."""
        if (self.mean is None) != (self.std is None):
            raise InvalidError("mean= and std= come together: give both or neither")
        plain: dict[str, Any] = {"size": _plain_size(self.size), "dtype": _type_name(self.dtype)}
        plain["flip"] = number("flip", self.flip)
        for name in ("mean", "std"):
            value = getattr(self, name)
            plain[name] = None if value is None else numbers(name, value, 3)
        for name in ("exif_orientation", "dct_scaling"):
            plain[name] = flag(name, getattr(self, name))
        one_of("layout", self.layout, get_args(Layout))
        for name, value in {**plain, **only_of_this_crop}.items():
            object.__setattr__(self, name, value)  # the dataclasses are frozen
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
        object.__setattr__(self, "spec", spec)

    def __call__(
        self, data: bytes | bytearray | memoryview | np.ndarray[Any, Any], *, key: int = 0
    ) -> np.ndarray[Any, Any]:
        """One image as a loader would make it. `key` settles every random choice; bfloat16 comes as its bits,
        in uint16."""
        return _core.transform_image(_content(data), self.spec, key=whole_number("key", key))

    def __reduce__(self) -> Any:
        """Made anew from the same arguments: what the engine knows is not carried from process to process."""
        arguments = {name: value for name, value in vars(self).items() if name != "spec"}
        return _made, (type(self), arguments)


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
        self._set_spec(
            "random_resized", scale=numbers("scale", self.scale, 2), ratio=numbers("ratio", self.ratio, 2)
        )


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
        self._set_spec("centre", resize=whole_number("resize", self.resize, 1, MOST_OF_FEW))


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


def _made(kind: type[ImageTransform], arguments: dict[str, Any]) -> ImageTransform:
    return kind(**arguments)


def _plain_size(size: Any) -> Size:
    if isinstance(size, (tuple, list)) and len(size) == 2:
        height, width = (whole_number("size", side, 1, MOST_OF_FEW) for side in size)
        return height, width
    if isinstance(size, (tuple, list)):
        raise InvalidError(f"size= is a side, or (height, width), not {size!r}")
    return whole_number("size", size, 1, MOST_OF_FEW)


def _type_name(dtype: Any) -> str:
    """Of NumPy's types too: numpy.uint8 and numpy.dtype("uint8") are "uint8"."""
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", dtype)
    one_of("dtype", name, get_args(PixelType))
    return str(name)


def _content(data: Any) -> bytes:
    """Of whatever holds the bytes of a file, such as a field's value in a batch."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)
    except TypeError:
        raise InvalidError(
            f"an image transform is called with the bytes of an image file, not with a {type(data).__name__}"
        ) from None
    if view.itemsize != 1:
        raise InvalidError(
            f"an image transform is called with the bytes of an image file, not with numbers of "
            f"{view.itemsize} bytes each"
        )
    return view.tobytes()


DECODED = ("jpeg", "png", "webp", "pnm")


def is_image(content: bytes) -> bool:
    """Whether these bytes begin like a JPEG, PNG, WebP or PNM file; names do not count."""
    return _core.media_kind(content) in DECODED


IMAGE_FIELDS = ("jpg", "jpeg", "png", "webp", "ppm", "pgm")  # extensions that mean nothing but the image
LOOKS = 16  # for a sample that has an image, at places all over the dataset


def find_image_fields(data: _core.Dataset) -> list[str]:
    """The one field that holds an image in the first sample that has any, and behind it those that other
    samples may have in its place, as in a folder of .jpg and .png files; an error that names the fields
    where it is not clear. Of an empty dataset nothing will be decoded: any field does.
    """
    if len(data) == 0:
        return data.fields[:1]
    candidates = _fields_with_images(data)
    if len(candidates) == 1:
        others = [name for name in IMAGE_FIELDS if name in data.fields and name not in candidates]
        return candidates + (others if candidates[0] in IMAGE_FIELDS else [])
    found = f"several: {', '.join(candidates)}" if candidates else "none"
    raise InvalidError(
        f"of the fields of a sample, those that hold a JPEG, PNG, WebP or PNM image are {found}; say "
        f"which one to decode with image_field= (there are: {', '.join(data.fields)})",
        data.path,
    )


def _fields_with_images(data: _core.Dataset) -> list[str]:
    """Of the first sample that has any, or an empty list. Samples that are bad are passed over, unless there
    is no other: what becomes of them is decided later."""
    failure: Error | None = None
    readable = 0
    for place in range(0, len(data), max(1, len(data) // LOOKS)):
        try:
            sample = data[place]
        except (CorruptError, NotFoundError, StorageError) as error:
            failure = failure or error
            continue
        readable += 1
        names = [name for name, value in sample.items() if isinstance(value, bytes) and is_image(value)]
        if names:
            return names
    if failure is not None and readable == 0:
        raise failure
    return []
