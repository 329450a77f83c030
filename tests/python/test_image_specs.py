"""Image transforms as values: what they are made of, copied, sent to other processes and called with."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import write_tree

SPECS = [
    pt.RandomResizedCrop(16, scale=(0.5, 1.0), ratio=(1.0, 2.0), mean=pt.IMAGENET_MEAN, std=pt.IMAGENET_STD),
    pt.CenterCrop((8, 12), 16, dtype="uint8", layout="HWC"),
    pt.Resize(8, flip=1.0, dtype="float16", exif_orientation=True, dct_scaling=True),
]


def image_elsewhere(spec: pt.Resize, content: bytes) -> np.ndarray[Any, Any]:
    return spec(content, key=5)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_copies_do_the_same(photos: Path, spec: Any) -> None:
    photo = next(photos.rglob("*.jpg")).read_bytes()
    expected = spec(photo, key=5)
    for other in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert other == spec
        assert other is not spec
        assert np.array_equal(other(photo, key=5), expected)


def test_specs_reach_a_spawned_process(photos: Path) -> None:
    photo = next(photos.rglob("*.jpg")).read_bytes()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for spec in SPECS:
            there = pool.apply(image_elsewhere, (spec, photo))
            assert np.array_equal(there, spec(photo, key=5))


def test_a_spec_takes_whatever_holds_bytes(packed: Path) -> None:
    spec = pt.Resize(8)
    batch = next(iter(pt.Loader(packed, split="val", batch_size=2, shuffle=False)))
    content = batch["jpg"].tolist()[0]
    expected = spec(content)
    spread = np.zeros(2 * len(content), np.uint8)
    spread[::2] = np.frombuffer(content, np.uint8)
    for same in (batch["jpg"][0], bytearray(content), memoryview(content), spread[::2]):
        assert np.array_equal(spec(same), expected)
    for wrong in (7, "photo.jpg", None, [255, 216], np.zeros(4)):
        with pytest.raises(pt.InvalidError, match="called with the bytes of an image file"):
            spec(wrong)  # type: ignore[arg-type]


def test_numpy_values_become_plain_ones() -> None:
    kinds: tuple[Any, ...] = (np.uint8, np.dtype("uint8"))
    for kind in kinds:
        assert pt.Resize(8, dtype=kind) == pt.Resize(8, dtype="uint8")
    assert pt.Resize(np.int64(8)) == pt.Resize(8)  # type: ignore[arg-type]
    sides: Any = [np.int32(8), 9]
    assert pt.Resize(sides) == pt.Resize((8, 9))
    mean: Any = np.array([0.5, 0.25, 0.125])
    assert hash(pt.Resize(8, mean=mean, std=mean)) == hash(pt.Resize(8, mean=tuple(mean), std=tuple(mean)))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"size": -1}, "size= is a whole number of at least 1, not -1"),
        ({"size": 0}, "size= is a whole number of at least 1, not 0"),
        ({"size": 2**40}, "size= is a whole number up to 4294967295"),
        ({"size": 8.0}, r"size= is a whole number of at least 1, not 8\.0"),
        ({"size": "8"}, "size= .* not '8'"),
        ({"size": (8, 8, 3)}, r"a side, or \(height, width\), not \(8, 8, 3\)"),
        ({"size": (8, None)}, "size= .* not None"),
        ({"resize": 8.5}, r"resize= .* not 8\.5"),
        ({"dtype": float}, "dtype= is one of 'uint8', 'float16', 'bfloat16', 'float32', not"),
        ({"layout": "NCHW"}, "layout= is one of 'CHW', 'HWC', not 'NCHW'"),
        ({"mean": (1, 1), "std": (1, 1, 1)}, r"mean= is 3 numbers, not \(1, 1\)"),
        ({"mean": 0.5, "std": 0.5}, r"mean= is 3 numbers, not 0\.5"),
        ({"flip": "often"}, "flip= is"),
        ({"exif_orientation": "no"}, "exif_orientation= is True or False, not 'no'"),
    ],
)
def test_what_a_spec_cannot_be_made_of(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        pt.CenterCrop(**{"size": 8, **wrong})


# Which field is the image


def test_samples_without_an_image_do_not_hide_it(photos: Path, tmp_path: Path) -> None:
    photo = next(photos.rglob("*.jpg")).read_bytes()
    files = {f"{number:03}.txt": b"words" for number in range(40)}
    files |= {f"{number:03}.jpg": photo for number in range(20, 40)}
    write_tree(tmp_path / "tree", files)
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False, order="source")
    options: dict[str, Any] = {"batch_size": 4, "image": pt.Resize(8), "shuffle": False}
    loader = pt.Loader(tmp_path / "out", on_error="skip", max_errors=20, **options)
    assert sum(len(batch["image"]) for batch in loader) == 20
    assert loader.report().errors == 20


def test_an_empty_dataset_has_no_batch_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "empty.tar").write_bytes(bytes(10240))
    with pytest.warns(UserWarning, match="indexed 0 samples"):
        loader = pt.Loader(tmp_path / "empty.tar", batch_size=4, image=pt.Resize(8))
    assert len(loader) == 0
    assert list(loader) == []
