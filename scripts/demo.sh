#!/usr/bin/env bash
# The demo: scripts/demo.sh BUILD. A set of photos goes through every verb and back, and into batches, in build/demo.
# BUILD is a folder with the command and the Python package.
set -euo pipefail
packtrain=$(realpath "$1/tools/packtrain")
package=$(realpath "$1/python")
python=$PWD/.venv/bin/python
torch_python=$PWD/build/torch/bin/python
if "$torch_python" -c 'import torch' 2>/dev/null; then python=$torch_python; fi
examples=$PWD/examples
demo=build/demo
photos=600
rm -rf "$demo"
mkdir -p "$demo"
cd "$demo"
mkdir bin
ln -s "$packtrain" bin/packtrain
export PATH="$PWD/bin:$PATH"

step() { printf '\n\033[1m%s\033[0m\n' "$1"; }
plain_step() { printf '\n%s\n' "$1"; }
if [ "${CI:-}" = true ] || [ ! -t 1 ] || [ -n "${NO_COLOR:-}" ]; then step() { plain_step "$@"; }; fi

run() {
  printf '$ %s\n' "$*"
  "$@"
}

step "1. $photos photos in a class tree, as training sets lie on a shared filesystem"
run packtrain synth photos --samples "$photos"
step "2. Packed: a few shards, an index, checksums on everything"
run packtrain pack photos photos.pt
run packtrain info photos.pt
step "3. Verified: rows against bytes, bytes against rows"
run packtrain verify photos.pt
step "4. Shown: a contact sheet with histograms"
run packtrain show photos.pt -o photos.html
step "5. The way back: the same names, the same bytes"
run packtrain extract photos.pt back
run diff -r photos back
printf 'no difference\n'

step "6. Loaded: the calculation-free loop of a training, from the shards, and from loose files by torch's DataLoader"
printf '$ python examples/loading_race.py photos photos.pt\n'
PYTHONPATH=$package "$python" "$examples/loading_race.py" photos photos.pt

step "What to type next"
cat <<TEXT
  export PATH="$PWD/bin:\$PATH"; cd $PWD
  packtrain pack --dry-run /path/to/your/images your.pt   # what packing your own set would give
  packtrain pack /path/to/your/images your.pt             # pack it
  packtrain verify your.pt                                # check every bit of it
  packtrain ls photos.pt | head                           # look inside, one sample a line
  packtrain doctor                                        # what this machine offers
  PYTHONPATH=$package $python   # a Python that has the package: import packtrain as pt; pt.Dataset("photos.pt")[7]
The contact sheet is $PWD/photos.html
TEXT
