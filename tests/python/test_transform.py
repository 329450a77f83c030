"""Images become the numbers that torchvision makes of them with Pillow: same distribution, same pixels."""

from __future__ import annotations

import io
import math
import os
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest
from packtrain._core import ImageSpec, crop_box, transform_image
from PIL import Image, ImageOps

# The soak sets this to 10,000, and may name a folder of real photographs.
CROPS = int(os.environ.get("PACKTRAIN_TEST_CROPS", "150"))
PHOTOS = os.environ.get("PACKTRAIN_TEST_PHOTOS")


def image_spec(width: int, height: int, **options: object) -> ImageSpec:
    arguments: dict[str, object] = {"crop": "random_resized", "dtype": "uint8", "layout": "HWC", "flip": 0.5}
    return ImageSpec(width=width, height=height, **(arguments | options))  # type: ignore[arg-type]


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def drawing(width: int, height: int) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([x * 3 % 256, y * 4 % 256, x * y % 256], -1).astype(np.uint8))


def by_pillow(image: Image.Image, spec: ImageSpec, key: int) -> np.ndarray:
    """torchvision's resized_crop and hflip on a Pillow image."""
    left, top, width, height, mirrored = crop_box(spec, image.width, image.height, key=key)
    box = (round(left), round(top), round(left + width), round(top + height))
    result = image.crop(box).resize((spec.width, spec.height), Image.Resampling.BILINEAR)
    return np.asarray(ImageOps.mirror(result) if mirrored else result)


