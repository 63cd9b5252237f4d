# Sourced by the scripts that run on a machine with a GPU: unpacks the programs of gpu/ and says where things are.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${OGC_GPU_WORK:-/tmp/ogc-gpu}
[ -e "$root/gpu/ogc.xz" ] || { echo "error: $root/gpu is missing; make it with scripts/gpu_pack.sh" >&2; exit 1; }
mkdir -p "$work/bin"
for program in "$root"/gpu/*.xz; do
  target=$work/bin/$(basename "$program" .xz)
  python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' "$program" "$target"
  chmod +x "$target"
done
export OGC_SHARED=$root/gpu OGC_CACHE_DIR=$work/cache OGC_BUILD_DIR=$work
if [ -z "${OGC_GPU_PREFLIGHT:-}" ] && command -v nvidia-smi >/dev/null; then
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)
  python3 "$root/scripts/gpu_preflight.py" "sm_${capability//./}"
  export OGC_GPU_PREFLIGHT=done
fi
