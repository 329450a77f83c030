"""Fields that the loader decodes: arrays, audio, pickles, text, and what becomes of bad ones."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from field_files import npy, packed_values, wav
from helpers import write_tree

# Two channels at 22,050 Hz, made by libFLAC: frame i is (i * i - 3000, -7 * i) for i below 100.
FLAC = base64.b64decode(
    "ZkxhQwAAACIQABAAAAAAAAAABWIi8AAAAGQAAAAAAAAAAAAAAAAAAAAAhAAAKCAAAAByZWZlcmVuY2UgbGliRkxBQyAxLjQu"
    "MiAyMDIyMTAyMgAAAAD/+GYYAGNDFvRI9En0TAA////////////////igAAf/yAH///////////////+4fc="
)
TYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


def first_batch(data: pt.Dataset, fields: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    return next(iter(pt.Loader(data, batch_size=len(data), shuffle=False, fields=fields, **options)))


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


# Arrays


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_equal_those_of_numpy(tmp_path: Path, dtype: str) -> None:
    random = np.random.default_rng(1)
    arrays = [(random.standard_normal((3, 4, 5)) * 50).astype(dtype) for _ in range(6)]
    stored = [
        npy(arrays[0]),
        npy(arrays[1], (2, 0)),
        npy(arrays[2], (3, 0)),
        npy(np.asfortranarray(arrays[3])),
        npy(arrays[4].astype(arrays[4].dtype.newbyteorder(">"))),
        npy(arrays[5]) + b"more",
    ]
    for content, array in zip(stored, arrays):
        np.testing.assert_array_equal(np.load(io.BytesIO(content)), array)
    data = packed_values(tmp_path, "npy", list(stored))
    for kind in ("npy", pt.Array()):
        batch = first_batch(data, {"npy": kind})
        assert batch["npy"].dtype == dtype
        np.testing.assert_array_equal(batch["npy"], np.stack(arrays))
        assert batch["npy"].base is not None  # a view of the batch's memory


def test_arrays_of_many_shapes_are_a_list_of_views_or_padded(tmp_path: Path) -> None:
    arrays = [np.arange(number * 2, dtype=np.float32).reshape(number, 2) for number in range(1, 9)]
    data = packed_values(tmp_path, "npy", [npy(array) for array in arrays])
    batch = first_batch(data, {"npy": "npy"})
    assert isinstance(batch["npy"], list)
    for value, array in zip(batch["npy"], arrays):
        np.testing.assert_array_equal(value, array)
    batch = first_batch(data, {"npy": pt.Array(pad=-1)})
    assert batch["npy"].shape == (8, 8, 2)
    assert batch["npy_length"].tolist() == list(range(1, 9))
    for row, array in zip(batch["npy"], arrays):
        np.testing.assert_array_equal(row[: len(array)], array)
        assert (row[len(array) :] == -1).all()


def test_tokens_are_raw_numbers(tmp_path: Path) -> None:
    tokens = [np.arange(number, number + 16, dtype=np.uint16) for number in range(5)]
    data = packed_values(tmp_path, "tokens", [row.tobytes() for row in tokens])
    for kind in ("raw:uint16", pt.Array("uint16")):
        batch = first_batch(data, {"tokens": kind})
        assert batch["tokens"].dtype == np.uint16
        np.testing.assert_array_equal(batch["tokens"], tokens)
    with pytest.raises(pt.InvalidError, match="no type of numbers 'token'"):
        first_batch(data, {"tokens": "raw:token"})
    with pytest.raises(pt.InvalidError, match="choose bytes, str"):
        first_batch(data, {"tokens": "tokens"})


def test_a_batch_that_is_kept_keeps_its_values(tmp_path: Path) -> None:
    data = packed_values(tmp_path, "npy", [npy(np.full(1000, number)) for number in range(64)])
    loader = pt.Loader(data, batch_size=4, fields={"npy": "npy"})
    kept = [(batch["npy"], batch["index"].tolist()) for _ in range(3) for batch in loader]
    assert len({address(values) for values, _ in kept}) == len(kept)
    for values, positions in kept:
        np.testing.assert_array_equal(values[:, 0], positions)


@pytest.mark.parametrize("order", ["global", "streams", "source"])
def test_every_order_and_any_number_of_threads_deliver_the_same_values(tmp_path: Path, order: str) -> None:
    sizes = [1 + number % 7 for number in range(60)]
    data = packed_values(tmp_path, "npy", [npy(np.full(size, size * 100)) for size in sizes])
    for threads in (1, 4):
        shuffle = order != "source"
        options: dict[str, Any] = {"shuffle": shuffle, "order": order, "threads": threads, "last": "keep"}
        loader = pt.Loader(data, batch_size=8, fields={"npy": pt.Array(pad=-1), "id": "str"}, **options)
        seen = {}
        for batch in loader:
            for position, row, length, name in zip(
                batch["index"].tolist(), batch["npy"], batch["npy_length"].tolist(), batch["id"]
            ):
                assert name == str(position)
                assert set(row[:length].tolist()) == {length * 100}
                assert set(row[length:].tolist()) <= {-1}
                seen[position] = length
        assert seen == dict(enumerate(sizes))


# Audio


def test_audio_equals_the_wave_module(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    frames = [random.integers(-32768, 32768, (100 + 10 * number, 2)) for number in range(6)]
    data = packed_values(tmp_path, "wav", [wav(each) for each in frames])
    batch = first_batch(data, {"wav": pt.Audio("int16")})
    assert batch["wav_rate"].tolist() == [16000] * 6
    for value, each in zip(batch["wav"], frames):
        np.testing.assert_array_equal(value, each.T)
    batch = first_batch(data, {"wav": "audio"})
    for value, each in zip(batch["wav"], frames):
        assert value.dtype == np.float32
        np.testing.assert_array_equal(value, each.T / 32768)
    batch = first_batch(data, {"wav": pt.Audio(mono=True, pad=0)})
    assert batch["wav"].shape == (6, 150)
    assert batch["wav_length"].tolist() == [len(each) for each in frames]
    for value, each in zip(batch["wav"], frames):
        np.testing.assert_allclose(value[: len(each)], each.mean(1) / 32768, rtol=0, atol=1e-7)
        assert (value[len(each) :] == 0).all()


def test_flac_is_told_by_content(tmp_path: Path) -> None:
    number = np.arange(100)
    channels = np.stack([number * number - 3000, -7 * number])
    data = packed_values(tmp_path, "sound", [FLAC, wav(channels.T, 22050)])
    if not pt.doctor().audio["flac"]:
        with pytest.raises(pt.UnsupportedError, match="libflac-dev"):
            first_batch(data, {"sound": "audio"})
        return
    batch = first_batch(data, {"sound": pt.Audio("int16")})
    assert batch["sound_rate"].tolist() == [22050, 22050]
    assert batch["sound"].shape == (2, 2, 100)
    for value in batch["sound"]:
        np.testing.assert_array_equal(value, channels)


# Pickles


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_arrays_numbers_and_plain_values(tmp_path: Path, protocol: int) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    arrays = [
        array,
        np.asfortranarray(array),
        array.transpose(1, 2, 0).copy().transpose(2, 0, 1),
        array[:, :, :],
    ]
    values: dict[str, list[Any]] = {
        "array": arrays,
        "swapped": [np.arange(5, dtype=">i4") + number for number in range(4)],
        "scalar": [np.float32(number / 2) for number in range(4)],
        "int": [3, -1, 2**40, 0],
        "float": [0.5, -2.0, 1e300, 0.0],
        "bool": [True, False, True, True],
        "bytes": [b"\x00\xff\x80", b"", b"abc", bytearray(b"xy")],
        "text": ["käse", "", "x", "y"],
        "dict": [{"x": array, "y": [1, 2.5, None], "z": (True, b"\xff")}, [], {}, [array, array]],
        "many": [1, 2.5, np.arange(3), "text"],
    }
    for name, each in values.items():
        data = packed_values(tmp_path / name, "pyd", [pickle.dumps(value, protocol) for value in each])
        column = first_batch(data, {"pyd": "pickle"})["pyd"]
        if name in ("array", "swapped", "scalar", "int", "float", "bool"):
            expected = np.stack(each)
            assert column.dtype == expected.dtype.newbyteorder("=")
            np.testing.assert_array_equal(column, expected)
            continue
        assert isinstance(column, list)
        for got, expected_value in zip(column, each):
            np.testing.assert_equal(got, expected_value)


class Runs:
    def __reduce__(self) -> Any:
        return os.mkdir, ("hostile",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_that_would_run_code_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    hostile: list[Any] = [Runs(), [Runs()], {"x": np.arange(3), "y": Runs()}, np.array([Runs(), 1], object)]
    for number, value in enumerate(hostile):
        data = packed_values(tmp_path / str(number), "pkl", [pickle.dumps(value, protocol)])
        with pytest.raises((pt.CorruptError, pt.UnsupportedError), match=r"could (execute|run) code"):
            first_batch(data, {"pkl": "pickle"})
    assert not Path("hostile").exists()


# Bad values


@pytest.mark.parametrize("kind", ["npy", "json", "str", "own"])
def test_bad_values_obey_on_error(tmp_path: Path, kind: str) -> None:
    def own(content: bytes) -> int:
        return int(content)

    good = {"npy": npy(np.arange(4)), "json": b"[1]", "str": b"text", "own": b"7"}[kind]
    values: list[bytes | None] = [good] * 24
    values[5], values[17] = b"\xff{", good[:-1] + b"\xff" if kind != "npy" else good[:-1]
    data = packed_values(tmp_path, "v", values)
    fields = {"v": own if kind == "own" else kind}
    with pytest.raises(pt.CorruptError, match=r"sample 5 \(005\): (the )?field 'v'") as raised:
        list(pt.Loader(data, batch_size=8, shuffle=False, fields=fields))
    assert (raised.value.__cause__ is not None) == (kind in ("json", "own"))  # Python's own error
    loader = pt.Loader(data, batch_size=8, shuffle=False, fields=fields, on_error="skip")
    batches = list(loader)
    assert [len(batch["v"]) for batch in batches] == [7, 8, 7]
    seen = np.concatenate([batch["index"] for batch in batches])
    assert seen.tolist() == [number for number in range(24) if number not in (5, 17)]
    report = loader.report()
    assert (report.errors, report.samples) == (2, 22)
    assert [(bad.index, bad.key) for bad in report.bad] == [(5, "005"), (17, "017")]
    if kind in ("npy", "str"):
        replacing = pt.Loader(data, batch_size=8, fields=fields, on_error="replace")
        assert sum(int(batch["replaced"].sum()) for batch in replacing) == 2
        assert all(len(batch["v"]) == 8 for batch in replacing)
    with pytest.raises(pt.CorruptError, match="more than max_errors"):
        list(pt.Loader(data, batch_size=8, fields=fields, on_error="skip", max_errors=1))


def test_a_sample_without_the_field_has_none_or_length_zero(tmp_path: Path) -> None:
    data = packed_values(tmp_path, "npy", [npy(np.arange(3)), None, npy(np.arange(2))])
    column = first_batch(data, {"npy": "npy"})["npy"]
    assert column[0].tolist() == [0, 1, 2]
    assert column[1] is None
    batch = first_batch(data, {"npy": pt.Array(pad=9)})
    assert batch["npy"].tolist() == [[0, 1, 2], [9, 9, 9], [0, 1, 9]]
    assert batch["npy_length"].tolist() == [3, 0, 2]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (lambda: pt.Array("uint16", pad=-1), "pad=-1 is no number of the type uint16, .* 0 to 65535"),
        (lambda: pt.Array("uint16", pad=70000), "pad=70000 is no number of the type uint16"),
        (lambda: pt.Array("int64", pad=0.5), r"pad=0\.5 is no number of the type int64"),
        (lambda: pt.Array("int64", pad=float("nan")), "pad=nan is no number"),
        (lambda: pt.Array("int64", pad=float("inf")), "pad=inf is no number"),
        (
            lambda: pt.Array("int64", pad=2**63),
            "pad=9223372036854775808 is no number .* to 9223372036854775807",
        ),
        (lambda: pt.Array("uint64", pad=2**64), "pad=18446744073709551616 is no number of the type uint64"),
        (lambda: pt.Array("bool", pad=2), "pad=2 is no number of the type bool, which has 0 and 1"),
        (lambda: pt.Array("float16", pad=70000), "type float16, which goes up to 65504"),
        (lambda: pt.Array("float32", pad=1e39), r"pad=1e\+39 is no number of the type float32"),
        (lambda: pt.Array("float64", pad=10**400), "pad= is a number, not 1000"),
        (lambda: pt.Audio(dtype="int16", pad=40000), "pad=40000 is no number of the type int16"),
        (lambda: pt.Image(pad=256), "pad=256 is no number of the type uint8, .* 0 to 255"),
        (lambda: pt.Image(pad=-1), "pad=-1 is no number of the type uint8"),
        (lambda: pt.Image(pad=0.5), r"pad=0\.5 is no number of the type uint8"),
        (lambda: pt.Array(np.uint16), "dtype= is a name of NumPy's"),
    ],
)
def test_a_pad_that_its_type_does_not_hold_is_refused_at_once(spec: Any, says: str) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        spec()


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_a_pad_that_the_values_do_not_hold_is_refused_by_name(tmp_path: Path, on_error: str) -> None:
    data = packed_values(tmp_path, "npy", [npy(np.arange(3, dtype=np.uint8)) for _ in range(4)])
    with pytest.raises(pt.InvalidError, match="field 'npy': pad=-1 is no number of the type uint8") as caught:
        first_batch(data, {"npy": pt.Array(pad=-1)}, on_error=on_error)
    assert "sample" not in str(caught.value)  # none of them is bad


@pytest.mark.parametrize(
    ("dtype", "pad"),
    [
        *(("int64", pad) for pad in (-(2**63), 2**62 + 1, 2**63 - 1, -7, 3.0, np.int8(-3))),
        *(("uint64", pad) for pad in (2**64 - 1, 2**63 + 1, 2.0**63, np.uint64(2**64 - 1))),
        *(("float16", pad) for pad in (65504, -0.5, float("inf"), float("nan"))),
        *(("float32", pad) for pad in (0.1, 1e38, float("-inf"), 10**30)),
        *(("float64", pad) for pad in (0.1, 10**300)),
        *(("bool", pad) for pad in (True, 0)),
        *(("complex64", pad) for pad in (0, -2.5)),
        ("complex128", 0.1),
    ],
)
def test_a_pad_is_the_number_itself_in_any_type(tmp_path: Path, dtype: str, pad: Any) -> None:
    data = packed_values(tmp_path, "npy", [npy(np.ones(3, dtype)), npy(np.ones(1, dtype))])
    padded = first_batch(data, {"npy": pt.Array(pad=pad)})["npy"]
    expected = np.array([[1, 1, 1], [1, pad, pad]]) if dtype[0] == "c" else np.ones((2, 3), dtype)
    expected = expected.astype(dtype)
    expected[1, 1:] = np.array([pad]).astype(dtype)
    assert padded.dtype == dtype
    np.testing.assert_array_equal(padded, expected)


def test_columns_about_a_field_need_a_free_name(tmp_path: Path) -> None:
    files = {"0.x": b"ab", "0.x_length": b"2"}
    write_tree(tmp_path / "tree", files)
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    fields = {"x": pt.Array("uint8", pad=0), "x_length": "str"}
    with pytest.raises(pt.InvalidError, match="'x_length' cannot be delivered under its name"):
        pt.Loader(tmp_path / "out", batch_size=1, fields=fields)


def test_decoded_fields_reach_a_transform(tmp_path: Path) -> None:
    data = packed_values(tmp_path, "npy", [npy(np.arange(4) + number) for number in range(6)])

    def double(sample: dict[str, Any]) -> dict[str, Any]:
        return {"twice": sample["npy"] * 2, "id": json.loads(sample["id"])}

    batch = first_batch(data, {"npy": "npy", "id": "bytes"}, transform=double)
    np.testing.assert_array_equal(batch["twice"], [(np.arange(4) + number) * 2 for number in range(6)])
    assert batch["id"].tolist() == list(range(6))
