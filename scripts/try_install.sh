#!/usr/bin/env bash
# Proves that `pip install .` works: into a fresh environment, then the smoke test. The build tools come from .venv, so
# that it works offline; nothing else of it is seen.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
.venv/bin/python -m venv "$fresh/env"
.venv/bin/python -m pip wheel --disable-pip-version-check -q --no-deps --no-build-isolation -w "$fresh" .
# numpy is the one package that packtrain needs at run time; it is taken as it is in .venv.
.venv/bin/python - "$fresh/env" <<'PYTHON'
import pathlib, site, sys
packages = next(pathlib.Path(sys.argv[1]).glob("lib/python3*/site-packages"))
for name in ("numpy", "numpy.libs"):
    for folder in site.getsitepackages():
        if (pathlib.Path(folder) / name).is_dir():
            (packages / name).symlink_to(pathlib.Path(folder) / name)
PYTHON
"$fresh/env/bin/python" -m pip install --disable-pip-version-check -q --no-index --no-deps "$fresh"/packtrain-*.whl
scripts/smoke.sh "$fresh/env" "$fresh/work"
