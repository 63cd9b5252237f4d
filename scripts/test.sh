#!/usr/bin/env bash
# usage: test.sh [SUITE...]     Sets the machine up, builds the release preset and runs the suites: format layering scripts lit unit e2e
# conformance fuzz.
# Prints a line a suite and ends with "N passed, N failed, N skipped" over all; exit code 1 when a test failed.
# OGC_BUILD_DIR moves the build folder, OGC_TEST_JOBS sets the number of test processes (2).
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
suites=${*:-format layering scripts lit unit e2e conformance fuzz}
jobs=${OGC_TEST_JOBS:-2}
build=${OGC_BUILD_DIR:-build}
specs=()

finish() {
  "$OGC_VENV/bin/python" scripts/sum_tests.py "${specs[@]}"
  exit
}

# suite NAME XML COMMAND...: runs the command and notes its exit code; XML is "-" where the command writes no results file.
suite() {
  local name=$1 xml=$2 code=0
  shift 2
  echo "== $name"
  "$@" </dev/null || code=$?
  specs+=("$name=$code$([ "$xml" = - ] || echo ":$xml")")
}

scripts/setup.sh || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export OGC_BUILD_DIR=$build

wants() { [[ " $suites " == *" $1 "* ]]; }

! wants format || suite format - scripts/format.sh check
! wants layering || suite layering - scripts/check_layering.py
! wants scripts || suite scripts "$results/scripts.xml" pytest -q test/scripts --junitxml "$results/scripts.xml"
if wants lit || wants unit || wants e2e || wants conformance || wants fuzz; then
  suite build - scripts/build.sh release
  [ "${specs[-1]}" = build=0 ] || finish
fi
! wants lit || suite lit "$results/lit.xml" lit -s -j "$jobs" "$build/test/lit" --xunit-xml-output "$results/lit.xml"
! wants unit || suite unit "$results/unit.xml" ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error --quiet \
  --output-junit "$results/unit.xml"
if wants e2e; then
  suite e2e "$results/e2e.xml" pytest -q test/e2e -m 'not alone' -n "$jobs" --dist loadgroup --junitxml "$results/e2e.xml"
  # Tests that measure time run with nothing beside them.
  suite e2e "$results/alone.xml" pytest -q test/e2e -m alone --junitxml "$results/alone.xml"
fi
! wants conformance || suite conformance "$results/conformance.xml" "$OGC_VENV/bin/python" test/conformance/run.py --check --jobs "$jobs" \
  --junitxml "$results/conformance.xml"
! wants fuzz || suite fuzz - scripts/fuzz.sh 60
finish
