"""NumPy, imported when something of it is first used.

Its import takes longer than a first batch: a loader does it while its threads are already decoding.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

__all__ = ["import_numpy", "np"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _Deferred:
        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _Deferred()


def import_numpy() -> None:
    """Looking for garbage meanwhile would be a tenth of it, and find none: an import makes what stays."""
    looks = gc.isenabled()
    gc.disable()
    try:
        import numpy  # noqa: F401
    finally:
        if looks:
            gc.enable()
