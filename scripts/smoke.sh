#!/usr/bin/env bash
# scripts/smoke.sh ENVIRONMENT WORK: the installed command and module do their work; exits non-zero where not.
set -euo pipefail
environment=$(realpath "$1")
mkdir -p "$2"
cd "$2"
# No variable of the caller may help: the command runs by its path, the module from the environment alone.
unset PYTHONPATH PYTHONHOME LD_LIBRARY_PATH
packtrain=$environment/bin/packtrain
"$packtrain" --version
"$packtrain" doctor
"$packtrain" synth photos --samples 24
"$packtrain" pack photos photos.pt
"$packtrain" verify photos.pt
"$packtrain" extract photos.pt back
diff -r photos back
"$environment/bin/python" - <<'PYTHON'
import pathlib

import packtrain

package = pathlib.Path(packtrain.__file__).parent
for name in ("_core.pyi", "py.typed"):
    assert (package / name).is_file(), f"{name} is not installed"
loader = packtrain.Loader("photos.pt", batch_size=8, image=packtrain.RandomResizedCrop(32))
assert [batch["image"].shape for batch in loader] == [(8, 3, 32, 32)] * 3
assert len(packtrain.Dataset("photos.pt")[0]["jpg"]) > 0
print("import packtrain", packtrain.__version__)
PYTHON
