"""`python -m packtrain` is the command `packtrain` that was installed with this package."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def command_path() -> str | None:
    """The command inside the package; of a build that is not installed, its own; else the one on PATH."""
    package = Path(__file__).absolute().parent
    for folder in (package / "bin", package.parents[1] / "tools"):
        if found := shutil.which("packtrain", path=folder):
            return found
    return shutil.which("packtrain")


def main() -> None:
    command = command_path()
    if command is None:
        sys.exit("packtrain: the command was not found beside the package; install it again with pip")
    os.execv(command, ["packtrain", *sys.argv[1:]])


if __name__ == "__main__":
    main()
