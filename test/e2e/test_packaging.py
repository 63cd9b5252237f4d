"""The runtime in projects of others: as a package that was installed, and as a folder of theirs."""
import os
import subprocess

import pytest
from onnx import TensorProto, helper

import harness

USE = {
    "package": "find_package(ogc 0.1 REQUIRED)\n",
    "folder": f"add_subdirectory({harness.ROOT} ogc EXCLUDE_FROM_ALL)\n",
}


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", USE)
def test_project_that_uses_the_runtime(ogc, tmp_path, way):
    project, build = tmp_path / "project", tmp_path / "build"
    project.mkdir()
    example = harness.ROOT / "examples/run_bundle.cpp"
    (project / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES C CXX)\n{USE[way]}"
                                            f"add_executable(app {example})\ntarget_link_libraries(app PRIVATE ogc::runtime)\n")
    options = ["-G", "Ninja", "-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_BUILD_TYPE=Release"]
    if way == "package":
        run("cmake", "--install", harness.ROOT / os.environ.get("OGC_BUILD_DIR", "build"), "--prefix", tmp_path / "prefix")
        for installed in ("ogc", "ogc-rt"):
            assert run(tmp_path / "prefix/bin" / installed, "--version").startswith(installed + " ")
        assert list((tmp_path / "prefix").rglob("libogc_runtime.so"))
        options.append(f"-DCMAKE_PREFIX_PATH={tmp_path}/prefix")
    run("cmake", "-S", project, "-B", build, *options)
    run("cmake", "--build", build, "--target", "app")
    model = harness.make_model([helper.make_node("Neg", ["x"], ["y"])], {"x": (TensorProto.FLOAT, (2,))}, {"y": (TensorProto.FLOAT, (2,))})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    program = next(path for path in (build / "app", build / "bin/app") if path.exists())
    assert "graph 'default' on cpu" in run(program, ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), "cpu")


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_examples_take_states(ogc, tmp_path, language):
    shape = (TensorProto.FLOAT, (2,))
    model = harness.make_model([helper.make_node("Add", ["past", "x"], ["present"]), helper.make_node("Exp", ["present"], ["y"])],
                               {"past": shape, "x": shape}, {"present": shape, "y": shape})
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    bundle = ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc", state="past=present")
    said = run(harness.BIN / f"example-run-bundle-{language}", bundle)
    assert ("y: 8 bytes, first value 1" if language == "c" else "the outputs ") in said
