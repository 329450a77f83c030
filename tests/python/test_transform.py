"""Images become the numbers that torchvision makes of them with Pillow: same distribution, same pixels."""

from __future__ import annotations

import io
import math
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest
from packtrain._core import ImageSpec, crop_box, transform_image
from photographs import Differences, as_pillow, image_spec, photo_files, random_crops
from PIL import Image, ImageOps


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


def apart(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return np.abs(ours.astype(int) - theirs.astype(int))


def test_random_crops_of_photographs_are_pillows(photos: Path) -> None:
    differences = Differences()
    for file, data, spec, key in random_crops(photo_files(photos)):
        ours = transform_image(data, spec, key=key)
        differences.add(ours, by_pillow(as_pillow(data), spec, key), (file, spec.width, spec.height, key))
    differences.check()


def by_pillow_from_the_centre(image: Image.Image) -> np.ndarray:
    """torchvision's Resize(256) and CenterCrop(224)."""
    short = min(image.size)
    resized = image.resize(
        (int(256 * image.width / short), int(256 * image.height / short)), Image.Resampling.BILINEAR
    )
    left, top = round((resized.width - 224) / 2.0), round((resized.height - 224) / 2.0)
    return np.asarray(resized.crop((left, top, left + 224, top + 224)))


def test_centre_crops_and_resizes_of_photographs_are_torchvisions(photos: Path) -> None:
    differences = Differences()
    contents = [(str(file), file.read_bytes()) for file in photo_files(photos)]
    sizes = [(500, 375), (375, 500), (301, 300), (100, 900), (256, 256)]
    contents += [(f"a drawing of {size}", encoded(drawing(*size), "PNG")) for size in sizes]
    for name, data in contents:
        image = as_pillow(data)
        ours = transform_image(data, image_spec(224, 224, crop="centre", resize=256, flip=0.0))
        differences.add(ours, by_pillow_from_the_centre(image), name)
        whole = transform_image(data, image_spec(64, 48, crop="resize", flip=0.0))
        expected = np.asarray(image.resize((64, 48), Image.Resampling.BILINEAR))
        differences.add(whole, expected, name)
    differences.check()


# Where each pass of an interlaced PNG begins, across and down, and its steps.
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6


def png(
    samples: np.ndarray,
    depth: int,
    colour: int,
    extra: tuple[bytes, bytes] | None = None,
    interlaced: bool = False,
) -> bytes:
    """A PNG of samples[height, width, channels], for what Pillow does not write."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    def packed(row: np.ndarray) -> bytes:
        if depth == 16:
            return row.astype(">u2").tobytes()
        bits = np.unpackbits(row.astype(np.uint8).reshape(-1, 1), axis=1)
        return np.packbits(bits[:, 8 - depth :]).tobytes()

    parts = [samples[y::down, x::across] for x, y, across, down in (ADAM7 if interlaced else ((0, 0, 1, 1),))]
    data = zlib.compress(b"".join(b"\0" + packed(row) for part in parts if part.size for row in part))
    height, width = samples.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    chunks = [(b"IHDR", header), *([extra] if extra else []), (b"IDAT", data), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def interlaced_kinds(width: int, height: int) -> dict[str, bytes]:
    pixels = np.asarray(drawing(width, height)).astype(int)
    alpha = pixels[..., 1:2]
    colours = (b"PLTE", bytes(np.arange(48, dtype=np.uint8) * 5))
    kinds = {
        "8 bit": (pixels, 8, RGB),
        "16 bit": (pixels * 255 + 7, 16, RGB),
        "alpha": (np.dstack([pixels, alpha]), 8, RGBA),
        "16 bit alpha": (np.dstack([pixels, alpha]) * 255 + 7, 16, RGBA),
        "grey": (alpha, 8, GREY),
        "two bit": (alpha % 4, 2, GREY),
        "one bit": (alpha // 16 % 2, 1, GREY),
        "grey alpha": (np.dstack([alpha, 255 - alpha]), 8, GREY_ALPHA),
    }
    made = {name: png(*kind, interlaced=True) for name, kind in kinds.items()}
    made["palette"] = png(alpha % 16, 8, PALETTE, colours, interlaced=True)
    made["palette of four bits"] = png(alpha % 16, 4, PALETTE, colours, interlaced=True)
    return {f"png interlaced {name}": data for name, data in made.items()}


def every_kind() -> dict[str, bytes]:
    image = drawing(83, 61)
    pixels = np.asarray(image)
    with_alpha = Image.fromarray(np.dstack([pixels, pixels[..., 0]]))
    palette = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
    return {
        "png": encoded(image, "PNG"),
        "png grey": encoded(image.convert("L"), "PNG"),
        "png one bit": encoded(image.convert("1"), "PNG"),
        "png alpha": encoded(with_alpha, "PNG"),
        "png grey alpha": encoded(image.convert("LA"), "PNG"),
        "png palette": encoded(palette, "PNG", bits=4),
        "png palette transparent": encoded(palette, "PNG", transparency=3),
        "png 16 bit": png(pixels.astype(int) * 255 + 7, 16, RGB),
        "webp": encoded(image, "WEBP"),
        "webp lossless": encoded(image, "WEBP", lossless=True),
        "webp alpha": encoded(with_alpha, "WEBP"),
        "jpeg": encoded(image, "JPEG", subsampling=2),
        "jpeg full chroma": encoded(image, "JPEG", subsampling=0),
        "jpeg progressive": encoded(image, "JPEG", progressive=True),
        "jpeg grey": encoded(image.convert("L"), "JPEG"),
        "jpeg inks": encoded(image.convert("CMYK"), "JPEG"),
        **interlaced_kinds(83, 61),
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
        assert apart(ours, by_pillow(image, spec, key)).max() <= 1


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 1), (1, 3), (4, 4), (5, 9)])
def test_small_interlaced_images_have_no_more_passes_than_pixels(width: int, height: int) -> None:
    spec = image_spec(width, height, crop="resize", flip=0.0)
    for name, data in interlaced_kinds(width, height).items():
        try:
            ours = transform_image(data, spec)
        except pt.UnsupportedError as error:
            pytest.skip(str(error))
        assert (ours == np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))).all(), name


@pytest.mark.parametrize("interlaced", [False, True])
def test_deep_grey_keeps_its_upper_bits(interlaced: bool) -> None:
    """Pillow would make everything above 255 white; see docs/decisions.md."""
    ramp = np.tile(np.arange(64) * 1000, (8, 1))[..., np.newaxis]
    data = png(ramp, 16, GREY, interlaced=interlaced)
    try:
        ours = transform_image(data, image_spec(64, 8, crop="resize", flip=0.0))
    except pt.UnsupportedError as error:
        pytest.skip(str(error))
    assert (ours == ramp // 256).all()


def test_an_interlaced_image_that_memory_cannot_hold_is_refused() -> None:
    pixels = np.asarray(drawing(800, 800))
    spec, little = image_spec(32, 32), 1 << 20
    try:
        ours = transform_image(png(pixels, 8, RGB), spec, memory=little)  # whose rows stream
    except pt.UnsupportedError as error:
        pytest.skip(str(error))
    interlaced = png(pixels, 8, RGB, interlaced=True)
    with pytest.raises(pt.UnsupportedError, match="would take little"):
        transform_image(interlaced, spec, memory=little)
    assert (transform_image(interlaced, spec) == ours).all()


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
            assert apart(ours, by_pillow(image, spec, key)).max() <= 1


def test_kernels_are_chosen_by_the_environment_and_make_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = encoded(drawing(301, 203), "JPEG")
    monkeypatch.delenv("PACKTRAIN_KERNELS", raising=False)
    specs = [image_spec(97, 61, dtype=dtype) for dtype in ("uint8", "float16", "bfloat16", "float32")]
    best = [transform_image(data, spec, key=key) for spec in specs for key in range(5)]
    monkeypatch.setenv("PACKTRAIN_KERNELS", "scalar")
    scalar = [transform_image(data, spec, key=key) for spec in specs for key in range(5)]
    assert all((a == b).all() for a, b in zip(best, scalar))
    monkeypatch.setenv("PACKTRAIN_KERNELS", "mmx")
    with pytest.raises(pt.InvalidError, match="PACKTRAIN_KERNELS=mmx"):
        transform_image(data, specs[0])


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
    with pytest.raises(pt.UnsupportedError, match="would take little"):
        transform_image(encoded(drawing(800, 800), "JPEG", progressive=True), spec, memory=1 << 20)


def chunk_of(data: bytes, name: bytes) -> tuple[int, int]:
    """Where the bytes of a PNG's first chunk of that name begin and end."""
    at = 8
    while data[at + 4 : at + 8] != name:
        at += 12 + struct.unpack(">I", data[at : at + 4])[0]
    return at + 8, at + 8 + struct.unpack(">I", data[at : at + 4])[0]


@pytest.mark.parametrize("interlaced", [False, True])
def test_damage_in_a_png_is_found_whatever_the_crop(interlaced: bool) -> None:
    whole = png(np.asarray(drawing(200, 150)), 8, RGB, interlaced=interlaced)
    spec = image_spec(32, 32)
    draw = random.Random(3)
    begin, end = chunk_of(whole, b"IDAT")
    for key in range(100):
        damaged = bytearray(whole)
        damaged[draw.randrange(begin, end)] ^= 1 << draw.randrange(8)
        try:
            transform_image(whole, spec, key=key)
        except pt.UnsupportedError as error:
            pytest.skip(str(error))
        with pytest.raises(pt.CorruptError, match="its chunk IDAT, 33 bytes from the start, is not what"):
            transform_image(bytes(damaged), spec, key=key)


def test_damage_that_no_pixel_of_a_png_depends_on_is_passed_over() -> None:
    text = png(np.asarray(drawing(40, 30)), 8, RGB, extra=(b"tEXt", b"Comment\0nothing"))
    damaged = text.replace(b"nothing", b"nothinh")
    spec = image_spec(16, 16)
    try:
        expected = transform_image(text, spec)
    except pt.UnsupportedError as error:
        pytest.skip(str(error))
    assert (transform_image(damaged, spec) == expected).all()


def test_damage_in_the_scan_of_a_photograph_is_found_where_it_is_decoded(photos: Path) -> None:
    """Flipped bits of which libjpeg would warn; most others give another valid image."""
    data = next(iter(sorted(photos.rglob("*.jpg")))).read_bytes()
    spec = image_spec(32, 32, crop="resize", flip=0.0)
    expected = transform_image(data, spec).astype(int)
    draw = random.Random(5)
    scan = data.rindex(b"\xff\xda") + 20
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(40):  # so many that the codes do not find back
            damaged[draw.randrange(scan, len(data) - 2)] ^= 1 << draw.randrange(8)
        try:
            assert np.abs(transform_image(bytes(damaged), spec) - expected).max() > 0
        except pt.CorruptError:
            refused += 1
    assert refused >= 140
