"""Files of numbers and sounds, and datasets of them."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
from helpers import write_tree


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), version=version)
    return buffer.getvalue()


def wav(frames: np.ndarray[Any, Any], rate: int = 16000) -> bytes:
    """16 bits; `frames` has the shape (frames, channels)."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(frames.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(frames.astype("<i2").tobytes())
    return buffer.getvalue()


def packed_values(folder: Path, name: str, values: list[bytes | None]) -> pt.Dataset:
    """A dataset whose samples have the field `name`, where that is not None, and one more."""
    files = {f"{number:03}.id": str(number).encode() for number in range(len(values))}
    for number, value in enumerate(values):
        if value is not None:
            files[f"{number:03}.{name}"] = value
    write_tree(folder / "tree", files)
    pt.pack(folder / "tree", folder / "out", sync=False, order="source")
    return pt.Dataset(folder / "out")
