#!/usr/bin/env bash
# usage: gpu_test.sh [OPTION of gpu_test.py...]     Tests and times ogc on a machine with a GPU and writes docs/gpu_results.md.
# Needs there: the tree with the folder gpu/ made by scripts/gpu_pack.sh; an NVIDIA driver; a CUDA toolkit (NVRTC with its headers, and
# compute-sanitizer); python3 with numpy, onnx and onnxruntime. Nothing is installed and nothing else of the tree is built.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=${OGC_GPU_WORK:-/tmp/ogc-gpu}
[ -e "$root/gpu/ogc.xz" ] || { echo "error: $root/gpu is missing; make it with scripts/gpu_pack.sh" >&2; exit 1; }
mkdir -p "$work/bin"
for program in ogc ogc-rt; do
  python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' "$root/gpu/$program.xz" "$work/bin/$program"
  chmod +x "$work/bin/$program"
done
export OGC_SHARED=$root/gpu OGC_CACHE_DIR=$work/cache OGC_BUILD_DIR=$work
exec python3 "$root/scripts/gpu_test.py" "$@"
