"""Images become what torchvision's own transforms make of them on Pillow images, boxes come as it draws them.

torchvision lies in a folder of its own beside the environment (requirements/torchvision.txt): its wheel's
compiled operators want CUDA, which PyTorch for CPUs has not, and Lightning would import it where it can.
"""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from packtrain._core import crop_box, transform_image
from photographs import Differences, as_pillow, image_spec, photo_files, random_crops

torch = pytest.importorskip("torch", reason="no torch here; the stage `torch` of ./dev test has it")


def import_transforms() -> Any:
    beside = Path(sys.prefix) / "vision"
    if not beside.is_dir():
        return pytest.importorskip("torchvision.transforms", reason="torchvision is not installed")
    # Two of its operators it describes to torch wherever it is imported. Transforms need none: that they are
    # declared is enough.
    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import_transforms.operators = operators  # type: ignore[attr-defined]  # gone with the last reference
    sys.path.append(str(beside))
    try:
        return importlib.import_module("torchvision.transforms")
    finally:
        sys.path.remove(str(beside))


transforms = import_transforms()
BILINEAR = transforms.InterpolationMode.BILINEAR


def test_random_crops_of_photographs_are_torchvisions(photos: Path) -> None:
    differences = Differences()
    for file, data, spec, key in random_crops(photo_files(photos)):
        image = as_pillow(data)
        left, top, width, height, mirrored = crop_box(spec, image.width, image.height, key=key)
        box = (round(top), round(left), round(height), round(width))
        expected = transforms.functional.resized_crop(
            image, *box, [spec.height, spec.width], BILINEAR, antialias=True
        )
        if mirrored:
            expected = transforms.functional.hflip(expected)
        ours = transform_image(data, spec, key=key)
        differences.add(ours, np.asarray(expected), (file, spec.width, spec.height, key))
    differences.check()


def test_centre_crops_and_resizes_of_photographs_are_torchvisions(photos: Path) -> None:
    centre = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])
    whole = transforms.Resize((48, 64))
    differences = Differences()
    for file in photo_files(photos):
        data = file.read_bytes()
        image = as_pillow(data)
        ours = transform_image(data, image_spec(224, 224, crop="centre", resize=256, flip=0.0))
        differences.add(ours, np.asarray(centre(image)), file)
        ours = transform_image(data, image_spec(64, 48, crop="resize", flip=0.0))
        differences.add(ours, np.asarray(whole(image)), file)
    differences.check()


def test_the_numbers_of_an_evaluation_are_torchvisions(packed: Path) -> None:
    """The usual pipeline to the end, against the loader: what a model sees."""
    theirs = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(pt.IMAGENET_MEAN, pt.IMAGENET_STD),
        ]
    )
    image = pt.CenterCrop(224, resize=256, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
    level = 1 / 255 / min(pt.IMAGENET_STD)
    data = pt.Dataset(packed, split="val")
    for batch in pt.Loader(data, batch_size=2, shuffle=False, image=image):
        for ours, index in zip(batch["image"], batch["index"]):
            expected = theirs(as_pillow(data[int(index)]["jpg"])).numpy()
            assert ours.dtype == expected.dtype == np.float32
            assert np.abs(ours - expected).max() <= level * 1.001
            assert np.abs(ours - expected).mean() <= 0.2 * level


@pytest.mark.parametrize(("width", "height"), [(500, 375), (120, 400), (900, 60), (30, 30)])
def test_boxes_are_drawn_from_torchvisions_own_distribution(width: int, height: int) -> None:
    count, scale, ratio = 10_000, (0.08, 1.0), (3 / 4, 4 / 3)
    spec = image_spec(224, 224, scale=scale, ratio=ratio)
    ours = np.array([crop_box(spec, width, height, key=key)[:4] for key in range(count)])
    torch.manual_seed(7)
    image = torch.empty(3, height, width)
    drawn = [
        transforms.RandomResizedCrop.get_params(image, list(scale), list(ratio)) for _ in range(count)
    ]  # top, left, height, width
    theirs = np.array(drawn)[:, [1, 0, 3, 2]]
    # The largest distance of two samples' distributions; beyond this bound it is chance in one of 10^4 cases.
    bound = math.sqrt(-math.log(1e-4 / 2) / 2) * math.sqrt(2 / count)
    for column in range(4):
        steps = np.union1d(ours[:, column], theirs[:, column])
        share = [
            np.searchsorted(np.sort(boxes[:, column]), steps, "right") / count for boxes in (ours, theirs)
        ]
        assert np.abs(share[0] - share[1]).max() <= bound, column
