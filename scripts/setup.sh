# Set-up for ./dev, to be sourced with $root set: packages of the system from packages.txt, and .venv from
# requirements/. What was done is remembered by the hash of the lists, so that a second run makes no call to apt or pip
# at all.
# shellcheck shell=bash
readonly package_stamps=${root:?}/build/stamps python_stamps=$root/.venv/stamps setup_log=$root/build/setup.log

say() { printf '%s\n' "dev: $*" >&2; }

stop() {
  say "$*"
  exit 2
}

hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# The lines of one section of packages.txt, without comments: "name" or "name | name".
packages_in() {
  awk -v wanted="[$1]" '
    { sub(/#.*/, ""); sub(/[ \t]+$/, "") }
    /^\[/ { inside = ($0 == wanted); next }
    inside && NF' packages.txt
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The lines of a section of which no alternative is installed.
missing_in() {
  local line name found
  while IFS= read -r line; do
    found=
    for name in ${line//|/ }; do
      if is_installed "$name"; then found=yes; fi
    done
    [ -n "$found" ] || printf '%s\n' "$line"
  done < <(packages_in "$1")
}

# The first alternative of each line that the distribution has; a line of which it has none is given back whole.
choose_packages() {
  local line name chosen
  while IFS= read -r line; do
    chosen=
    for name in ${line//|/ }; do
      if [ -z "$chosen" ] && apt-cache show "$name" >/dev/null 2>&1; then chosen=$name; fi
    done
    printf '%s\n' "${chosen:-${line%% *}}"
  done
}

install_packages() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >>"$setup_log" 2>&1
}

# setup_packages SECTION: all of [SECTION], and what there is of [SECTION optional].
setup_packages() {
  local section=$1 stamp required optional name
  stamp=$package_stamps/packages-$section-$(hash_of packages.txt /etc/os-release)
  [ ! -e "$stamp" ] || return 0
  if ! command -v dpkg-query >/dev/null; then
    say "this is not Debian or Ubuntu: provide what packages.txt lists under [$section] yourself (docs/install.md)"
    return 0
  fi
  mapfile -t required < <(missing_in "$section")
  mapfile -t optional < <(missing_in "$section optional")
  if [ $((${#required[@]} + ${#optional[@]})) -gt 0 ] && [ "$(id -u)" -eq 0 ]; then
    say "installing packages of the system (log: build/setup.log): ${required[*]} ${optional[*]}"
    mkdir -p build
    apt-get update -q >>"$setup_log" 2>&1 || say "apt-get update failed; going on with the lists that are there"
    if [ ${#required[@]} -gt 0 ]; then
      mapfile -t required < <(printf '%s\n' "${required[@]}" | choose_packages)
      install_packages "${required[@]}" || stop "these packages are needed and could not be installed: ${required[*]}"
    fi
    if [ ${#optional[@]} -gt 0 ]; then
      mapfile -t optional < <(printf '%s\n' "${optional[@]}" | choose_packages)
      for name in "${optional[@]}"; do
        install_packages "$name" || true
      done
    fi
    mapfile -t required < <(missing_in "$section")
    mapfile -t optional < <(missing_in "$section optional")
  fi
  if [ ${#required[@]} -gt 0 ]; then
    mapfile -t required < <(printf '%s\n' "${required[@]}" | choose_packages)
    say "these packages are needed; run this, then ./dev again:"
    printf '  sudo apt-get install %s\n' "${required[*]}" >&2
    exit 2
  fi
  for name in "${optional[@]}"; do
    say "left out, as it is not installed: $name (see packages.txt for what it gives)"
  done
  mkdir -p "$package_stamps"
  # Someone who may not install packages may get them any day: look again next time.
  if [ ${#optional[@]} -eq 0 ] || [ "$(id -u)" -eq 0 ]; then touch "$stamp"; fi
}

# setup_python LIST: .venv with everything of requirements/LIST.txt.
setup_python() {
  local stamp python=${PYTHON:-python3}
  stamp=$python_stamps/python-$1-$({ cat requirements/*.txt; printf '%s' "$root"; } | sha256sum | cut -c1-16)
  if [ ! -e "$stamp" ]; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
      stop "Python 3.10 or newer is needed for development; set PYTHON to one"
    if ! .venv/bin/python -c '' 2>/dev/null || ! .venv/bin/pip --version >/dev/null 2>&1; then
      say "making .venv with $("$python" --version)"
      "$python" -m venv --clear .venv || stop "cannot make .venv; is the package python3-venv installed?"
    fi
    say "installing requirements/$1.txt into .venv"
    .venv/bin/python -m pip install --disable-pip-version-check -qq -r "requirements/$1.txt" || return 1
    mkdir -p "$python_stamps"
    touch "$stamp"
  fi
  export PATH="$root/.venv/bin:$PATH"
}

setup_build() {
  setup_packages build
  setup_python build || stop "cannot install requirements/build.txt; is there a network?"
}

setup_test() {
  setup_packages build
  setup_packages test
  setup_python test || stop "cannot install requirements/test.txt; is there a network?"
}

# Wheels of what the build needs, for environments that are made without a network.
setup_wheelhouse() {
  local stamp
  stamp=build/wheelhouse/stamp-$(hash_of requirements/build.txt)-$(.venv/bin/python --version | tr ' ' '-')
  [ ! -e "$stamp" ] || return 0
  rm -rf build/wheelhouse
  .venv/bin/python -m pip download --disable-pip-version-check -qq -r requirements/build.txt -d build/wheelhouse ||
    stop "cannot fetch the wheels of requirements/build.txt; is there a network?"
  touch "$stamp"
}

setup_interop() {
  setup_python interop || say "left out: the large readers of requirements/interop.txt; their tests will be skipped"
}

# pip_torch OPTION…: pip of build/torch.
pip_torch() { build/torch/bin/python -m pip install --disable-pip-version-check -qq "$@" >>"$setup_log" 2>&1; }

# What requirements/torch.txt asks for, with PACKTRAIN_TORCH in the place of its PyTorch where that is set.
torch_requirements() {
  awk -v other="${PACKTRAIN_TORCH:-}" '/^torch==/ && other != "" { print other; next } { print }' requirements/torch.txt
}

# build/torch, an environment with PyTorch, about 1 GB, which is optional everywhere. A machine whose index of packages
# has no build of it for CPUs goes without: the other builds take several GB.
setup_torch() {
  local stamp
  if [ "${PACKTRAIN_TORCH:-}" = no ]; then
    say "left out, as PACKTRAIN_TORCH says: PyTorch"
    return 1
  fi
  stamp=build/torch/stamp-torch-$(torch_requirements | sha256sum | cut -c1-16)
  [ ! -e "$stamp" ] || return 0
  say "installing requirements/torch.txt into build/torch (1 GB)"
  mkdir -p build
  torch_requirements >build/torch-requirements.txt
  if .venv/bin/python -m venv --clear build/torch && pip_torch -r build/torch-requirements.txt; then
    touch "$stamp"
  else
    rm -rf build/torch
    say "left out: PyTorch, of which pip finds no build for CPUs (build/setup.log). Where there is one, say so to pip" \
      "(PIP_EXTRA_INDEX_URL); PACKTRAIN_TORCH=torch==2.13.0 takes whatever build pip finds, with several GB of CUDA"
    return 1
  fi
}

# setup_torch_tests: what the stage `torch` of the gate wants of build/torch.
setup_torch_tests() {
  local stamp
  setup_torch || return 1
  stamp=build/torch/stamp-tests-$(hash_of requirements/torch.txt requirements/torch-tests.txt requirements/torchvision.txt)
  [ ! -e "$stamp" ] || return 0
  say "installing requirements/torch-tests.txt and torchvision.txt into build/torch"
  if ! pip_torch -r requirements/torch-tests.txt; then
    say "left out: requirements/torch-tests.txt; the tests with PyTorch will be skipped (build/setup.log)"
    return 1
  fi
  rm -rf build/torch/vision
  if pip_torch --no-deps --target build/torch/vision -r requirements/torchvision.txt; then
    touch "$stamp"
  else
    say "left out: torchvision; comparisons with it will be skipped (build/setup.log)"
  fi
}

# Readers that stand on PyTorch, for the soak.
setup_readers() {
  local stamp
  setup_torch_tests || return 0
  stamp=build/torch/stamp-readers-$(hash_of requirements/readers.txt)
  [ ! -e "$stamp" ] || return 0
  say "installing requirements/readers.txt into build/torch"
  if pip_torch -r requirements/readers.txt; then
    touch "$stamp"
  else
    say "left out: the readers of requirements/readers.txt; the soak will skip them"
  fi
}
