#!/usr/bin/env bash
# usage: tidy.sh [BUILD_DIR [FILE...]]     Runs clang-tidy (.clang-tidy) on the given files, or on all; needs a configured build folder.
# About five seconds a file, so it is not part of scripts/test.sh: run it on what you change.
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
build=${1:-build}
[ $# = 0 ] || shift
[ -e "$build/compile_commands.json" ] || die "$build is not a configured build folder: run scripts/build.sh first"
files=("$@")
if [ ${#files[@]} = 0 ]; then
  mapfile -t files < <(git ls-files 'compiler/*.cpp' 'runtime_lib/*.cpp' 'tools/*.cpp')
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P 2 clang-tidy-22 --quiet -p "$build" --warnings-as-errors='*'
