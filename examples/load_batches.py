"""Batches without torch: shuffled, decoded, stopped half-way and continued on two ranks; then the report."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import packtrain as pt


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        photos, packed = Path(folder) / "photos", Path(folder) / "photos.pt"
        pt.synth(photos, samples=60, classes=3, splits=True)
        pt.pack(photos, packed, shards=4)

        image = pt.RandomResizedCrop(64, mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD)
        seen: list[int] = []
        with pt.Loader(packed, split="train", global_batch_size=6, image=image, seed=7) as loader:
            print(loader)
            for batch in loader:
                seen += batch["index"].tolist()
                if len(seen) == 18:
                    break
            print({name: (array.shape, str(array.dtype)) for name, array in batch.items()})
            state = json.dumps(loader.state_dict())

        for rank in range(2):
            rest = pt.Loader(packed, split="train", global_batch_size=6, image=image, rank=rank, world_size=2)
            rest.load_state_dict(json.loads(state))
            for batch in rest:
                seen += batch["index"].tolist()
        assert sorted(seen) == list(range(54))  # every sample once, over the stop and both ranks
        print(rest.report())


if __name__ == "__main__":
    main()
