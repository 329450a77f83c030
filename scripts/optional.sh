#!/usr/bin/env bash
# The optional libraries, as cmake/libraries.cmake calls them, a line each.
set -euo pipefail
sed -n 's/^packtrain_optional(\([A-Z0-9]*\) .*/\1/p' "$(dirname "$0")/../cmake/libraries.cmake"
