"""NumPy, imported when something of it is first used.

Its import takes longer than a first batch: a loader does it while its threads are already decoding.
"""

from __future__ import annotations

import errno
import gc
import os
from typing import TYPE_CHECKING, Any

from .errors import StorageError

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
    except (ImportError, OSError) as error:  # what looks for modules opens folders
        if _may_open_more():
            raise
        raise StorageError(
            "NumPy cannot be imported: as many files are open as this process may have open, see ulimit -n; "
            "raise it, make fewer shards, or import numpy before the loader is made"
        ) from error
    finally:
        if looks:
            gc.enable()


def _may_open_more() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno != errno.EMFILE
    return True
