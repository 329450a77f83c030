"""torch's DataLoader over loose files, decoded by Pillow: what most users have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Dataset

from .common import TRAIN, Data, list_tree
from .pillow_transform import bytes_and_labels, sizes_of, training_transform

GROUP = "torch"


class Files(Dataset):
    def __init__(self, tree: Path) -> None:
        self.samples = list_tree(tree)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[bytes, int]:
        path, label = self.samples[i]
        return Path(path).read_bytes(), label


def make(data: Data, mode: str) -> Any:
    dataset: Any
    if mode == TRAIN:
        from torchvision.datasets import ImageFolder

        dataset = ImageFolder(str(data.tree), training_transform())
    else:
        dataset = Files(data.tree)
    loader = DataLoader(
        dataset,
        batch_size=data.batch,
        shuffle=True,
        drop_last=True,
        num_workers=data.workers,
        persistent_workers=data.workers > 0,
        collate_fn=None if mode == TRAIN else bytes_and_labels,
    )
    return (lambda: loader) if mode == TRAIN else (lambda: sizes_of(loader))
