#!/usr/bin/env bash
# scripts/prove_wheel.sh WHEEL HOUSE PYTHON: the wheel installs and works for an ordinary user, with what HOUSE holds of
# other wheels. Started by root in a mount namespace of its own, it also hides every header and pkg-config file of the
# system, lets that user reach PYTHON, and drops to the user `nobody`.
set -euo pipefail
wheel=$(realpath "$1") house=$(realpath "$2") python=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
as_user=(env -i PATH=/usr/bin:/bin LANG=C.UTF-8 "HOME=$scratch/home")
mkdir "$scratch/home"
cp "$wheel" "$house"/*.whl "$here/smoke.sh" "$scratch"
chmod a+r "$scratch"/*.whl

# A Python below a folder that is closed to others (pyenv in root's home) must keep its path, by which it finds its
# libraries: an empty folder that is open takes the place of the closed one, and holds nothing but that Python.
open_the_way_to() {
  local prefix=$1 closed=$1
  until "${as_user[@]}" test -x "$(dirname "$closed")"; do closed=$(dirname "$closed"); done
  mkdir "$scratch/prefix"
  mount --bind "$prefix" "$scratch/prefix"
  mount -t tmpfs -o mode=755 none "$closed"
  mkdir -p "$prefix"
  mount --bind "$scratch/prefix" "$prefix"
  umount "$scratch/prefix"
  rmdir "$scratch/prefix"
}

if [ "$(id -u)" -eq 0 ]; then
  chmod 755 "$scratch"
  chown 65534:65534 "$scratch/home"
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "${as_user[@]}")
  if [ "$(readlink /proc/self/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ]; then
    for folder in /usr/include /usr/local/include /usr/share/pkgconfig /usr/lib/*/pkgconfig; do
      if [ -d "$folder" ]; then mount -t tmpfs -o size=4k,ro none "$folder"; fi
    done
    if ! "${as_user[@]}" test -x "$python"; then open_the_way_to "$(dirname "$(dirname "$python")")"; fi
  fi
fi
trap 'rm -rf "$scratch"' EXIT
cd "$scratch/home"
"${as_user[@]}" bash -euo pipefail -s "$scratch" "$python" "$(basename "$wheel")" <<'USER'
scratch=$1 python=$2 wheel=$3
echo "as user $(id -u): a fresh environment with $("$python" --version)"
"$python" -m venv "$HOME/env"
"$HOME/env/bin/python" -m pip install --disable-pip-version-check -q --no-index --find-links "$scratch" "$scratch/$wheel"
bash "$scratch/smoke.sh" "$HOME/env" "$HOME/work"
# Beside glibc, libgcc, libstdc++ and zlib, which every manylinux platform has in versions that auditwheel checks, every
# library must come from inside the wheel.
foreign=$(find "$HOME"/env/lib*/python3*/site-packages/packtrain -name '*.so' -o -name packtrain -type f | xargs ldd |
  awk '/=>/ && $3 !~ /site-packages/ {print $1}' | sort -u | grep -Ev '^lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z)\.so' || true)
if [ -n "$foreign" ]; then
  echo "these libraries are not inside the wheel: $foreign"
  exit 1
fi
licences=$(find "$HOME"/env/lib*/python3*/site-packages/packtrain-*.dist-info/licenses/libraries -type f | wc -l)
libraries=$(find "$HOME"/env/lib*/python3*/site-packages/packtrain.libs -type f | wc -l)
if [ "$licences" -le "$libraries" ]; then
  echo "$libraries libraries are inside the wheel, but only $licences licences"
  exit 1
fi
USER
