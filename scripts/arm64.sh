# Set-up of the build for 64-bit Arm on another machine, to be sourced after setup.sh: a cross compiler and an emulator
# from packages.txt, and Debian's Arm libraries in build/arm64-root, unpacked beside the system and not into it.
# shellcheck shell=bash
readonly arm64_root=${root:?}/build/arm64-root

# The C and C++ libraries, and every library of packages.txt that src/ and its tests link: Debian's name for each.
arm64_packages() {
  printf '%s\n' libc6-dev libstdc++6
  { packages_in build && packages_in "build optional" && packages_in test; } | grep -E '^(lib|zlib)' | cut -d ' ' -f 1
}

# apt-get for another architecture, with lists and a cache of its own. It believes that nothing is installed.
arm64_apt() {
  local state=$arm64_root.apt
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  : >>"$state/status"
  apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User="$(id -un)" \
    -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o Debug::NoLocking=true "$@" >>"${setup_log:?}" 2>&1
}

# setup_arm64: whatever is missing is left out with a word; is_arm64_ready tells.
setup_arm64() {
  local stamp package packages
  setup_packages arm64
  stamp=$arm64_root/stamp-$(hash_of scripts/arm64.sh packages.txt /etc/os-release)
  [ ! -e "$stamp" ] || return 0
  command -v apt-get >/dev/null || return 0
  say "fetching Arm libraries into build/arm64-root (log: build/setup.log)"
  rm -rf "$arm64_root"
  mkdir -p "$arm64_root"
  mapfile -t packages < <(arm64_packages)
  if arm64_apt update && arm64_apt install --download-only --no-install-recommends "${packages[@]}"; then
    for package in "$arm64_root.apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$arm64_root"; done
    touch "$stamp"
  else
    rm -rf "$arm64_root"
    say "left out: the Arm libraries could not be fetched (build/setup.log); the soak will skip Arm"
  fi
  rm -rf "$arm64_root.apt"
}

is_arm64_ready() {
  [ -d "$arm64_root" ] && command -v aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null
}

need_arm64() {
  is_arm64_ready || stop "for 64-bit Arm a cross compiler and an emulator are needed (sudo apt-get install \
g++-aarch64-linux-gnu qemu-user), and a distribution whose sources have arm64 packages, as Debian's do"
}
