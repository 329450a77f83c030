# Builds for ./dev, to be sourced after setup.sh: one folder of build/ per preset.
# shellcheck shell=bash

# The Clang that the fuzz targets are built with: the preset's own version, else whatever is there.
find_clang() {
  command -v clang++-14 || command -v clang++ || true
}

# What two presets compile with equal flags is compiled once, wherever it is built.
export CCACHE_NOHASHDIR=1

# build PRESET: configures and builds build/PRESET; says only what went wrong.
build() {
  local preset=$1 base=$1 folder=build/$1 library clang
  local options=()
  if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  case $preset in
    dev | release) options+=(-DPACKTRAIN_PYTHON=ON "-DPython_EXECUTABLE=$root/.venv/bin/python") ;;
    fuzz)
      clang=$(find_clang)
      [ -n "$clang" ] || stop "the fuzz targets need Clang, and there is none"
      options+=("-DCMAKE_CXX_COMPILER=$clang" "-DCMAKE_C_COMPILER=${clang/clang++/clang}")
      ;;
    minimal)
      base=dev
      for library in URING ISAL DEFLATE ZSTD ZLIB PNG WEBP FLAC; do
        options+=("-DPACKTRAIN_WITHOUT_$library=ON")
      done
      options+=(-DPACKTRAIN_BENCH=OFF)
      ;;
    bench)
      base=release
      options+=(-DPACKTRAIN_BENCH=ON -DPACKTRAIN_PYTHON=ON "-DPython_EXECUTABLE=$root/.venv/bin/python")
      ;;
    asan | tsan | arm64) ;;
    *) stop "there is no preset '$preset'; see ./dev help" ;;
  esac
  mkdir -p "$folder"
  say "building $folder"
  if ! cmake --preset "$base" -B "$folder" "${options[@]}" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    stop "cannot configure $folder"
  fi
  if ! cmake --build "$folder" >"$folder/build.log" 2>&1; then
    tail -n 100 "$folder/build.log" >&2
    stop "cannot build $folder; the whole log is $folder/build.log"
  fi
}
