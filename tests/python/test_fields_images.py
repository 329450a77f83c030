"""Images in their own size as fields of a batch: Pillow's pixels, as lists or padded, and bad ones."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from field_files import packed_values
from PIL import Image, ImageOps

SIZES = [(83, 61), (61, 83), (1, 1), (200, 3), (640, 480), (83, 61)]


def drawing(width: int, height: int) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([x * 3 % 256, y * 4 % 256, x * y % 256], -1).astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def by_pillow(content: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def first_batch(data: pt.Dataset, kind: Any, **options: Any) -> dict[str, Any]:
    fields = {"img": kind}
    return next(iter(pt.Loader(data, batch_size=len(data), shuffle=False, fields=fields, **options)))


def every_kind() -> list[bytes]:
    image = drawing(83, 61)
    return [
        encoded(image, "JPEG", subsampling=2),
        encoded(image, "JPEG", subsampling=0, progressive=True),
        encoded(image.convert("L"), "JPEG"),
        encoded(image.convert("CMYK"), "JPEG"),
        encoded(image, "PNG"),
        encoded(image.convert("L"), "PNG"),
        encoded(image.convert("P"), "PNG"),
        encoded(image, "WEBP"),
        encoded(image, "PPM"),
        encoded(image.convert("L"), "PPM"),
    ]


def test_every_kind_has_pillows_pixels_and_they_are_one_array(tmp_path: Path) -> None:
    contents = every_kind()
    data = packed_values(tmp_path, "img", list(contents))
    try:
        batch = first_batch(data, "image")
    except pt.UnsupportedError as error:
        pytest.skip(str(error))
    assert batch["img"].dtype == np.uint8
    assert batch["img"].base is not None  # a view of the batch's memory
    for place, content in enumerate(contents):
        np.testing.assert_array_equal(batch["img"][place], by_pillow(content))


def test_photographs_are_pillows(packed: Path) -> None:
    data = pt.Dataset(packed, split="train")
    seen = 0
    for batch in pt.Loader(data, batch_size=5, last="keep", fields={"jpg": "image"}, threads=2):
        for index, pixels in zip(batch["index"], batch["jpg"]):
            np.testing.assert_array_equal(pixels, by_pillow(data[int(index)]["jpg"]))
            seen += 1
    assert seen == len(data)


def test_sizes_of_their_own_come_as_a_list_or_padded(tmp_path: Path) -> None:
    contents = [encoded(drawing(*size), "JPEG", quality=90) for size in SIZES]
    data = packed_values(tmp_path, "img", [*contents, None])
    batch = first_batch(data, "image")
    assert isinstance(batch["img"], list)
    assert batch["img"][-1] is None
    assert "img_size" not in batch
    for pixels, content in zip(batch["img"], contents):
        np.testing.assert_array_equal(pixels, by_pillow(content))

    batch = first_batch(data, pt.Image(pad=7))
    assert batch["img"].shape == (len(SIZES) + 1, 480, 640, 3)
    assert batch["img_size"].tolist() == [[height, width] for width, height in SIZES] + [[0, 0]]
    for place, content in enumerate(contents):
        height, width = batch["img_size"][place]
        np.testing.assert_array_equal(batch["img"][place, :height, :width], by_pillow(content))
        assert (batch["img"][place, height:] == 7).all()
        assert (batch["img"][place, :, width:] == 7).all()
    assert (batch["img"][-1] == 7).all()


def test_padded_images_of_one_size_are_not_moved(tmp_path: Path) -> None:
    contents = [encoded(drawing(40, 30), "JPEG", quality=quality) for quality in (50, 70, 90)]
    batch = first_batch(packed_values(tmp_path, "img", list(contents)), pt.Image(pad=0))
    assert batch["img_size"].tolist() == [[30, 40]] * 3
    for place, content in enumerate(contents):
        np.testing.assert_array_equal(batch["img"][place], by_pillow(content))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_only_where_asked_for(tmp_path: Path, kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x112] = orientation
    content = encoded(drawing(83, 61), kind, exif=exif.tobytes())
    data = packed_values(tmp_path, "img", [content])
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB")
    try:
        stored = first_batch(data, "image")["img"][0]
    except pt.UnsupportedError as error:
        pytest.skip(str(error))
    np.testing.assert_array_equal(stored, by_pillow(content))
    turned = first_batch(data, pt.Image(exif_orientation=True))["img"][0]
    np.testing.assert_array_equal(turned, np.asarray(upright))


def test_bad_ones_are_raised_skipped_or_replaced(tmp_path: Path) -> None:
    good = [encoded(drawing(40, 30), "JPEG", quality=quality) for quality in (50, 70, 90)]
    data = packed_values(tmp_path, "img", [good[0], good[1][:-200], b"no image", good[2]])
    with pytest.raises(pt.CorruptError, match=r"sample 1 \(001\): field 'img': the JPEG is cut short"):
        first_batch(data, "image")
    batch = first_batch(data, "image", on_error="skip")
    assert batch["index"].tolist() == [0, 3]
    np.testing.assert_array_equal(batch["img"], np.stack([by_pillow(good[0]), by_pillow(good[2])]))
    batch = first_batch(data, pt.Image(pad=0), on_error="replace")
    assert batch["replaced"].tolist() == [False, True, True, False]
    for index, pixels in zip(batch["index"], batch["img"]):
        np.testing.assert_array_equal(pixels, by_pillow(good[0 if index == 0 else 2]))


def test_one_that_memory_cannot_hold_is_a_bad_one(tmp_path: Path) -> None:
    small, large = encoded(drawing(40, 30), "JPEG"), drawing(4200, 3000)  # 38 MB of pixels
    data = packed_values(tmp_path / "large", "img", [small, encoded(large, "JPEG", quality=20)])
    options: dict[str, Any] = {"batch_size": 2, "shuffle": False, "fields": {"img": "image"}}
    loader = pt.Loader(data, memory=120_000_000, on_error="skip", **options)
    assert next(iter(loader))["index"].tolist() == [0]
    assert "uint8 (3000, 4200, 3) takes 37.8 MB" in loader.report().bad[0].what

    # 76 MB of coefficients; many threads have little each.
    whole = encoded(large, "JPEG", quality=20, subsampling=0, progressive=True)
    data = packed_values(tmp_path / "whole", "img", [small, whole])
    loader = pt.Loader(data, memory=160_000_000, threads=16, on_error="skip", **options)
    assert next(iter(loader))["index"].tolist() == [0]
    what = loader.report().bad[0].what
    assert "a progressive JPEG of 4200 x 3000 pixels takes" in what
    enough = int(re.findall(r"memory=(\d+)", what)[0])
    batch = next(iter(pt.Loader(data, memory=enough, threads=16, **options)))
    np.testing.assert_array_equal(batch["img"][1], by_pillow(whole))


def test_oddities_are_counted(tmp_path: Path) -> None:
    content = encoded(drawing(40, 30), "JPEG")
    odd = content[:2] + b"\xff\xe0\x00\x10JFIF\x00\x09\x09\x00\x00\x01\x00\x01\x00\x00" + content[20:]
    data = packed_values(tmp_path, "img", [content, odd])
    loader = pt.Loader(data, batch_size=2, shuffle=False, fields={"img": "image"})
    batch = next(iter(loader))
    np.testing.assert_array_equal(batch["img"][0], batch["img"][1])
    assert loader.report().warnings == 1
    assert "1 oddity in images was passed over, as no pixel depends on it" in str(loader.report())


def test_they_stand_beside_a_transformed_image_and_reach_functions(packed: Path) -> None:
    def transform(sample: dict[str, Any]) -> dict[str, Any]:
        return {"mean": float(sample["jpg"].mean()), "shape": sample["jpg"].shape, "image": sample["image"]}

    loader = pt.Loader(
        packed, split="train", batch_size=4, image=pt.Resize(16), fields={"jpg": "image"}, transform=transform
    )
    batch = next(iter(loader))
    assert batch["image"].shape == (4, 3, 16, 16)
    np.testing.assert_allclose(batch["mean"] / 255, batch["image"].mean((1, 2, 3)), atol=0.02)


def test_wrong_specs_are_refused() -> None:
    with pytest.raises(pt.InvalidError, match="pad="):
        pt.Image(pad="white")  # type: ignore[arg-type]
    with pytest.raises(pt.InvalidError, match="exif_orientation="):
        pt.Image(exif_orientation="yes")  # type: ignore[arg-type]
