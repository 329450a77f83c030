"""A dataset under torch's DataLoader with decoding of one's own; without torch, the same in plain loops."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import packtrain as pt


class Photographs:
    """Any object with a length and a __getitem__ will do. It pickles by path, so it may go to any worker."""

    def __init__(self, path: Path, split: str) -> None:
        self.data = pt.Dataset(path, split=split)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, position: int) -> tuple[int, int]:
        sample = self.data[position]
        return len(sample["jpg"]), sample["cls"]  # decode here


def batches(dataset: Photographs, size: int) -> Any:
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        return [
            list(zip(*(dataset[i] for i in range(start, min(start + size, len(dataset))))))
            for start in range(0, len(dataset), size)
        ]
    return DataLoader(dataset, batch_size=size, num_workers=2)  # type: ignore[arg-type]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pt.synth(Path(folder) / "photos", samples=40, classes=4, splits=True)
        pt.pack(Path(folder) / "photos", Path(folder) / "photos.pt")
        for lengths, labels in batches(Photographs(Path(folder) / "photos.pt", "train"), 16):
            print(len(lengths), "samples, labels", sorted({int(label) for label in labels}))


if __name__ == "__main__":
    main()
