#!/usr/bin/env bash
# ./dev wheel [PYTHON]: builds dist/packtrain-….whl with every library inside, then proves it. With Python 3.12 or newer
# the wheel is of the stable ABI and serves all later versions; with an older one, that version only.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
work=build/wheel
tools=.venv
rm -rf "$work/raw"
mkdir -p "$work" dist

if [ "$python" != .venv/bin/python ]; then
  tools=$work/env
  "$python" -m venv --clear "$tools"
  "$tools/bin/python" -m pip install --disable-pip-version-check -qq -r requirements/test.txt
fi
PATH=$PWD/$tools/bin:$PATH
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
# libstdc++ goes inside too: RHEL 9 has the glibc that a build on Debian 12 asks for, but an older libstdc++. Its
# symbols stay hidden, as other modules of the process bring one of their own, and what is not called is dropped: unused
# parts of it (arc4random) and a static libgcc (_dl_find_object) would ask for a newer glibc than all the rest.
# libblosc brings libsnappy, which asks for the system's libstdc++ (of GCC 5 or newer). The linker would look into that
# one too when it makes the command, and keep all that both define: it is told not to.
runtime="-static-libstdc++ -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--allow-shlib-undefined"
python -m pip wheel --disable-pip-version-check -q --no-deps --no-build-isolation -w "$work/raw" \
  -C "build-dir=$work/{wheel_tag}" \
  -C "cmake.define.CMAKE_MODULE_LINKER_FLAGS=$runtime" -C "cmake.define.CMAKE_EXE_LINKER_FLAGS=$runtime" .
rm -f dist/packtrain-*.whl
auditwheel repair -w dist "$work"/raw/packtrain-*.whl
wheel=$(ls dist/packtrain-*.whl)
python scripts/add_licences.py "$wheel"
auditwheel show "$wheel"
# What docs/install.md promises. Built with a newer glibc than Debian 12's, a wheel may need more.
floor=2_34
case $(getconf GNU_LIBC_VERSION) in
  'glibc 2.34' | 'glibc 2.35' | 'glibc 2.36')
    if [[ $wheel != *manylinux_${floor}_* ]]; then
      echo "wheel.sh: $wheel should be manylinux_$floor; 'auditwheel show' says which symbols ask for more" >&2
      exit 1
    fi
    ;;
esac

rm -rf "$work/house"
python -m pip download --disable-pip-version-check -qq --no-deps -d "$work/house" \
  "$(python -m pip freeze | grep '^numpy==')"
interpreter=$(python -c 'import os, sys; print(os.path.realpath(sys.executable))')
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
  unshare --mount --propagation private scripts/prove_wheel.sh "$wheel" "$work/house" "$interpreter"
else
  scripts/prove_wheel.sh "$wheel" "$work/house" "$interpreter"
fi
echo "proved: $wheel"
