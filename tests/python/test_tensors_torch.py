"""Tensors in files of torch.save and in plain pickles, as WebDataset writes them; and hostile ones."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from field_files import packed_values

torch = pytest.importorskip("torch", reason="no torch here; the stage `torch` of ./dev test has it")

import packtrain.torch as ptt  # noqa: E402
from packtrain.tensors import read_tensors  # noqa: E402

DTYPES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]


def saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pickled_tensors_are_what_they_were(dtype: str, protocol: int) -> None:
    whole = (torch.arange(24) % 7).to(getattr(torch, dtype)).reshape(2, 3, 4)
    views = [
        whole,
        whole[1],
        whole.permute(2, 0, 1),
        whole[:, 1:2],
        whole[0, 0, 0],
        whole[:0],
        whole.new_empty(3, 0),
    ]
    for tensor in views:
        read = read_tensors(pickle.dumps(tensor, protocol))
        assert read.dtype == tensor.dtype
        assert torch.equal(read, tensor)


def test_files_of_torch_save_are_read_in_both_forms() -> None:
    value = {"x": torch.arange(5), "name": "five"}
    for content in (saved(value), saved(value, _use_new_zipfile_serialization=False)):
        read = read_tensors(content)
        assert torch.equal(read["x"], value["x"])
        assert read["name"] == "five"


def test_plain_values_stand_around_tensors() -> None:
    tensor = torch.arange(6.0)
    value = {
        "x": tensor,
        "more": [1, 2.5, "a", b"b", None, True, (tensor[2:],)],
        "last": OrderedDict(y=tensor),
    }
    read = read_tensors(pickle.dumps(value))
    assert read["more"][:6] == value["more"][:6]
    assert torch.equal(read["more"][6][0], tensor[2:])
    assert torch.equal(read["last"]["y"], tensor)


def test_shards_of_pickled_tensors_are_loaded(tmp_path: Path) -> None:
    """What WebDataset's ShardWriter makes of {"input.pyd": tensor, "output.pyd": number}."""
    images = [torch.full((3, 4, 4), number, dtype=torch.uint8) for number in range(6)]
    data = packed_values(tmp_path, "input.pyd", [pickle.dumps(image) for image in images])
    fields = {"input.pyd": "torch"}
    batch = next(iter(ptt.Loader(data, batch_size=6, shuffle=False, fields=fields)))
    assert torch.equal(batch["input.pyd"], torch.stack(images))
    batch = next(iter(pt.Loader(data, batch_size=6, shuffle=False, fields=fields)))
    assert [torch.equal(value, image) for value, image in zip(batch["input.pyd"], images)] == [True] * 6


class Calls:
    """Pickles as the call of something."""

    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def rebuilt(*arguments: Any) -> bytes:
    return pickle.dumps(Calls(torch._utils._rebuild_tensor_v2, arguments))


def named(module: str, name: str, rest: bytes = b")R.") -> bytes:
    """A pickle that calls what it names, without arguments."""
    return b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n" + rest


def test_pickles_that_name_anything_else_are_refused(tmp_path: Path) -> None:
    mark = str(tmp_path / "hostile")
    hostile = [
        pickle.dumps(Calls(os.mkdir, (mark,))),
        pickle.dumps({"x": torch.ones(2), "y": Calls(os.mkdir, (mark,))}),
        pickle.dumps([Calls(eval, (f"__import__('os').mkdir({mark!r})",))]),
        # The payload of a tensor, which torch's own function would unpickle without looking.
        pickle.dumps(Calls(torch.storage._load_from_bytes, (saved(Calls(os.mkdir, (mark,))),))),
        pickle.dumps(
            Calls(
                torch.storage._load_from_bytes,
                (saved(Calls(os.mkdir, (mark,)), _use_new_zipfile_serialization=False),),
            )
        ),
        saved(Calls(os.mkdir, (mark,))),
        saved(Calls(os.mkdir, (mark,)), _use_new_zipfile_serialization=False),
        # By way of other opcodes than those of a call.
        b"\x80\x02(S'" + mark.encode() + b"'\nios\nmkdir\n.",
        b"\x80\x02(cos\nmkdir\nS'" + mark.encode() + b"'\no.",
        pickle.dumps(np.ones(3)),
        pickle.dumps(torch.nn.Linear(2, 2)),
        pickle.dumps(torch.device("cpu")),
        *(
            named("torch", name)
            for name in ("load", "hub.load", "Tensor", "FloatStorage", "ops.load_library")
        ),
        *(
            named("torch._utils", name)
            for name in ("_rebuild_tensor", "_import_dotted_name", "_rebuild_wrapper_subclass")
        ),
        *(named("builtins", name) for name in ("eval", "exec", "getattr", "__import__", "bytes")),
        *(named("packtrain.tensors", name) for name in ("_loaded", "torch.load", "_NAMES")),
        *(named("collections", name) for name in ("OrderedDict.fromkeys", "defaultdict", "namedtuple")),
    ]
    for content in hostile:
        with pytest.raises(ValueError, match=r"the pickle names|torch.load\(weights_only=True\) says"):
            read_tensors(content)
        assert not Path(mark).exists()


