#!/usr/bin/env bash
# usage: gpu_all.sh FOLDER [SECONDS]     Everything that is known of a commit on a GPU, in the order of importance, within SECONDS (600): tests and times
# (gpu_test.sh), the conformance cases, the table of peers, graph IDs and plans. Logs and pages go to FOLDER; what there was no time for is said.
# Needs the tree with gpu/ made by `gpu_pack.sh all`, and what gpu_test.sh and bench/peers.sh need.
set -euo pipefail
folder=$1 seconds=${2:-600}
cd "$(dirname "$0")/.."
source scripts/gpu_env.sh
export PYTHONUNBUFFERED=1
mkdir -p "$folder"

# step LABEL SECONDS COMMAND...: at most so long, and not longer than there is time; into a log.
step() {
  local label=$1 most=$2 left=$((seconds - SECONDS)) code=0
  shift 2
  [ "$left" -gt 10 ] || { echo "[$SECONDS s] $label: no time left"; return; }
  timeout "$((left < most ? left : most))" "$@" >"$folder/$label.log" 2>&1 || code=$?
  echo "[$SECONDS s] $label: exit code $code: $(grep -v '^ *$' "$folder/$label.log" | tail -n 1 | cut -c1-150)"
}
step conformance 120 python3 test/conformance/gpu.py "$folder" &
step gpu_test 270 scripts/gpu_test.sh --load --large --output "$folder"
wait
step peers 220 bench/peers.sh --budget 150 --output "$folder/gpu_results_peers.md"
step shapes 110 python3 scripts/gpu_shapes.py --calls 10000 --seconds 100 &
step plan 110 python3 test/gpu/plan_test.py --replays 2000 --full &
wait
