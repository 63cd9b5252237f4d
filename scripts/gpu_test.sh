#!/usr/bin/env bash
# usage: gpu_test.sh [OPTION of gpu_test.py...]     Tests and times ogc on a machine with a GPU and writes docs/gpu_results.md.
# Needs there: the tree with the folder gpu/ made by scripts/gpu_pack.sh; an NVIDIA driver; a CUDA toolkit (NVRTC with its headers, and
# compute-sanitizer); python3 with numpy, onnx and onnxruntime. Nothing is installed and nothing else of the tree is built.
set -euo pipefail
source "$(dirname "$0")/gpu_env.sh"
exec python3 "$root/scripts/gpu_test.py" "$@"
