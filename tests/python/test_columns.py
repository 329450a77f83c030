"""Arrays on a batch's memory, made through NumPy's own table of functions."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest


@pytest.fixture
def loader(packed: Path) -> pt.Loader:
    return pt.Loader(
        packed,
        split="train",
        batch_size=6,
        image=pt.Resize(8, dtype="float16"),
        last="pad",
        on_error="replace",
    )


def test_columns_are_plain_arrays_of_the_types_that_are_promised(loader: pt.Loader) -> None:
    batch = next(iter(loader))
    assert list(batch) == ["image", "label", "index", "padding", "replaced"]
    expected = {"image": "float16", "label": "int64", "index": "int64", "padding": "bool", "replaced": "bool"}
    for name, column in batch.items():
        assert type(column) is np.ndarray
        assert column.dtype == expected[name]
        assert column.shape == ((6, 3, 8, 8) if name == "image" else (6,))
        assert column.flags.c_contiguous
        assert column.flags.aligned
        assert column.flags.writeable
        assert not column.flags.owndata
    assert sorted(batch["index"].tolist()) == sorted(set(batch["index"].tolist()))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_images_are_those_of_the_transform_itself(packed: Path, dtype: str, layout: str) -> None:
    spec = pt.Resize(8, dtype=dtype, layout=layout)
    data = pt.Dataset(packed, split="train")
    for batch in pt.Loader(data, batch_size=6, image=spec):
        for index, image in zip(batch["index"].tolist(), batch["image"]):
            np.testing.assert_array_equal(image, spec(data[index]["jpg"]))


def test_any_column_keeps_the_memory_and_the_last_gives_it_back(loader: pt.Loader) -> None:
    batches = iter(loader)
    batch = next(batches)
    owner = batch["image"].base
    assert all(column.base is owner for column in batch.values())
    held = sys.getrefcount(owner)
    labels, expected = batch["label"], batch["label"].copy()
    gone = weakref.ref(batch["image"])
    del batch
    gc.collect()
    assert gone() is None
    assert sys.getrefcount(owner) == held - 4
    list(batches)  # the memory of others is used again meanwhile
    assert labels.tolist() == expected.tolist()
    del owner, labels
    loader.close()
    assert loader.report().memory == 0
