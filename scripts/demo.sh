#!/usr/bin/env bash
# usage: demo.sh [FILE...]     Sets the machine up, builds ogc, compiles a trained model and runs it on real input.
# The model tells file types (Magika, Apache-2.0, from the PyPI package magika); the input is some files of this tree, or those given.
set -euo pipefail
source "$(dirname "$0")/env.sh"

files=()
for file in "$@"; do
  files+=("$(realpath "$file")")
done
cd "$OGC_ROOT"
scripts/setup.sh
scripts/build.sh release all
exec "$OGC_VENV/bin/python" scripts/demo.py "${OGC_BUILD_DIR:-build}/bin/ogc" "${files[@]}"
