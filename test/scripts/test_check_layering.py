"""The layering check finds what it is there to find."""
import pytest

import check_layering


@pytest.mark.parametrize("path, header, reason", [
    ("compiler/passes/fuse/Fuse.cpp", "compiler/passes/plan/Passes.h", "compiler/passes/fuse may only include"),
    ("compiler/passes/fuse/Fuse.cpp", "onnx/defs/schema.h", "which only compiler/import"),
    ("compiler/pipeline/Pipeline.cpp", "nvrtc.h", "which only compiler/codegen/cuda"),
    ("runtime_lib/format/Reader.cpp", "llvm/ADT/StringRef.h", "which only compiler"),
    ("runtime_lib/src/Engine.cpp", "cuda.h", "which only runtime_lib/src/cuda"),
    ("runtime_lib/src/cpu/Driver.cpp", "cublasLt.h", "which only runtime_lib/src/cuda"),
    ("compiler/import/Importer.cpp", "compiler/pipeline/Pipeline.h", "compiler/import may only include"),
    ("tools/ogc-rt/main.cpp", "compiler/bundle/BundleWriter.h", "tools/ogc-rt may only include"),
])
def test_forbidden_include(path, header, reason):
    assert reason in check_layering.check_include(path, header)


@pytest.mark.parametrize("path, header", [
    ("compiler/passes/fuse/Fuse.cpp", "compiler/dialect/kern/Kern.h"),
    ("compiler/passes/fuse/Fuse.cpp", "compiler/passes/fuse/Passes.h"),
    ("compiler/passes/fuse/Fuse.cpp", "mlir/IR/Builders.h"),
    ("compiler/import/Importer.cpp", "onnx/onnx_pb.h"),
    ("runtime_lib/src/cuda/Driver.cpp", "cuda.h"),
    ("runtime_lib/src/Engine.cpp", "ogc/runtime.h"),
    ("runtime_lib/src/Engine.cpp", "vector"),
])
def test_allowed_include(path, header):
    assert check_layering.check_include(path, header) is None


def check(tmp_path, path, text):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return check_layering.check_file(str(tmp_path), path)


def test_long_files(tmp_path):
    errors, warnings = check(tmp_path, "compiler/import/A.cpp", "\n" * 601)
    assert len(errors) == 1 and "601 lines" in errors[0]
    errors, warnings = check(tmp_path, "compiler/analysis/B.cpp", "\n" * 401)
    assert not errors and "401 lines" in warnings[0]
    errors, _ = check(tmp_path, "compiler/codegen/CMakeLists.txt", "\n" * 601)
    assert len(errors) == 1
    assert check(tmp_path, "test/conformance/status.txt", "\n" * 2000) == ([], [])  # generated


def test_folder_named_utils(tmp_path):
    errors, _ = check(tmp_path, "compiler/utils/A.cpp", "\n")
    assert "no folder is named utils" in errors[0]


def test_includes_are_read(tmp_path):
    errors, _ = check(tmp_path, "runtime_lib/src/A.cpp", '#include <vector>\n# include "mlir/IR/Builders.h"\n')
    assert errors == ["runtime_lib/src/A.cpp: includes mlir/IR/Builders.h, which only compiler, tools/ogc, tools/ogc-opt, cmake may include"]


def test_documented_folders(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/architecture.md").write_text("| `compiler/dialect/{kern,cg}` | | | MLIR |\n")
    missing = check_layering.check_documentation(str(tmp_path))
    assert "docs/architecture.md: the table lacks compiler/import" in missing
    assert not any(line.endswith("dialect/kern") for line in missing)
