"""Plain values out of pickles that the engine has already found to hold nothing else."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

_MULTIARRAY = np.empty(0).__reduce__()[0].__module__
_NUMERIC = _MULTIARRAY.replace("multiarray", "numeric")

_HERE = {"_reconstruct": _MULTIARRAY, "scalar": _MULTIARRAY, "_frombuffer": _NUMERIC}


def _bytes_of_text(text: str, _encoding: str) -> bytes:
    """How protocols below 3 write bytes."""
    return text.encode("latin-1")


_BUILT_IN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _bytes_of_text,
    ("__builtin__", "bytes"): bytes,
    ("builtins", "bytes"): bytes,
    ("__builtin__", "bytearray"): bytearray,
    ("builtins", "bytearray"): bytearray,
}
_ARRAY_MODULES = [f"numpy.{core}.{part}" for core in ("core", "_core") for part in ("multiarray", "numeric")]


class _Unpickler(pickle.Unpickler):
    """Knows the names that the engine's reader knows, and no other."""

    def find_class(self, module: str, name: str) -> Any:
        if module in _ARRAY_MODULES and name in _HERE:  # NumPy 1 and 2 call their modules by other names
            return super().find_class(_HERE[name], name)
        if (module, name) in _BUILT_IN:
            return _BUILT_IN[module, name]
        raise pickle.UnpicklingError(f"{module}.{name} is not among what may be unpickled")


def unpickled(content: bytes) -> Any:
    try:
        return _Unpickler(io.BytesIO(content), encoding="utf-8").load()
    except pickle.UnpicklingError as error:
        raise ValueError(str(error)) from error