def differences(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return np.abs(ours.astype(int) - theirs.astype(int))


def test_random_crops_are_pillows(photos: Path) -> None:
    folder = Path(PHOTOS) if PHOTOS else photos
    files = [f for f in sorted(folder.rglob("*")) if f.suffix.lower() in (".jpg", ".jpeg")]
    draw = random.Random(1)
    mean = 0.0
    for i in range(CROPS):
        data = files[i % len(files)].read_bytes()
        image = Image.open(io.BytesIO(data)).convert("RGB")
        size = draw.choice([(224, 224), (224, 224), (1, 1), (17, 33), (224, 100), (301, 500)])
        scale = draw.choice([(0.08, 1.0), (1e-5, 1e-3), (1.0, 1.0)])  # pixels, and whole frames
        spec = image_spec(*size, scale=scale, ratio=draw.choice([(3 / 4, 4 / 3), (0.1, 10.0)]))
        key = draw.getrandbits(64)
        difference = differences(transform_image(data, spec, key=key), by_pillow(image, spec, key))
        assert difference.max() <= 1, (files[i % len(files)], size, key)
        mean += float(difference.mean()) / CROPS
    # Which axis comes first depends on Pillow's version, and is worth one level here and there.
    assert mean <= 0.2


def test_centre_crops_and_resizes_are_torchvisions() -> None:
    for width, height in [(500, 375), (375, 500), (301, 300), (100, 900), (256, 256)]:
        image = drawing(width, height)
        data = encoded(image, "PNG")
        short = min(width, height)
        resized = image.resize(
            (int(256 * width / short), int(256 * height / short)), Image.Resampling.BILINEAR
        )
        left, top = round((resized.width - 224) / 2.0), round((resized.height - 224) / 2.0)
        expected = np.asarray(resized.crop((left, top, left + 224, top + 224)))
        ours = transform_image(data, image_spec(224, 224, crop="centre", resize=256, flip=0.0))
        assert differences(ours, expected).max() <= 1
        whole = transform_image(data, image_spec(64, 48, crop="resize", flip=0.0))
        expected = np.asarray(image.resize((64, 48), Image.Resampling.BILINEAR))
        assert differences(whole, expected).max() <= 1


def png(depth: int, colour: int, rows: list[bytes], width: int, extra: bytes = b"") -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def every_kind() -> dict[str, bytes]:
    image = drawing(83, 61)
    pixels = np.asarray(image)
    with_alpha = Image.fromarray(np.dstack([pixels, pixels[..., 0]]))
    palette = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
    deep = pixels.astype(np.uint16) * 255 + 7
    return {
        "png": encoded(image, "PNG"),
        "png grey": encoded(image.convert("L"), "PNG"),
        "png one bit": encoded(image.convert("1"), "PNG"),
        "png alpha": encoded(with_alpha, "PNG"),
        "png grey alpha": encoded(image.convert("LA"), "PNG"),
        "png palette": encoded(palette, "PNG", bits=4),
        "png palette transparent": encoded(palette, "PNG", transparency=3),
        "png 16 bit": png(16, 2, [row.astype(">u2").tobytes() for row in deep], 83),
        "webp": encoded(image, "WEBP"),
        "webp lossless": encoded(image, "WEBP", lossless=True),
        "webp alpha": encoded(with_alpha, "WEBP"),
        "jpeg": encoded(image, "JPEG", subsampling=2),
        "jpeg full chroma": encoded(image, "JPEG", subsampling=0),
        "jpeg progressive": encoded(image, "JPEG", progressive=True),
        "jpeg grey": encoded(image.convert("L"), "JPEG"),
        "jpeg inks": encoded(image.convert("CMYK"), "JPEG"),
    }


@pytest.mark.parametrize("name", list(every_kind()))
def test_every_kind_of_image_is_read_as_pillow_reads_it(name: str) -> None:
    data = every_kind()[name]
    image = Image.open(io.BytesIO(data)).convert("RGB")
    spec = image_spec(40, 30)
    for key in range(20):
        try:
            ours = transform_image(data, spec, key=key)
        except pt.UnsupportedError as error:
            pytest.skip(str(error))
        assert differences(ours, by_pillow(image, spec, key)).max() <= 1


def test_deep_grey_keeps_its_upper_bits() -> None:
    """Pillow would make everything above 255 white; see docs/decisions.md."""
    rows = [(np.arange(64, dtype=np.uint16) * 1000).astype(">u2").tobytes()] * 8
    try:
        ours = transform_image(png(16, 0, rows, 64), image_spec(64, 8, crop="resize", flip=0.0))
    except pt.UnsupportedError as error:
        pytest.skip(str(error))
    assert (ours[..., 0] == np.arange(64) * 1000 // 256).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_only_where_asked_for(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    data = encoded(drawing(83, 61), kind, exif=exif.tobytes())
    stored = Image.open(io.BytesIO(data))
    upright = ImageOps.exif_transpose(stored).convert("RGB")
    for key in range(10):
        for asked, image in ((True, upright), (False, stored.convert("RGB"))):
            spec = image_spec(40, 30, exif=asked)
            try:
                ours = transform_image(data, spec, key=key)
            except pt.UnsupportedError as error:
                pytest.skip(str(error))
            assert differences(ours, by_pillow(image, spec, key)).max() <= 1


def test_types_and_layouts_hold_the_same_numbers() -> None:
    data = encoded(drawing(200, 150), "JPEG")
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    pixels = transform_image(data, image_spec(64, 48), key=5)
    expected = (pixels / np.float32(255) - np.float32(mean)) / np.float32(std)
    for layout in ("HWC", "CHW"):
        turned = expected if layout == "HWC" else expected.transpose(2, 0, 1)
        results = {
            kind: transform_image(
                data, image_spec(64, 48, dtype=kind, layout=layout, mean=mean, std=std), key=5
            )
            for kind in ("float32", "float16", "bfloat16")
        }
        assert results["float32"].dtype == np.float32
        assert results["float16"].dtype == np.float16
        np.testing.assert_allclose(results["float32"], turned, atol=1e-6)
        np.testing.assert_allclose(results["float16"], turned, atol=2e-3)
        widened = (results["bfloat16"].astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_allclose(widened, turned, atol=1e-2)
        plain = transform_image(data, image_spec(64, 48, dtype="float32", layout="HWC"), key=5)
        np.testing.assert_allclose(plain, pixels / 255, atol=1e-7)


def draw_as_torchvision(
    draw: random.Random, width: int, height: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """RandomResizedCrop.get_params as its documentation and results have it: (left, top, width, height)."""
    for _ in range(10):
        area = width * height * draw.uniform(*scale)
        shape = math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, width - w), draw.randint(0, height - h), w, h
    w, h = width, height
    if width / height < ratio[0]:
        h = round(width / ratio[0])
    elif width / height > ratio[1]:
        w = round(height * ratio[1])
    return (width - w) // 2, (height - h) // 2, w, h


@pytest.mark.parametrize(("width", "height"), [(500, 375), (120, 400), (900, 60), (30, 30)])
def test_boxes_are_drawn_from_torchvisions_distribution(width: int, height: int) -> None:
    count, scale, ratio = 20_000, (0.08, 1.0), (3 / 4, 4 / 3)
    spec = image_spec(224, 224, scale=scale, ratio=ratio)
    draw = random.Random(7)
    ours = np.array([crop_box(spec, width, height, key=key)[:4] for key in range(count)])
    theirs = np.array([draw_as_torchvision(draw, width, height, scale, ratio) for _ in range(count)])
    # The largest distance of two samples' distributions; beyond this bound it is chance in one of 10^4 cases.
    bound = math.sqrt(-math.log(1e-4 / 2) / 2) * math.sqrt(2 / count)
    for column in range(4):
        steps = np.union1d(ours[:, column], theirs[:, column])
        share = [
            np.searchsorted(np.sort(drawn[:, column]), steps, "right") / count for drawn in (ours, theirs)
        ]
        assert np.abs(share[0] - share[1]).max() <= bound, column
    mirrored = np.mean([crop_box(spec, width, height, key=key)[4] for key in range(count)])
    assert abs(mirrored - 0.5) < 0.02


def test_damage_is_an_error() -> None:
    spec = image_spec(32, 32)
    for kind in ("JPEG", "PNG", "WEBP"):
        data = encoded(drawing(200, 150), kind)
        for key, cut in enumerate((0, 1, 30, len(data) // 2, len(data) - 3)):
            with pytest.raises((pt.CorruptError, pt.UnsupportedError)):
                transform_image(data[:cut], spec, key=key)
    with pytest.raises(pt.UnsupportedError, match="memory="):
        transform_image(encoded(drawing(800, 800), "JPEG", progressive=True), spec, memory=1 << 20)
