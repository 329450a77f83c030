"""torch tensors out of files of torch.save and out of plain pickles, of which nothing is executed. Imports
torch: only where a field asks for it."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any, ClassVar

import torch

_PICKLE = b"\x80"  # and its protocol, from the second on
# How torch.save began its files before they were zips: a pickle of its own magic number.
_OLD_FILE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def read_tensors(content: bytes) -> Any:
    """What torch.save or pickle.dumps wrote: tensors, and numbers, text, bytes, lists, tuples and dicts
    around them. Anything else is a ValueError."""
    try:
        if content.startswith(_PICKLE) and not content.startswith(_OLD_FILE):
            return _Unpickler(io.BytesIO(content)).load()
        return _loaded(content)
    except Exception as error:  # of many kinds
        raise ValueError(str(error) or type(error).__name__) from error


def _loaded(content: bytes) -> Any:
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"torch.load(weights_only=True) says: {error}") from error


# What the names by which tensors are pickled stand for here. Without attributes: what a pickle could set on
# them would outlive it.


class _BytesOfText:
    """_codecs.encode and bytes, by which protocol 2 writes bytes."""

    __slots__ = ()

    def __call__(self, text: str = "", _encoding: str = "latin1") -> bytes:
        return text.encode("latin-1")


class _StorageOfBytes:
    """torch.storage._load_from_bytes, which would load anything."""

    __slots__ = ()

    def __call__(self, content: Any) -> Any:
        if not isinstance(content, bytes):
            raise pickle.UnpicklingError("the numbers of a tensor are no bytes")
        storage = _loaded(content)
        if not isinstance(storage, torch.storage.TypedStorage):
            raise pickle.UnpicklingError(f"the numbers of a tensor are a {type(storage).__name__}")
        return storage


class _TensorOfStorage:
    """torch._utils._rebuild_tensor_v2, which would enlarge a storage that is too small."""

    __slots__ = ()

    def __call__(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        _needs_grad: Any,
        _hooks: Any,
        metadata: Any = None,
    ) -> Any:
        numbers = [offset, *size, *stride]
        if (
            not isinstance(storage, torch.storage.TypedStorage)
            or metadata
            or len(size) != len(stride)
            or not all(type(number) is int and number >= 0 for number in numbers)
        ):
            raise pickle.UnpicklingError("this is no tensor that torch pickled")
        last, count = offset, 1
        for length, step in zip(size, stride):
            last, count = last + (length - 1) * step, count * length
        tensor = torch.empty(0, dtype=storage.dtype)
        stored = storage._untyped_storage  # what torch itself takes: other ways to it warn
        held = stored.nbytes() // tensor.element_size()
        if count and not (last < held and count <= held):
            raise pickle.UnpicklingError("a tensor has more numbers than its storage")
        return tensor.set_(stored, offset if count else 0, size, stride)


_NAMES: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _TensorOfStorage(),
    ("torch.storage", "_load_from_bytes"): _StorageOfBytes(),
    ("collections", "OrderedDict"): OrderedDict,  # of no hooks, in every tensor
    ("_codecs", "encode"): _BytesOfText(),
    ("__builtin__", "bytes"): _BytesOfText(),
}


class _Unpickler(pickle._Unpickler):  # the one in Python: its opcodes can be taken away
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _NAMES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"the pickle names {module}.{name}, and only tensors and plain values are read; if you trust "
                "it, decode it with pickle.loads"
            ) from None

    def _refuse(self) -> None:
        raise pickle.UnpicklingError("the pickle sets the state of an object, which no tensor needs")

    dispatch: ClassVar[dict[int, Any]] = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: _refuse}
