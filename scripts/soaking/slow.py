"""The slow filesystem of bench/, for checks that need storage to fail in a certain way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    Knobs: Callable[..., Any]
    mounted: Callable[[Path, Path, Any], AbstractContextManager[Any]]
    trouble: Callable[[], str]
else:
    from slowfs import Knobs, mounted, trouble

__all__ = ["Knobs", "mounted", "trouble"]
