#!/usr/bin/env bash
# CUDA headers and NVRTC for cmake/OgcCuda.cmake: nothing to do where a toolkit is installed, else PyPI's wheels of it are unpacked into
# the cache folder as cuda-13.0/{include,lib}.
set -euo pipefail
source "$(dirname "$0")/env.sh"

for root in "${OGC_CUDA_ROOT:-}" "${CUDA_HOME:-}" /usr/local/cuda "$OGC_CACHE_DIR/cuda-13.0"; do
  [ -z "$root" ] || [ ! -e "$root/include/nvrtc.h" ] || exit 0
done

prefix=$OGC_CACHE_DIR/cuda-13.0
echo "no CUDA toolkit found; unpacking its headers and NVRTC into $prefix"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly cuda-download "$OGC_VENV/bin/python" -m pip install --disable-pip-version-check --no-deps --only-binary :all: --target "$work" \
  -r "$OGC_ROOT/scripts/requirements-cuda.txt"
rm -rf "$prefix"
mv "$work/nvidia/cu13" "$prefix"
# dlopen looks for the names without a version too.
ln -sf libnvrtc.so.13 "$prefix/lib/libnvrtc.so"
[ -e "$prefix/include/nvrtc.h" ] || die "the wheels hold no nvrtc.h"
