#!/usr/bin/env bash
# usage: build.sh [PRESET [TARGET...]]     Configures and builds a preset (release, dev, asan); see CMakePresets.json.
# OGC_BUILD_DIR moves the build folder, build/ for release.
# What was compiled while sources changed may be old and look new, by its time: such a build is repeated from the beginning.
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
preset=${1:-release}
[ $# = 0 ] || shift
build=${OGC_BUILD_DIR:-build$([ "$preset" = release ] || echo "-$preset")}
[ -e "$OGC_VENV/.complete" ] || die "run scripts/setup.sh first"

# Names, times and sizes of all that is compiled.
sources() {
  find . -path ./.git -prune -o -path './build*' -prune -o -type f \( -name '*.cpp' -o -name '*.c' -o -name '*.h' -o -name '*.cuh' -o -name '*.td' -o -name '*.fbs' -o -name '*.cmake' \
    -o -name CMakeLists.txt \) -printf '%p %T@ %s\n' | sort | sha256sum
}

log=$OGC_CACHE_DIR/logs/build-$preset.log
mixed=$build/.sources-changed # left by a build during which sources changed, or which was killed
for try in 1 2; do
  quietly "configure-$preset" cmake --preset "$preset" -B "$build"
  if [ -e "$mixed" ]; then
    quietly "clean-$preset" cmake --build "$build" --target clean
    rm "$mixed"
  fi
  before=$(sources)
  touch "$mixed"
  echo "building $build (log: $log)"
  code=0
  cmake --build "$build" --target "${@:-all}" >"$log" 2>&1 </dev/null || code=$?
  [ "$(sources)" != "$before" ] || rm "$mixed"
  if [ $code != 0 ]; then
    grep -E -A 12 'FAILED|error:|CMake Error' "$log" | head -n 80 >&2 || true
    die "the build failed; the whole log is $log"
  fi
  [ -e "$mixed" ] || exit 0
  echo "sources changed while they were compiled" >&2
done
die "sources changed during two builds: build a copy of the tree that nobody changes"
