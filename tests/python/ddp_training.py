"""One rank of a small training under torch's DistributedDataParallel; test_loader_torch.py starts several.

ddp_training.py DATASET CHECKPOINT RESULT EPOCHS STOP: trains EPOCHS epochs, or stops after STOP steps (0:
never) and leaves CHECKPOINT, from which another call goes on. Rank 0 writes weights and accuracy to RESULT.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import packtrain as pt
import packtrain.torch as ptt
import torch
from torch.nn.parallel import DistributedDataParallel

GLOBAL_BATCH = 16


def make_model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16, 4),
    )


def accuracy(model: Any, dataset: str) -> float:
    loader = ptt.Loader(
        dataset,
        split="train",
        batch_size=40,
        shuffle=False,
        last="keep",
        image=pt.CenterCrop(32, 32, dct_scaling=True),
        rank=0,
        world_size=1,
    )
    with torch.no_grad():
        hits = [(model(b["image"]).argmax(1) == b["label"]).float() for b in loader]
    return float(torch.cat(hits).mean())


def main() -> None:
    dataset, checkpoint, result, epochs, stop = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    loader = ptt.Loader(
        dataset,
        split="train",
        global_batch_size=GLOBAL_BATCH,
        seed=3,
        image=pt.RandomResizedCrop(32, scale=(0.8, 1.0), dct_scaling=True),
    )
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    steps = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
    while loader.epoch < int(epochs):
        for batch in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch["image"]), batch["label"]).backward()
            optimizer.step()
            steps += 1
            if steps == int(stop):
                if loader.rank == 0:
                    saved = {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "loader": loader.state_dict(),
                    }
                    torch.save(saved, checkpoint)
                torch.distributed.destroy_process_group()
                return
    if loader.rank == 0:
        weights = [weight.detach() for weight in model.module.parameters()]
        torch.save({"weights": weights, "accuracy": accuracy(model.module, dataset)}, result)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
