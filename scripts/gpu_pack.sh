#!/usr/bin/env bash
# usage: gpu_pack.sh [models|conformance|all]     Makes the folder gpu/ (ignored by git, below 64 MiB) that scripts/gpu_test.sh (models, the default)
# or test/conformance/gpu.py needs on a machine with a GPU of architecture OGC_GPU_ARCH (sm_90).
# Weights of the models are too large to carry, and packed by the compiler. So the compiler itself is carried, as one static program; the weights
# are made there, which gives the same bytes on every machine. The conformance cases are small: their bundles are compiled here.
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
[ -d "$OGC_SHARED/models" ] || die "the models of $OGC_SHARED/models are needed"
scripts/setup.sh
part=${1:-models}
build=${OGC_STATIC_BUILD_DIR:-build-static}
case $part in
  models) programs="ogc ogc-rt" ;;
  conformance) programs=ogc-conformance-run ;;
  all) programs="ogc ogc-rt ogc-conformance-run" ;;
  *) die "'$part' is not models, conformance or all" ;;
esac
# shellcheck disable=SC2086
OGC_BUILD_DIR=$build scripts/build.sh static $programs

rm -rf gpu
mkdir -p gpu/models
for program in $programs; do
  llvm-strip-22 -o "gpu/$program" "$build/bin/$program"
  xz -T0 "gpu/$program"
done
if [ "$part" != conformance ]; then
  cp "$OGC_SHARED"/models/make_weights.py "$OGC_SHARED"/models/*.onnx gpu/models/
fi
if [ "$part" != models ]; then
  cases=$("$OGC_VENV/bin/python" test/conformance/cases.py)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # The compiler of the everyday build: the same code.
  scripts/build.sh release ogc-conformance
  build/bin/ogc-conformance "$cases" --bundles "$work/bundles" --keep --no-run --target "${OGC_GPU_ARCH:-sm_90}" --jobs "$(nproc)" -o "$work/compile.json"
  tar -C "$work" -cJf gpu/bundles.tar.xz bundles compile.json
  tar -C "$cases" -cJf gpu/cases.tar.xz --exclude='*.onnx' .
fi
git describe --always --dirty >gpu/commit
size=$(du -sm gpu | cut -f1)
[ "$size" -le 60 ] || die "gpu/ has $size MiB"
echo "gpu/ is ready ($size MiB): copy the tree with it to a machine with a GPU and run scripts/gpu_test.sh or test/conformance/gpu.py there"
