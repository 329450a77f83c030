#!/usr/bin/env bash
# The environments of the loaders that packtrain is measured against, one below build/peers for each group: torch
# (with WebDataset and LMDB), dali, ffcv, spdl. `setup.sh GROUP…` makes some of them, `setup.sh` all. A group that
# cannot be installed is named and left out: the figures leave its loaders out too. FFCV is compiled against the
# system's OpenCV and libturbojpeg, and SPDL needs FFmpeg (Debian: libopencv-dev libturbojpeg0-dev pkg-config ffmpeg).
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
home=$root/build/peers
python=${PYTHON:-python3}
# torchvision is installed without its dependences: its wheel would bring a torch of several GB for GPUs.
readonly torch=torch==2.13.0 torchvision=torchvision==0.28.0

pip_install() {
  local group=$1
  shift
  "$home/$group/bin/python" -m pip install --disable-pip-version-check -qq "$@"
}

# new GROUP PACKAGE…: an environment with these packages; a package that wants another torch is an error.
new() {
  local group=$1
  shift
  "$python" -m venv --clear "$home/$group" || return 1
  printf '%s\n' "$torch" >"$home/$group/constraints.txt"
  pip_install "$group" -c "$home/$group/constraints.txt" "$@"
}

make_group() {
  case $1 in
    torch) new torch "$torch" numpy pillow webdataset==1.0.2 lmdb==3.0.0 && pip_install torch --no-deps "$torchvision" ;;
    dali) new dali "$torch" numpy nvidia-dali-cuda120==2.4.0 ;;
    ffcv)
      new ffcv "$torch" numpy numba opencv-python-headless pandas tqdm psutil terminaltables fastargs pillow imgcat \
        assertpy packaging 'setuptools<81' && pip_install ffcv --no-deps ffcv==1.0.2 pytorch-pfn-extras
      ;;
    spdl) new spdl "$torch" numpy spdl==0.8.0 spdl_io==0.8.0 ;;
    *)
      printf '%s\n' "setup.sh: there is no group '$1'; there are torch, dali, ffcv, spdl" >&2
      exit 2
      ;;
  esac
}

mkdir -p "$home"
[ $# -gt 0 ] || set -- torch dali ffcv spdl
for group in "$@"; do
  stamp=$home/$group/stamp-$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-16)
  [ ! -e "$stamp" ] || continue
  printf '%s\n' "setup.sh: installing build/peers/$group (log: build/peers/$group.log)" >&2
  if make_group "$group" >"$home/$group.log" 2>&1; then
    touch "$stamp"
  else
    rm -rf "${home:?}/$group"
    printf '%s\n' "setup.sh: left out: $group; build/peers/$group.log says why" >&2
  fi
done
