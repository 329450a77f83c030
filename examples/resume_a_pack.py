"""Stops a pack on the way and runs it again: it goes on where it was and gives the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import packtrain as pt


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        photos, packed = Path(folder) / "photos", Path(folder) / "photos.pt"
        pt.synth(photos, samples=60, classes=3)

        def stop_at_once(progress: pt.Progress) -> bool:
            print(f"{progress.phase}: {progress.items} of {progress.items_total} {progress.unit}")
            return False

        try:
            pt.pack(photos, packed, shards=6, progress=stop_at_once)
        except pt.StoppedError as error:
            print("stopped:", error)
        assert not packed.exists()  # nothing half done is ever seen

        report = pt.pack(photos, packed, shards=6)
        print(f"{report.shards_kept} shards kept, {report.shards_written} written")

        check = pt.verify(packed)
        assert check.ok, check.findings
        pt.extract(packed, Path(folder) / "back")
        for path in photos.rglob("*.jpg"):
            assert (Path(folder) / "back" / path.relative_to(photos)).read_bytes() == path.read_bytes()
        print("every file came back as it was")


if __name__ == "__main__":
    main()
