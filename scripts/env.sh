# Sourced by the other scripts (and by hand, for the PATH): where the tree, the cache folder and the Python environment are, and two small helpers.

OGC_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export OGC_ROOT
export OGC_CACHE_DIR=${OGC_CACHE_DIR:-$HOME/.cache/ogc}
# One environment for each set of requirements, outside the tree, so that a new clone has nothing to install.
OGC_VENV=$OGC_CACHE_DIR/venv-$( (cat "$OGC_ROOT/scripts/requirements.txt"; python3 -V) | sha256sum | cut -c1-12)
export OGC_VENV
export PATH="$OGC_VENV/bin:$PATH"
export OGC_ONNX_VERSION=1.23.2
# The models that several tests need, one folder above the tree; tests that need it are skipped where it is missing.
export OGC_SHARED=${OGC_SHARED:-$OGC_ROOT/../shared}

die() {
  echo "error: $*" >&2
  exit 1
}

# quietly LABEL COMMAND...: runs the command into a log, and prints the end of the log only when the command fails.
quietly() {
  local label=$1 log
  shift
  mkdir -p "$OGC_CACHE_DIR/logs"
  log=$OGC_CACHE_DIR/logs/$label.log
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    die "$label failed; the whole log is $log"
  fi
}
