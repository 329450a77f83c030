"""Images as large as JPEG allows take no more memory than a thread is granted."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest
from packtrain._core import transform_image
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


def test_a_progressive_image_of_a_camera_is_transformed_by_itself() -> None:
    """All of its coefficients are needed at once."""
    data = banded(6_000, 5_000, progressive=True)
    ours = pt.Resize(8, dtype="uint8", layout="HWC")(data)
    assert (np.abs(ours[:, 0].astype(int) - (0, 255, 30)) <= 3).all()
    with pytest.raises(pt.UnsupportedError, match="stored as baseline JPEG it would take little"):
        transform_image(data, pt.Resize(8).spec, memory=GRANTED)


@pytest.fixture(scope="module")
def camera_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Progressive images of 30 megapixels, each 86 MiB of coefficients."""
    source = tmp_path_factory.mktemp("camera") / "images"
    for name in ("a", "b"):
        (source / name).mkdir(parents=True)
        (source / name / "one.jpg").write_bytes(banded(6_000, 5_000, progressive=True))
    pt.pack(source, source.parent / "images.pt", sync=False)
    return source.parent / "images.pt"


def test_a_set_of_progressive_camera_images_is_loaded(camera_set: Path) -> None:
    (batch,) = pt.Loader(camera_set, batch_size=2, image=pt.Resize(8, dtype="uint8"), threads=2)
    assert (batch["image"][:, 1, :, 0] >= 252).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_memory_that_refuses_an_image_is_raised_as_the_message_says(camera_set: Path, threads: int) -> None:
    def load(memory: int) -> int:
        return len(
            list(pt.Loader(camera_set, batch_size=2, image=pt.Resize(8), threads=threads, memory=memory))
        )

    with pytest.raises(pt.UnsupportedError) as refusal:
        load(40_000_000)
    said = re.search(r"give the loader memory=(\d+)", str(refusal.value))
    assert said is not None, str(refusal.value)
    enough = int(said[1])
    assert load(enough) == 1
    with pytest.raises(pt.UnsupportedError):
        load(enough * 9 // 10)  # it asks for little more than it takes
