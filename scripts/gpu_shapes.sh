#!/usr/bin/env bash
# usage: gpu_shapes.sh [OPTION of gpu_shapes.py...]     Proves a bundle of 20 graph IDs on a machine with a GPU (docs/shapes.md).
# Needs there what gpu_test.sh needs.
set -euo pipefail
source "$(dirname "$0")/gpu_env.sh"
exec python3 "$root/scripts/gpu_shapes.py" "$@"
