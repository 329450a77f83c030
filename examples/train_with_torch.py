"""Trains a small network under torch, one rank or many, and goes on from a checkpoint: docs/migration.md.

    python examples/train_with_torch.py photos.pt checkpoint.torch
    torchrun --nproc-per-node 4 examples/train_with_torch.py photos.pt checkpoint.torch

Without arguments it makes photographs and trains on them; without torch it says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import packtrain as pt

try:
    import packtrain.torch as ptt
    import torch
except ImportError:
    print("torch is not installed: nothing to train with")
    sys.exit(0)


def train(dataset: Path, checkpoint: Path, epochs: int = 2) -> None:
    if torch.distributed.is_torchelastic_launched():
        torch.distributed.init_process_group()
    loader = ptt.Loader(
        dataset,
        split="train",
        global_batch_size=16,
        seed=1,
        image=pt.RandomResizedCrop(32, flip=0.5, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD),
    )
    model: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16, len(loader.dataset.classes)),
    )
    if torch.distributed.is_initialized():
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])

    while loader.epoch < epochs:
        epoch = loader.epoch
        for batch in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"])
            loss.backward()
            optimizer.step()
        if loader.rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}")
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "loader": loader.state_dict(),
                },
                checkpoint,
            )
    if loader.rank == 0:
        print(loader.report())
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def main() -> None:
    if len(sys.argv) == 3:
        train(Path(sys.argv[1]), Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        dataset, checkpoint = Path(folder) / "photos.pt", Path(folder) / "checkpoint"
        pt.synth(Path(folder) / "photos", samples=80, classes=4, splits=True)
        pt.pack(Path(folder) / "photos", dataset)
        train(dataset, checkpoint, epochs=1)
        train(dataset, checkpoint, epochs=2)  # goes on where the first call ended


if __name__ == "__main__":
    main()
