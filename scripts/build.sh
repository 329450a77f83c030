# Builds for ./dev, to be sourced after setup.sh: one folder of build/ per preset.
# shellcheck shell=bash

# The Clang that fuzz targets are built with: the version that the packages name, else whatever is there.
find_clang() {
  command -v clang++-14 || command -v clang++ || true
}

# What two presets compile with equal flags is compiled once, wherever it is built: ccache sees names relative to the
# folder of the build, and all of those lie equally deep.
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${root:?}

# watch_build LOG: tells how far the build is that writes LOG, on a terminal every second in one line, elsewhere every
# half minute. Runs beside the build, in the background, until it is ended or this shell is gone.
watch_build() {
  local log=$1 seconds=0 done_of
  while kill -0 $$ 2>/dev/null; do
    sleep 1
    seconds=$((seconds + 1))
    done_of=$(grep -o '^\[[0-9]*/[0-9]*\]' "$log" 2>/dev/null | tail -n 1) || continue
    if [ -t 2 ]; then
      printf '\rdev: %s %d min %02d s ' "$done_of" $((seconds / 60)) $((seconds % 60)) >&2
    elif [ $((seconds % 30)) -eq 0 ]; then
      say "$done_of after $seconds s"
    fi
  done
}

# build PRESET: configures and builds build/PRESET; says how far it is and what went wrong.
build() {
  local preset=$1 base=$1 folder=build/$1 library clang watcher failed=
  local options=()
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  case $preset in
    dev | release) options+=(-DPACKTRAIN_PYTHON=ON "-DPython_EXECUTABLE=$root/.venv/bin/python") ;;
    asan)
      # Clang also compiles this in half the time, and checks the annotations of locks. The fuzz targets want the same
      # sanitizers, so that one build serves the tests and them. Without Clang, GCC does the tests alone.
      clang=$(find_clang)
      if [ -n "$clang" ]; then
        options+=("-DCMAKE_CXX_COMPILER=$clang" "-DCMAKE_C_COMPILER=${clang/clang++/clang}" -DPACKTRAIN_FUZZ=ON
          -DPACKTRAIN_WERROR=ON "-DPACKTRAIN_SANITIZE=fuzzer-no-link,address,undefined")
      fi
      ;;
    minimal)
      base=dev
      while read -r library; do options+=("-DPACKTRAIN_WITHOUT_$library=ON"); done < <(scripts/optional.sh)
      options+=(-DPACKTRAIN_BENCH=OFF)
      ;;
    bench)
      base=release
      options+=(-DPACKTRAIN_BENCH=ON -DPACKTRAIN_PYTHON=ON "-DPython_EXECUTABLE=$root/.venv/bin/python")
      ;;
    tsan | arm64) ;;
    *) stop "there is no preset '$preset'; see ./dev help" ;;
  esac
  mkdir -p "$folder"
  say "building $folder: up to ten minutes on 2 cores from nothing, seconds when little has changed;" \
    "the log is $folder/build.log"
  if ! cmake --preset "$base" -B "$folder" "${options[@]}" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    stop "cannot configure $folder"
  fi
  : >"$folder/build.log"
  watch_build "$folder/build.log" &
  watcher=$!
  cmake --build "$folder" >"$folder/build.log" 2>&1 || failed=yes
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  [ ! -t 2 ] || printf '\r\033[K' >&2
  if [ -n "$failed" ]; then
    tail -n 100 "$folder/build.log" >&2
    stop "cannot build $folder; the whole log is $folder/build.log"
  fi
}
