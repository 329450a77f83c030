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

# Readers that bring PyTorch, a few GB, in an environment of their own.
setup_readers() {
  local stamp
  stamp=build/readers/stamp-$(hash_of requirements/readers.txt)
  [ ! -e "$stamp" ] || return 0
  say "installing requirements/readers.txt into build/readers"
  if .venv/bin/python -m venv --clear build/readers &&
    build/readers/bin/python -m pip install --disable-pip-version-check -qq -r requirements/readers.txt; then
    touch "$stamp"
  else
    rm -rf build/readers
    say "left out: the readers of requirements/readers.txt; the soak will skip them"
  fi
}
