#!/usr/bin/env bash
# usage: gpu_tune.sh [OPTION of gpu_tune.py...]     Measures the choices for the shared models' kernels on a machine with a GPU.
# Needs there what gpu_test.sh needs. The result replaces compiler/codegen/cuda/tuning/ARCH.txt.
set -euo pipefail
source "$(dirname "$0")/gpu_env.sh"
exec python3 "$root/scripts/gpu_tune.py" "$@"
