"""torchvision's transforms on Pillow images, for the loaders that decode in Python."""

from __future__ import annotations

import io
from typing import Any

import torch

# The wheel of torchvision carries operators for GPUs that a torch without CUDA cannot load. Its transforms
# need none of them: it is imported once the two that it registers in Python are declared.
_OPERATORS = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from PIL import Image  # noqa: E402
from torchvision import transforms  # noqa: E402

from .common import MEAN, RATIO, SCALE, SIZE, STD  # noqa: E402


def training_transform() -> Any:
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(SIZE, scale=SCALE, ratio=RATIO),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def open_rgb(encoded: bytes) -> Any:
    with Image.open(io.BytesIO(encoded)) as image:
        return image.convert("RGB")


def bytes_and_labels(samples: Any) -> tuple[list[bytes], Any]:
    """Collates encoded samples without touching them."""
    encoded, labels = zip(*samples)
    return list(encoded), torch.as_tensor(labels)


def sizes_of(batches: Any) -> Any:
    for encoded, labels in batches:
        yield [len(one) for one in encoded], labels
