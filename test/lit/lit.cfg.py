# Configuration of the lit tests. Loaded through lit.site.cfg.py of a build folder.
import os

import lit.formats

config.name = "ogc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "inputs"]
config.test_source_root = os.path.dirname(__file__)

shared = os.environ.get("OGC_SHARED") or os.path.join(config.ogc_source_dir, "..", "shared")

config.substitutions.append(("%shared", os.path.normpath(shared)))
config.substitutions.append(("%python", config.ogc_python))
# The tools are found through PATH: ours first, then FileCheck, not, split-file and count of LLVM.
config.environment["PATH"] = os.pathsep.join([config.ogc_tools_dir, config.ogc_llvm_tools_dir, os.environ.get("PATH", "")])
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
for name in ("HOME", "OGC_CACHE_DIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# What a test may ask for with REQUIRES.
if os.path.isdir(shared):
    config.available_features.add("shared")
if any(os.path.exists(os.path.join(config.ogc_cuda_dir, lib, "libnvrtc.so.13")) for lib in ("lib64", "lib")):
    config.available_features.add("cuda-toolkit")
for tool in ("ogc", "ogc-rt"):
    if os.path.exists(os.path.join(config.ogc_tools_dir, tool)):
        config.available_features.add(tool)
