#!/usr/bin/env bash
# Installs everything that a build needs on a Debian 12 machine and does nothing, quickly, when all is there:
#   Debian packages (packages.txt), a Python environment (requirements.txt), the onnx C++ libraries, CUDA headers and NVRTC.
# The last three go into the cache folder, $OGC_CACHE_DIR or ~/.cache/ogc.
set -euo pipefail
source "$(dirname "$0")/env.sh"

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "need root or sudo for: $*"
  fi
}

install_packages() {
  local wanted missing
  wanted=$(grep -v '^#' "$OGC_ROOT/scripts/packages.txt")
  command -v dpkg-query >/dev/null || die "not a Debian system; install the equivalents of:" $wanted
  # shellcheck disable=SC2086
  missing=$(comm -23 <(echo "$wanted" | sort) \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | awk '$1 == "installed" { print $2 }' | sort -u))
  [ -n "$missing" ] || return 0
  echo "installing Debian packages:" $missing
  quietly apt-update as_root apt-get update
  # shellcheck disable=SC2086
  quietly apt-install as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}

install_python() {
  [ ! -e "$OGC_VENV/.complete" ] || return 0
  echo "installing Python packages into $OGC_VENV"
  rm -rf "$OGC_VENV"
  quietly venv python3 -m venv "$OGC_VENV"
  quietly pip "$OGC_VENV/bin/python" -m pip install --disable-pip-version-check -r "$OGC_ROOT/scripts/requirements.txt"
  touch "$OGC_VENV/.complete"
}

mkdir -p "$OGC_CACHE_DIR"
exec 9>"$OGC_CACHE_DIR/setup.lock" # one set-up at a time
flock 9
install_packages
install_python
"$OGC_ROOT/scripts/build_onnx.sh"
"$OGC_ROOT/scripts/fetch_cuda.sh"
