"""LMDB behind torch's DataLoader: a value is two bytes of label and the encoded image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmdb
from torch.utils.data import DataLoader, Dataset

from .common import BYTES, Data, list_tree
from .pillow_transform import bytes_and_labels, sizes_of

GROUP = "torch"
MAP_BYTES = 1 << 36
LABEL_BYTES = 2


def key_of(i: int) -> bytes:
    return b"%08d" % i


def prepare(data: Data) -> None:
    environment = lmdb.open(str(data.store), map_size=MAP_BYTES)
    with environment.begin(write=True) as transaction:
        for i, (path, label) in enumerate(list_tree(data.tree)):
            transaction.put(key_of(i), label.to_bytes(LABEL_BYTES, "little") + Path(path).read_bytes())
    environment.close()


class Values(Dataset):
    """Opened by each process for itself, as LMDB asks."""

    def __init__(self, store: Path) -> None:
        self.store, self.transaction = str(store), None
        environment = lmdb.open(self.store, readonly=True, lock=False)
        self.count = environment.stat()["entries"]
        environment.close()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> tuple[bytes, int]:
        if self.transaction is None:
            environment = lmdb.open(self.store, readonly=True, lock=False, readahead=False)
            self.transaction = environment.begin(buffers=True)
        value = self.transaction.get(key_of(i))
        return bytes(value[LABEL_BYTES:]), int.from_bytes(value[:LABEL_BYTES], "little")


def make(data: Data, mode: str) -> Any:
    if mode != BYTES:
        raise ValueError("LMDB is there for bytes only: decoded, it is the DataLoader of torch_files.py")
    loader = DataLoader(
        Values(data.store),
        batch_size=data.batch,
        shuffle=True,
        drop_last=True,
        num_workers=data.workers,
        persistent_workers=data.workers > 0,
        collate_fn=bytes_and_labels,
    )
    return lambda: sizes_of(loader)
