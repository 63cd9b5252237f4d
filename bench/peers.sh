#!/usr/bin/env bash
# usage: peers.sh [OPTION of peers.py...]     Times ogc against PyTorch on a machine with a GPU and writes docs/gpu_results_peers.md.
# Needs there: the tree with the folder gpu/ made by scripts/gpu_pack.sh; an NVIDIA driver; python3 with numpy, onnx, onnxruntime, PyTorch, torchvision
# and transformers. Nothing is installed or downloaded: all weights are random.
set -euo pipefail
source "$(dirname "$0")/../scripts/gpu_env.sh"
export HF_HUB_OFFLINE=1 TORCHINDUCTOR_CACHE_DIR=$work/inductor
exec python3 "$root/bench/peers.py" "$@"
