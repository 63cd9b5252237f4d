#!/usr/bin/env bash
# usage: gpu_all.sh FOLDER [SECONDS [PART...]]     Everything that is known of a commit on a GPU, or only the parts named, in the order of importance,
# within SECONDS (600): tests (gpu_test.sh with times, and the conformance cases), plans (graph IDs, plans, the pool), peers (the table of peers),
# levers and large (what each lever gives, to a large model too). With a second GPU, peers and levers run there at the same time. Logs and pages go
# to FOLDER; what there was no time for is said.
# Needs the tree with gpu/ made by `gpu_pack.sh all`, and what gpu_test.sh and bench/peers.sh need.
set -euo pipefail
folder=$1 seconds=${2:-600} parts=" ${*:3} "
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
# part NAME...: those that are asked for, one after the other.
part() {
  local name
  for name; do [[ $parts != "  " && $parts != *" $name "* ]] || "$name"; done
}
tests() {
  step conformance 120 python3 test/conformance/gpu.py "$folder" &
  step gpu_test 290 scripts/gpu_test.sh --load --large --no-sanitizer --output "$folder"
  wait
}
plans() {
  step shapes 110 python3 scripts/gpu_shapes.py --calls 10000 --seconds 100 &
  step plan 130 python3 test/gpu/plan_test.py --replays 2000 --full &
  wait
  step pool 60 python3 test/gpu/pool_test.py # alone on its GPU: it looks at memory in use
}
peers() { step peers 220 bench/peers.sh --budget 150 --output "$folder/gpu_results_peers.md"; }
# levers_of LABEL MODELS
levers_of() { step "$1" 330 scripts/gpu_test.sh --models '' --calls '' --ablation "$2" --no-sanitizer --name "gpu_results_$1" --output "$folder"; }
levers() { levers_of ablation resnet50,mobilenet_v3_large,vit_b_16,bert_base,gpt2; }
large() { levers_of ablation_large llama1b_decode; } # 20 times 2.5 GB of weights

if [ "$(nvidia-smi --query-gpu=index --format=csv,noheader | wc -l)" -gt 1 ]; then
  (export CUDA_VISIBLE_DEVICES=1 OGC_GPU_WORK=$work-tables; part peers levers) &
  (export CUDA_VISIBLE_DEVICES=0; part tests plans large) &
  wait
else
  part tests plans peers levers large
fi