def test_tensors_that_their_numbers_cannot_make_are_refused() -> None:
    tensor = torch.arange(6.0)
    storage = tensor.storage()
    hooks: Any = OrderedDict()
    assert torch.equal(read_tensors(rebuilt(storage, 0, (2, 3), (3, 1), False, hooks)), tensor.reshape(2, 3))
    for wrong in (
        (storage, 0, (7,), (1,), False, hooks),  # torch itself would enlarge the storage
        (storage, 4, (3,), (1,), False, hooks),
        (storage, 0, (2, 2), (5, 1), False, hooks),
        (storage, -1, (2,), (1,), False, hooks),
        (storage, 0, (2,), (-1,), False, hooks),
        (storage, 0, (-2,), (1,), False, hooks),
        (storage, 0, (2**62, 2**62), (0, 0), False, hooks),  # no memory by itself, all of it in a batch
        (storage, 0, (2,), (1, 1), False, hooks),
        (storage, 0, 2, 1, False, hooks),
        (storage, 0.0, (2,), (1,), False, hooks),
        (storage, True, (2,), (1,), False, hooks),
        (storage, 0, ("2",), (1,), False, hooks),
        (b"numbers", 0, (2,), (1,), False, hooks),
        (tensor, 0, (2,), (1,), False, hooks),
        (None, 0, (), (), False, hooks),
        (storage, 0, (2,), (1,), False, hooks, {"conj": True}),
        (storage, 0),
    ):
        with pytest.raises(ValueError):  # noqa: PT011  # in torch's words, Python's or ours
            read_tensors(rebuilt(*wrong))
    # Hooks, which would be called while a network learns, are left out.
    read = read_tensors(rebuilt(storage, 0, (2,), (1,), True, {0: "called"}))
    assert not read._backward_hooks
    assert not read.requires_grad


def test_no_pickle_sets_the_state_of_anything() -> None:
    whole = pickle.dumps(torch.arange(6.0))
    storage = pickle.dumps(torch.arange(6.0).storage())
    for state in (
        b"}",  # attributes
        b"N}\x85\x86",
        storage[2:-1] + b"K\x00K\x64\x85K\x01\x85\x87",  # what Tensor.__setstate__ takes
    ):
        with pytest.raises(ValueError, match="sets the state"):
            read_tensors(whole[:-1] + state + b"b.")
    for name in (("torch._utils", "_rebuild_tensor_v2"), ("collections", "OrderedDict")):
        with pytest.raises(ValueError, match="sets the state"):
            read_tensors(named(*name, rest=b"}b."))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_truncated_and_flipped_pickles_are_refused_or_read_and_nothing_else() -> None:
    whole = pickle.dumps({"x": torch.arange(6.0), "y": 3})
    random = np.random.default_rng(2)
    imported = set(sys.modules)
    for length in range(len(whole)):
        with pytest.raises(ValueError):  # noqa: PT011  # in torch's words, Python's or ours
            read_tensors(whole[:length])
    for _ in range(2000):
        content = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            content[random.integers(len(content))] ^= 1 << random.integers(8)
        with contextlib.suppress(ValueError):
            read_tensors(bytes(content))
    assert set(sys.modules) == imported


def test_bad_ones_are_skipped_and_named(tmp_path: Path) -> None:
    good = pickle.dumps(torch.ones(2))
    data = packed_values(tmp_path, "pyd", [good, pickle.dumps(Calls(os.getcwd, ())), good[:-3], good])
    loader = ptt.Loader(data, batch_size=4, shuffle=False, fields={"pyd": "torch"}, on_error="skip")
    assert next(iter(loader))["index"].tolist() == [0, 3]
    first, _ = loader.report().bad
    assert "the pickle names posix.getcwd, and only tensors and plain values are read" in first.what
