"""What `import packtrain` brings along."""

from __future__ import annotations

import subprocess
import sys


def test_importing_is_quick_because_numpy_comes_with_the_first_batch() -> None:
    """NumPy takes longer to import than a first batch to decode; a loader does both at once."""
    program = "import sys, packtrain; sys.exit('numpy' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
