"""Packs a tree of photographs and reads it back: by position, by key, many at once, from many threads."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import packtrain as pt


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        photos, packed = Path(folder) / "photos", Path(folder) / "photos.pt"
        pt.synth(photos, samples=60, classes=3, splits=True)
        report = pt.pack(photos, packed, shards=4)
        print(f"{report.inodes_before} files and folders became {report.inodes_after}")

        data = pt.Dataset(packed, split="train")
        print(data, data.fields, data.classes)

        sample = data[0]
        print(sample["__key__"], data.classes[sample["cls"]], f"{len(sample['jpg']):,} bytes")
        assert data[sample["__key__"]] == sample

        first_of_class_2 = (data.labels == 2).nonzero()[0][:5]  # no payload is read for this
        print([len(each["jpg"]) for each in data.read(first_of_class_2)])

        with ThreadPoolExecutor(4) as pool:
            total = sum(pool.map(lambda position: len(data.field(position, "jpg")), range(len(data))))
        print(f"{total:,} bytes of photographs")


if __name__ == "__main__":
    main()
