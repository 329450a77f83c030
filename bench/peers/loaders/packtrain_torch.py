"""packtrain's loader of torch tensors, in the environment of its torch peers."""

from __future__ import annotations

from typing import Any

import packtrain.torch

from .common import Data
from .packtrain_loader import arguments, epochs_of

GROUP = "torch"


def make(data: Data, mode: str) -> Any:
    return epochs_of(packtrain.torch.Loader(str(data.dataset), **arguments(data, mode)), data, mode)
