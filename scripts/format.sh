#!/usr/bin/env bash
# usage: format.sh check|fix     Checks or fixes the layout of all C++ and CUDA text with the pinned clang-format.
set -euo pipefail
source "$(dirname "$0")/env.sh"
cd "$OGC_ROOT"
case "${1:-}" in
check) options=(--dry-run --Werror) ;;
fix) options=(-i) ;;
*)
  echo "usage: format.sh check|fix" >&2
  exit 2
  ;;
esac
git ls-files -z --cached --others --exclude-standard '*.cpp' '*.h' '*.hpp' '*.c' '*.cuh' |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 -r -n 16 -P 2 clang-format-22 "${options[@]}"
