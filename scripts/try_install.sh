#!/usr/bin/env bash
# Proves that `pip install .` works: into a fresh environment, from build/wheelhouse alone, then the smoke test.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
.venv/bin/python -m venv "$fresh/env"
# Most of it was compiled by `./dev build` before: where ccache keeps that, it is asked for with the same flags, by the
# same name of the compiler and in a folder equally deep, which count too.
options=()
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CC=cc CXX=c++
  export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD
  rm -rf build/pip
  options+=(-C build-dir=build/pip -C 'cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O2 -g1' -C 'cmake.define.PACKTRAIN_WERROR=ON'
    -C 'cmake.define.PACKTRAIN_UNITY=OFF')
fi
# A build of its own: neither the environment nor the tools of .venv are seen.
PATH=$(printf '%s' "$PATH" | sed "s|$PWD/.venv/bin:||g") "$fresh/env/bin/python" -m pip install \
  --disable-pip-version-check --no-index --find-links build/wheelhouse "${options[@]}" .
scripts/smoke.sh "$fresh/env" "$fresh/work"
