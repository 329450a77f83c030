"""Decoded fields as torch tensors, and tensors that torch saved."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from field_files import npy, packed_values, wav

torch = pytest.importorskip("torch", reason="no torch here; the stage `torch` of ./dev test has it")

import packtrain.torch as ptt  # noqa: E402


def first_batch(data: pt.Dataset, fields: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    return next(iter(ptt.Loader(data, batch_size=len(data), shuffle=False, fields=fields, **options)))


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_arrays_become_tensors_on_the_same_memory(tmp_path: Path) -> None:
    arrays = [np.full((2, 3), number, np.float32) for number in range(6)]
    data = packed_values(tmp_path, "npy", [npy(array) for array in arrays])
    loader = ptt.Loader(data, batch_size=3, shuffle=False, fields={"npy": "npy"})
    batches = list(loader)
    assert all(isinstance(batch["npy"], torch.Tensor) for batch in batches)
    assert torch.equal(torch.cat([batch["npy"] for batch in batches]), torch.tensor(np.stack(arrays)))
    # Rows lie one behind the other, at the start of memory that is aligned as the batch's own is.
    assert all(batch["npy"].is_contiguous() and batch["npy"].data_ptr() % 64 == 0 for batch in batches)


def test_lists_and_padded_values_become_tensors_too(tmp_path: Path) -> None:
    data = packed_values(tmp_path, "wav", [wav(np.full((number, 1), number)) for number in (3, 1, 2)])
    batch = first_batch(data, {"wav": pt.Audio("int16")})
    assert [value.tolist() for value in batch["wav"]] == [[[3, 3, 3]], [[1]], [[2, 2]]]
    assert all(isinstance(value, torch.Tensor) for value in batch["wav"])
    assert torch.equal(batch["wav_rate"], torch.tensor([16000, 16000, 16000]))
    batch = first_batch(data, {"wav": pt.Audio("int16", mono=True, pad=-1)})
    assert batch["wav"].tolist() == [[3, 3, 3], [1, -1, -1], [2, 2, -1]]
    assert batch["wav_length"].tolist() == [3, 1, 2]


def test_images_in_their_own_size_become_tensors(packed: Path) -> None:
    data = pt.Dataset(packed, split="val")
    images = first_batch(data, {"jpg": "image"})["jpg"]
    padded = first_batch(data, {"jpg": pt.Image(pad=9)})
    assert padded["jpg"].dtype == torch.uint8
    for image, row, (height, width) in zip(images, padded["jpg"], padded["jpg_size"].tolist()):
        assert image.shape == (height, width, 3)
        assert torch.equal(row[:height, :width], image)


def test_pickled_labels_and_images_become_tensors(tmp_path: Path) -> None:
    images = [np.full((4, 4, 3), number, np.uint8) for number in range(5)]
    data = packed_values(tmp_path / "input", "input.pyd", [pickle.dumps(image) for image in images])
    batch = first_batch(data, {"input.pyd": "pickle"})
    assert torch.equal(batch["input.pyd"], torch.tensor(np.stack(images)))
    data = packed_values(tmp_path / "output", "output.pyd", [pickle.dumps(number) for number in range(5)])
    assert torch.equal(first_batch(data, {"output.pyd": "pickle"})["output.pyd"], torch.arange(5))


def test_saved_tensors_come_back_and_nothing_is_executed(tmp_path: Path) -> None:
    tensors = [torch.full((2, 2), float(number)) for number in range(4)]
    data = packed_values(tmp_path / "good", "pt", [saved(tensor) for tensor in tensors])
    batch = first_batch(data, {"pt": "torch"})
    assert torch.equal(batch["pt"], torch.stack(tensors))
    data = packed_values(tmp_path / "dict", "pt", [saved({"x": tensors[1]})])
    assert torch.equal(first_batch(data, {"pt": "torch"})["pt"][0]["x"], tensors[1])

    class Runs:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "hostile"),)

    data = packed_values(tmp_path / "bad", "pt", [saved(Runs()), b"no tensor", saved(tensors[0])])
    with pytest.raises(
        pt.CorruptError, match=r"sample 0 \(000\): the field 'pt' cannot be decoded: torch.load"
    ):
        first_batch(data, {"pt": "torch"})
    assert not (tmp_path / "hostile").exists()
    batch = first_batch(data, {"pt": "torch"}, on_error="skip")
    assert batch["index"].tolist() == [2]
