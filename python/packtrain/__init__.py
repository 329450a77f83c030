"""Pack piles of small files into verified, indexed datasets, and read them back at random."""

import importlib
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import (
    NO_LABEL,
    BadLoad,
    BadSample,
    BatchField,
    ConversionCost,
    Damage,
    Dataset,
    ExtractReport,
    FieldCompression,
    Finding,
    Grant,
    IndexReport,
    Keys,
    PackReport,
    Place,
    Progress,
    Shard,
    SynthReport,
    VerifyReport,
    version,
)
from .calls import tell_of, told
from .errors import (
    CorruptError,
    Error,
    InvalidError,
    NoRoomError,
    NotFoundError,
    StoppedError,
    StorageError,
    UnsupportedError,
)
from .images import IMAGENET_MEAN, IMAGENET_STD, CenterCrop, ImageTransform, RandomResizedCrop, Resize
from .loader import Loader
from .mix import Mix
from .values import Array, Audio, Image

# What batches are made without is imported when it is first asked for: it is a sixth of the import.
_LATER = {
    "Doctor": "about",
    "Info": "about",
    "LoadReport": "report",
    "arrow_from_parquet": "parquet",
    "doctor": "about",
    "info": "about",
}

if TYPE_CHECKING:
    from .about import Doctor, Info, doctor, info
    from .parquet import arrow_from_parquet
    from .report import LoadReport
else:

    def __getattr__(name: str) -> Any:
        if name == "torch":  # without PyTorch the error says what to install
            return importlib.import_module(".torch", __name__)
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})


__version__: str = version()

extract = told(_core.extract)
index = told(_core.index)
pack = told(_core.pack)
show = told(_core.show)
synth = told(_core.synth)
verify = told(_core.verify)
tell_of(Dataset, ("__getitem__", "field", "image_size", "read", "sizes", "source"))
tell_of(Keys, ("__getitem__", "index"))
tell_of(BatchField, ("__getitem__", "take"))

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "NO_LABEL",
    "Array",
    "Audio",
    "BadLoad",
    "BadSample",
    "BatchField",
    "CenterCrop",
    "ConversionCost",
    "CorruptError",
    "Damage",
    "Dataset",
    "Doctor",
    "Error",
    "ExtractReport",
    "FieldCompression",
    "Finding",
    "Grant",
    "Image",
    "ImageTransform",
    "IndexReport",
    "Info",
    "InvalidError",
    "Keys",
    "LoadReport",
    "Loader",
    "Mix",
    "NoRoomError",
    "NotFoundError",
    "PackReport",
    "Place",
    "Progress",
    "RandomResizedCrop",
    "Resize",
    "Shard",
    "StoppedError",
    "StorageError",
    "SynthReport",
    "UnsupportedError",
    "VerifyReport",
    "__version__",
    "arrow_from_parquet",
    "doctor",
    "extract",
    "index",
    "info",
    "pack",
    "show",
    "synth",
    "verify",
    "version",
]
