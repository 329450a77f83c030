"""Images as large as JPEG allows take no more memory than a thread is granted."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest
from PIL import Image

GRANTED = 64 << 20  # of one image while it is decoded: what a loader's thread gives

# Prints by how much the memory of this process rose, at its highest, while one image was transformed.
MEASURE = """
import sys
from pathlib import Path
import numpy
import packtrain as pt

def peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

data = Path(sys.argv[1]).read_bytes()
crop = pt.Resize(64, dtype="uint8")
Path("/proc/self/clear_refs").write_text("5")
before = peak()
assert crop(data).shape == (3, 64, 64)
print(peak() - before)
"""


def banded(width: int, height: int, **options: object) -> bytes:
    """A JPEG of four bands of one colour each, left to right."""
    image = Image.new("RGB", (width, height))
    for band in range(4):
        box = (band * width // 4, 0, (band + 1) * width // 4, height)
        image.paste((60 * band, 255 - 60 * band, 30), box)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=75, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(("width", "height"), [(10_000, 10_000), (65_500, 200), (200, 65_500)])
def test_a_baseline_image_of_any_size_is_decoded_within_the_memory_of_a_thread(
    width: int, height: int, tmp_path: Path
) -> None:
    file = tmp_path / "large.jpg"
    file.write_bytes(banded(width, height))
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, str(file)], capture_output=True, text=True, check=False
    )
    assert measured.returncode == 0, measured.stderr
    assert int(measured.stdout) < GRANTED


def test_the_widest_image_keeps_its_colours() -> None:
    ours = pt.Resize((2, 4), dtype="uint8", layout="HWC")(banded(65_500, 16))
    assert (np.abs(ours[:, 2].astype(int) - (120, 135, 30)) <= 3).all()


def test_a_larger_progressive_image_is_refused_with_the_way_out() -> None:
    """All of its coefficients are needed at once."""
    with pytest.raises(pt.UnsupportedError, match="memory="):
        pt.Resize(64)(banded(6_000, 6_000, progressive=True))
