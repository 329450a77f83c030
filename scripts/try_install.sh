#!/usr/bin/env bash
# Proves that `pip install .` works: into a fresh environment, from build/wheelhouse alone, then the smoke test.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
.venv/bin/python -m venv "$fresh/env"
# A build of its own: neither the environment nor the tools of .venv are seen.
PATH=$(printf '%s' "$PATH" | sed "s|$PWD/.venv/bin:||g") "$fresh/env/bin/python" -m pip install \
  --disable-pip-version-check --no-index --find-links build/wheelhouse .
scripts/smoke.sh "$fresh/env" "$fresh/work"
