"""NumPy, imported when something of it is first used.

Its import takes longer than a first batch: a loader does it while its threads are already decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["np"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _Deferred:
        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _Deferred()
