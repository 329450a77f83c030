#!/usr/bin/env bash
# scripts/prove_wheel.sh WHEEL HOUSE PYTHON: the wheel installs and works for an ordinary user, with what HOUSE holds of
# other wheels. Started by root in a mount namespace of its own, it also hides every header and pkg-config file of the
# system, brings PYTHON where that user may read it, and drops to the user `nobody`.
set -euo pipefail
wheel=$(realpath "$1") house=$(realpath "$2") python=$3
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
as_user=()

if [ "$(id -u)" -eq 0 ]; then
  chmod 755 "$scratch"
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all)
  if [ "$(readlink /proc/self/ns/mnt)" != "$(readlink /proc/1/ns/mnt)" ]; then
    for folder in /usr/include /usr/local/include /usr/share/pkgconfig /usr/lib/*/pkgconfig; do
      if [ -d "$folder" ]; then mount -t tmpfs -o size=4k,ro none "$folder"; fi
    done
    mkdir "$scratch/python"
    mount --bind "$(dirname "$(dirname "$python")")" "$scratch/python"
    python=$scratch/python/bin/$(basename "$python")
  fi
  mkdir "$scratch/home"
  chown 65534:65534 "$scratch/home"
else
  mkdir "$scratch/home"
fi
cp "$wheel" "$house"/*.whl "$here/smoke.sh" "$scratch"
chmod a+r "$scratch"/*.whl
cd "$scratch/home"
HOME=$scratch/home "${as_user[@]}" bash -euo pipefail -s "$scratch" "$python" "$(basename "$wheel")" <<'USER'
scratch=$1 python=$2 wheel=$3
echo "as user $(id -u): a fresh environment with $("$python" --version)"
"$python" -m venv "$HOME/env"
"$HOME/env/bin/python" -m pip install --disable-pip-version-check -q --no-index --find-links "$scratch" "$scratch/$wheel"
bash "$scratch/smoke.sh" "$HOME/env" "$HOME/work"
# Beside glibc and the compiler's run-time, every library must come from inside the wheel.
foreign=$(find "$HOME"/env/lib*/python3*/site-packages/packtrain -name '*.so' -o -name packtrain -type f | xargs ldd |
  awk '/=>/ && $3 !~ /site-packages/ {print $1}' | sort -u |
  grep -Ev '^lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so' || true)
if [ -n "$foreign" ]; then
  echo "these libraries are not inside the wheel: $foreign"
  exit 1
fi
USER
rm -rf "${scratch:?}/home"
