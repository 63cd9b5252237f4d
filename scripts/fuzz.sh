#!/usr/bin/env bash
# usage: fuzz.sh [SECONDS [SEED]]     Damages models and bundles for so long (60) and compiles, opens and runs them under limits: no crash,
# no hang beyond 10 s, no allocation beyond 256 MiB and ten times the file. Exit code 1 when something was found; the files are kept.
# OGC_BUILD_DIR chooses the build folder: build/ for CI; one of the asan preset for a long run. OGC_TEST_JOBS: processes at a time (2).
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
seconds=${1:-60}
seed=${2:-1}
jobs=${OGC_TEST_JOBS:-2}
build=${OGC_BUILD_DIR:-build}
[ -x "$build/bin/ogc-fuzz" ] || die "$build/bin/ogc-fuzz is not built: run scripts/build.sh"

# The models come from the onnx package and from a script, and change with these alone.
key=$(cat test/fuzz/make_corpus.py scripts/requirements.txt | sha256sum | cut -c1-12)
models=$OGC_CACHE_DIR/fuzz-$key
if [ ! -d "$models" ]; then
  rm -rf "$models.part"
  "$OGC_VENV/bin/python" test/fuzz/make_corpus.py "$models.part"
  mv "$models.part" "$models"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in convolutions attention movement encodings; do
  shapes=()
  [ $name != convolutions ] || shapes=(--shapes 'one: x=1x3x8x8' --shapes 'two: x=2x3x8x8')
  [ $name != attention ] || shapes=(--shapes 'x=1x4x16,mask=1x1x1x4')
  "$build/bin/ogc" compile "$models/ours-$name-0.onnx" -o "$work/$name.ogc" --target cpu "${shapes[@]}" >/dev/null
done

keep=$build/fuzz-findings
rm -rf "$keep"
code=0
"$build/bin/ogc-fuzz" models --corpus "$models" --seconds $((seconds * 3 / 4)) --runs 1000000000 --seed "$seed" --jobs "$jobs" --keep "$keep" || code=1
"$build/bin/ogc-fuzz" bundles --corpus "$work" --seconds $((seconds / 4)) --runs 1000000000 --seed "$seed" --jobs "$jobs" --keep "$keep" || code=1
[ $code = 0 ] || echo "the files are in $keep"
exit $code
