#!/usr/bin/env python3
"""Checks who includes whom, file sizes and folder names; see docs/architecture.md ("may include") for the rules in words.

usage: check_layering.py [ROOT]
Prints one line a violation and exits with 1 when there is one; warnings do not fail.
"""
import fnmatch
import os
import re
import subprocess
import sys

DIALECTS = ["compiler/dialect/onnx", "compiler/dialect/kern", "compiler/dialect/cg"]
IR_FACTS = DIALECTS + ["compiler/analysis"]
PHASES = [f"compiler/passes/{phase}" for phase in ("normalize", "specialize", "lower", "fuse", "plan", "verify")]
CODEGEN = ["compiler/codegen/scalar", "compiler/dialect/kern", "compiler/analysis"]
RUNTIME = ["runtime_lib/format", "runtime_lib/include"]
COMPILER = IR_FACTS + PHASES + CODEGEN + ["compiler/import", "compiler/codegen/cpu", "compiler/codegen/cuda", "compiler/bundle",
                                          "compiler/pipeline"]

# Folder -> folders of ours whose headers its files may include (its own always). The longest matching folder counts.
MAY_INCLUDE = {
    "compiler/dialect/onnx": [],
    "compiler/dialect/kern": [],
    "compiler/dialect/cg": [],
    "compiler/import": ["compiler/dialect/onnx"],
    "compiler/analysis": DIALECTS,
    **{phase: IR_FACTS for phase in PHASES},
    "compiler/codegen/scalar": ["compiler/dialect/kern", "compiler/analysis"],
    "compiler/codegen/cpu": CODEGEN,
    "compiler/codegen/cuda": CODEGEN,
    "compiler/bundle": ["compiler/analysis", "compiler/dialect/cg", "compiler/dialect/kern", "runtime_lib/format"],
    "compiler/pipeline": COMPILER + ["runtime_lib/format"],
    "runtime_lib/format": [],
    "runtime_lib/include": [],
    "runtime_lib/src": RUNTIME + ["runtime_lib/src/select"],
    "runtime_lib/src/select": ["runtime_lib/format"],
    "runtime_lib/src/cpu": RUNTIME + ["runtime_lib/src"],
    "runtime_lib/src/cuda": RUNTIME + ["runtime_lib/src"],
    "tools/common": RUNTIME + ["runtime_lib/src", "runtime_lib/src/select"],
    "tools/ogc": ["compiler/bundle", "compiler/pipeline", "runtime_lib/format", "tools/common"],
    "tools/ogc-opt": COMPILER,
    "tools/ogc-rt": ["tools/common"],
}

# Headers of others -> the only folders that may include them.
ONLY_IN = {
    "onnx/*": ["compiler/import", "compiler/dialect/onnx"],
    "google/protobuf/*": ["compiler/import", "compiler/dialect/onnx"],
    "*.pb.h": ["compiler/import", "compiler/dialect/onnx"],
    "nvrtc.h": ["compiler/codegen/cuda"],
    "cublas*.h": ["runtime_lib/src/cuda"],
    "cuda.h": ["runtime_lib/src/cuda"],
    "cuda_runtime*.h": ["runtime_lib/src/cuda"],
    "mlir/*": ["compiler", "tools/ogc", "tools/ogc-opt", "cmake"],
    "llvm/*": ["compiler", "tools/ogc", "tools/ogc-opt", "cmake"],
    "lld/*": ["compiler/codegen/cpu"],
    "flatbuffers/*": ["runtime_lib/format", "compiler/bundle"],
    "CLI/*": ["tools"],
}

OURS = ("compiler/", "runtime_lib/", "tools/")
CODE = (".cpp", ".h", ".hpp", ".c")
SIZED = CODE + (".td", ".cuh", ".fbs", ".py", ".sh", ".cmake", ".mlir", ".txt")
RECORDS = ("test/conformance/status.txt",)  # written by a tool, a line a case
WARN_LINES, MAX_LINES = 400, 600
# CUDA headers that the compiler ships as text: they are compiled by NVRTC, not by the host compiler.
DEVICE_TEXT = "compiler/codegen/cuda/device"

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def owner(path):
    """The longest folder of MAY_INCLUDE that holds the path, or None."""
    return max((folder for folder in MAY_INCLUDE if inside(path, folder)), key=len, default=None)


def check_include(path, header):
    """Why `path` may not include `header`, or None."""
    for pattern, folders in ONLY_IN.items():
        if fnmatch.fnmatch(header, pattern) and not any(inside(path, folder) for folder in folders):
            return f"includes {header}, which only {', '.join(folders)} may include"
    if "/" not in header and header.endswith((".h", ".hpp", ".inc")) and os.path.exists(os.path.join(os.path.dirname(path), header)):
        return f"includes {header} by its bare name; write its path from the top of the tree"
    # The public header of the runtime is found as ogc/runtime.h.
    target = "runtime_lib/include/" + header if header.startswith("ogc/") else header
    if not target.startswith(OURS):
        return None
    mine, theirs = owner(path), owner(target)
    if mine is None:
        return f"{path} lies in no folder that scripts/check_layering.py knows"
    if theirs == mine or theirs in MAY_INCLUDE[mine]:
        return None
    return f"includes {header}, but {mine} may only include {', '.join(MAY_INCLUDE[mine]) or 'its own headers'}"


def check_file(root, path):
    """Returns (errors, warnings) of one file."""
    errors, warnings = [], []
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        text = file.read()
    lines = text.count("\n")
    if path.endswith(SIZED) and path not in RECORDS and lines > WARN_LINES:
        (errors if lines > MAX_LINES else warnings).append(f"{path}: {lines} lines (more than {WARN_LINES} is too long, {MAX_LINES} the limit)")
    if any("util" == part or "utils" == part for part in path.lower().split("/")[:-1]):
        errors.append(f"{path}: no folder is named utils; name it after what it holds")
    if path.endswith(CODE) and path.startswith(OURS) and not inside(path, DEVICE_TEXT):
        for header in INCLUDE.findall(text):
            reason = check_include(path, header)
            if reason:
                errors.append(f"{path}: {reason}")
    return errors, warnings


def check_documentation(root):
    """Every folder of the rules must stand in the table of docs/architecture.md."""
    path = os.path.join(root, "docs/architecture.md")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        cells = " ".join(re.findall(r"^\| `([^`]+)`", file.read(), re.MULTILINE))
    named = set()
    for cell in cells.split():
        group = re.match(r"(.*)\{(.*)\}$", cell)
        named.update(group.group(1) + name for name in group.group(2).split(",")) if group else named.add(cell)
    return [f"docs/architecture.md: the table lacks {folder}" for folder in MAY_INCLUDE
            if not any(fnmatch.fnmatch(folder, pattern) or inside(folder, pattern) for pattern in named)
            and folder != "runtime_lib/include"]


def tracked_files(root):
    output = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True,
                            check=True, text=True).stdout
    return sorted(path for path in output.split("\0") if path and os.path.exists(os.path.join(root, path)))


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
    os.chdir(root)
    errors, warnings = check_documentation(root), []
    files = tracked_files(root)
    for path in files:
        found = check_file(root, path)
        errors += found[0]
        warnings += found[1]
    for line in warnings:
        print("warning:", line)
    for line in errors:
        print("error:", line)
    print(f"layering: {len(files)} files, {len(errors)} errors, {len(warnings)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
