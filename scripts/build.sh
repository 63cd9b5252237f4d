#!/usr/bin/env bash
# usage: build.sh [PRESET [TARGET...]]     Configures and builds a preset (release, dev, asan); see CMakePresets.json.
# OGC_BUILD_DIR moves the build folder, build/ for release.
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
preset=${1:-release}
[ $# = 0 ] || shift
build=${OGC_BUILD_DIR:-build$([ "$preset" = release ] || echo "-$preset")}
[ -e "$OGC_VENV/.complete" ] || die "run scripts/setup.sh first"
quietly "configure-$preset" cmake --preset "$preset" -B "$build"
log=$OGC_CACHE_DIR/logs/build-$preset.log
echo "building $build (log: $log)"
if ! cmake --build "$build" --target "${@:-all}" >"$log" 2>&1 </dev/null; then
  grep -E -A 12 'FAILED|error:|CMake Error' "$log" | head -n 80 >&2
  die "the build failed; the whole log is $log"
fi
