#!/usr/bin/env python3
"""The command `packtrain` of an installed package: becomes the binary that lies inside the package.

The package is found without being imported, so that a start costs no more than Python's own. Beside the usual
environments this serves `pip install --user`, and `--target`, where bin/ lies beside the package.
"""

import importlib.util
import os
import sys

spec = importlib.util.find_spec("packtrain")
packages = list(spec.submodule_search_locations or []) if spec else []
packages.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "packtrain"))
for package in packages:
    binary = os.path.join(package, "bin", "packtrain")
    if os.path.exists(binary):
        os.execv(binary, sys.argv)
sys.exit("packtrain: the package packtrain is not installed for " + sys.executable)
