#!/usr/bin/env bash
# scripts/try_install.sh [plain|minimal]: proves that `pip install .` works: into a fresh environment, from
# build/wheelhouse alone, then the smoke test. `plain` is what users type; `minimal` the same as if no optional library
# were there. Without an argument it is compiled as `./dev build` has it, for the gate.
set -euo pipefail
cd "$(dirname "$0")/.."
way=${1:-gate}
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
.venv/bin/python -m venv "$fresh/env"
options=()
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD
fi
case $way in
  gate)
    # Where ccache keeps what was compiled before, it is asked for with the same flags, by the same name of the compiler
    # and in a folder equally deep, which count too.
    export CC=cc CXX=c++
    options+=(-C 'cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O2 -g1' -C 'cmake.define.PACKTRAIN_WERROR=ON'
      -C 'cmake.define.PACKTRAIN_UNITY=OFF')
    ;;
  plain) ;;
  minimal)
    while read -r library; do options+=(-C "cmake.define.PACKTRAIN_WITHOUT_$library=ON"); done < <(scripts/optional.sh)
    ;;
  *)
    echo "there is no way '$way' to install: plain, minimal" >&2
    exit 2
    ;;
esac
rm -rf "build/pip-$way"
# A build of its own: neither the environment nor the tools of .venv are seen.
PATH=$(printf '%s' "$PATH" | sed "s|$PWD/.venv/bin:||g") "$fresh/env/bin/python" -m pip install \
  --disable-pip-version-check --no-index --find-links build/wheelhouse -C "build-dir=build/pip-$way" "${options[@]}" .
scripts/smoke.sh "$fresh/env" "$fresh/work"
