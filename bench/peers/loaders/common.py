"""What every loader is told, and the numbers of the training workload."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SIZE = 224
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SHUFFLE_BUFFER = 1000  # samples, for loaders that read in order and shuffle what they hold

TRAIN, BYTES = "train", "bytes"


@dataclass(frozen=True)
class Data:
    tree: Path  # class folders
    dataset: Path  # the same packed: WebDataset shards, and packtrain's index
    store: Path  # what this loader wrote for itself
    field: str  # of the photo within a packed sample
    batch: int
    workers: int  # 0: read in the consumer's own process
    options: dict[str, str]  # of packtrain's own loader

    @property
    def shards(self) -> list[str]:
        return sorted(map(str, self.dataset.glob("*.tar")))


def list_tree(tree: Path) -> list[tuple[str, int]]:
    """Paths with labels numbered by sorted class name, as torchvision's ImageFolder numbers them."""
    classes = sorted(entry for entry in tree.iterdir() if entry.is_dir())
    return [(str(path), label) for label, entry in enumerate(classes) for path in sorted(entry.iterdir())]
