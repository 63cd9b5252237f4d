#!/usr/bin/env bash
# Builds the onnx C++ libraries (schemas, shape inference, checker) from the source package of PyPI into the cache folder, once.
# Takes three to four minutes on two cores. Debian's own onnx package is too old (opset 17).
set -euo pipefail
source "$(dirname "$0")/env.sh"

version=$OGC_ONNX_VERSION
sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8
prefix=$OGC_CACHE_DIR/onnx-$version
[ ! -e "$prefix/lib/cmake/ONNX/ONNXConfig.cmake" ] || exit 0

echo "building the onnx $version C++ libraries into $prefix"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly onnx-download "$OGC_VENV/bin/python" -m pip download --disable-pip-version-check --no-binary onnx --no-deps "onnx==$version" -d "$work"
echo "$sha256  $work/onnx-$version.tar.gz" | sha256sum --check --status || die "onnx-$version.tar.gz has an unexpected checksum"
tar -xf "$work/onnx-$version.tar.gz" -C "$work"
# Debian's libprotobuf is shared; the Python part and the type stubs would need more packages.
quietly onnx-configure cmake -S "$work/onnx-$version" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$work/install" \
  -DONNX_BUILD_PYTHON=OFF -DONNX_USE_PROTOBUF_SHARED_LIBS=ON -DONNX_GEN_PB_TYPE_STUBS=OFF
quietly onnx-build cmake --build "$work/build" --target install
# The installed files hold no absolute path, so they can be moved into place in one step.
rm -rf "$prefix"
mv "$work/install" "$prefix"
