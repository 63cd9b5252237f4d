"""What cannot be done is refused: one line of reason, exit code 1 (2 for usage), nothing left behind."""
import os
import re
import resource
import shutil
import signal
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT


def small_model(shape=("n", 4)):
    """relu(x @ w + b) with a free first dimension."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Add", ["m", "b"], ["s"], name="sum"),
             helper.make_node("Relu", ["s"], ["y"], name="activation")]
    weights = {"w": np.arange(12, dtype=np.float32).reshape(4, 3), "b": np.ones(3, np.float32)}
    return harness.make_model(nodes, {"x": (F32, shape)}, {"y": (F32, (shape[0], 3))}, weights)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.onnx"
    onnx.save(small_model(), path)
    return path


@pytest.fixture(scope="module")
def bundle(ogc, tmp_path_factory):
    """A valid bundle for the cpu."""
    folder = tmp_path_factory.mktemp("bundle")
    onnx.save(small_model(), folder / "small.onnx")
    return ogc.compile(folder / "small.onnx", folder / "small.ogc", "x=2x4")


def refused(call, *words, code=1, lines=1):
    """Runs the call, which must fail with the given exit code and a reason of so many lines (None: any) that holds all the words."""
    with pytest.raises(harness.OgcError) as caught:
        call()
    message = caught.value.message
    assert caught.value.code == code, message
    assert lines is None or len(message.splitlines()) == lines, message
    assert message.strip() and "Traceback" not in message and "Stack dump" not in message
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"
    return message


def compile_refused(ogc, model, tmp_path, *words, shapes="x=2x4", **options):
    """The same for a compilation, which must leave its output folder as it was."""
    folder = tmp_path / "out"
    folder.mkdir()
    refused(lambda: ogc.compile(model, folder / "m.ogc", shapes, **options), *words)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("content", [b"", b"this is no model\n" * 50, b"\x08\x0a\x12\xff\xff\xff\xff\x0f"], ids=["empty", "text", "garbage"])
def test_not_a_model(ogc, tmp_path, content):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    compile_refused(ogc, path, tmp_path, "bad.onnx")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_truncated_model(ogc, model, tmp_path, part):
    data = model.read_bytes()
    model.write_bytes(data[:int(len(data) * part)])
    compile_refused(ogc, model, tmp_path, "small.onnx")


def test_missing_model(ogc, tmp_path):
    compile_refused(ogc, tmp_path / "absent.onnx", tmp_path, "absent.onnx")


def test_unknown_operators_are_all_named(ogc, tmp_path):
    nodes = [helper.make_node("Frobnicate", ["x"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="fine"),
             helper.make_node("Defenestrate", ["b"], ["y"], name="second")]
    path = tmp_path / "unknown.onnx"
    onnx.save(harness.make_model(nodes, {"x": (F32, (2, 4))}, {"y": (F32, (2, 4))}), path)
    message = refused(lambda: ogc.compile(path, tmp_path / "m.ogc"), "Frobnicate", "first", "Defenestrate", "second", lines=None)
    assert "fine" not in message
    assert not (tmp_path / "m.ogc").exists()


def test_unknown_domain(ogc, tmp_path):
    path = tmp_path / "domain.onnx"
    node = helper.make_node("Gadget", ["x"], ["y"], name="thing", domain="org.example")
    onnx.save(harness.make_model([node], {"x": (F32, (2, 4))}, {"y": (F32, (2, 4))}, domains=["org.example"]), path)
    compile_refused(ogc, path, tmp_path, "Gadget", "org.example", shapes=())


@pytest.mark.parametrize("shapes, words", [
    ("wrong=2x4", ["wrong", "x"]),
    ("x=2x4x1", ["x", "rank"]),
    ("x=2x5", ["x", "5", "4"]),
    ("x=-1x4", ["x", "-1"]),
    ("x=2xfour", ["four"]),
    ("x=", ["x"]),
    ("nonsense", ["nonsense"]),
    ((), ["x"]),
], ids=["name", "rank", "value", "negative", "text", "empty", "no name", "missing"])
def test_wrong_shapes(ogc, model, tmp_path, shapes, words):
    folder = tmp_path / "out"
    folder.mkdir()
    with pytest.raises(harness.OgcError) as caught:
        ogc.compile(model, folder / "m.ogc", shapes)
    assert caught.value.code in (1, 2) and len(caught.value.message.splitlines()) == 1, caught.value.message
    for word in words:
        assert word in caught.value.message
    assert not list(folder.iterdir())


def test_output_in_missing_folder(ogc, model, tmp_path):
    refused(lambda: ogc.compile(model, tmp_path / "absent/m.ogc", "x=2x4"), "absent")
    assert not (tmp_path / "absent").exists()


def test_read_only_output(ogc, model, tmp_path):
    if os.geteuid() == 0:  # root may write anywhere but where the kernel refuses
        folder = "/proc/self"
    else:
        folder = tmp_path / "readonly"
        folder.mkdir()
        folder.chmod(0o555)
    refused(lambda: ogc.compile(model, f"{folder}/m.ogc", "x=2x4"), "m.ogc")
    assert not os.path.exists(f"{folder}/m.ogc")


def test_failure_keeps_older_output(ogc, model, tmp_path):
    old = tmp_path / "m.ogc"
    old.write_text("older")
    with pytest.raises(harness.OgcError):
        ogc.compile(model, old, "x=2x5")
    assert old.read_text() == "older"


def external_model(tmp_path, location, data=b"\0" * 48):
    """The small model with its weights in another file."""
    model = small_model()
    tensor = next(t for t in model.graph.initializer if t.name == "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": "48"}.items():
        tensor.external_data.add(key=key, value=value)
    folder = tmp_path / "model"
    folder.mkdir()
    if data is not None:
        (folder / location).write_bytes(data)
    # Not through onnx.save, which would read the tensor first.
    (folder / "external.onnx").write_bytes(model.SerializeToString())
    return folder / "external.onnx"


def test_external_data(ogc, tmp_path):
    path = external_model(tmp_path, "weights.bin", np.arange(12, dtype=np.float32).tobytes())
    bundle = ogc.compile(path, tmp_path / "m.ogc", "x=2x4")
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(ogc.run(bundle, {"x": x})["y"], np.maximum(x @ np.arange(12).reshape(4, 3) + 1, 0), rtol=1e-6)


@pytest.mark.parametrize("location, data", [("../outside.bin", b"\0" * 48), ("absent.bin", None), ("short.bin", b"\0" * 47), ("empty.bin", b"")],
                         ids=["outside the folder", "missing", "short", "empty"])
def test_bad_external_data(ogc, tmp_path, location, data):
    path = external_model(tmp_path, location, data)
    compile_refused(ogc, path, tmp_path, location.split("/")[-1])


@pytest.mark.parametrize("arguments", [
    [], ["unknown"], ["compile"], ["compile", "m.onnx", "--no-such-option"], ["compile", "m.onnx", "-o", "m.ogc", "--precision", "fp5"],
    ["run"], ["run", "m.ogc", "--device"], ["bench", "m.ogc", "--iterations", "many"], ["inspect", "a", "b", "c"],
], ids=" ".join)
def test_usage(ogc, arguments):
    refused(lambda: ogc(*arguments), code=2)


@pytest.mark.parametrize("arguments, parts", [
    (["frob", "m.onnx"], ["'frob'", "compile, explain, plan"]), (["compile", "m.onnx", "--frob"], ["--frob", "ogc compile --help"]),
    (["run", "m.ogc", "--seed", "-1"], ["--seed", "'-1' is negative"]), (["bench", "m.ogc", "--warmup", "-1"], ["--warmup", "negative"]),
    (["verify", "m.ogc", "--random-orders", "-1"], ["--random-orders", "negative"]), (["verify", "m.ogc", "--tolerance", "nan"], ["'nan'"]),
    (["compile", "m.onnx", "--memory", "-5MB"], ["--memory", "'-5MB' is negative"]),
    (["bench", "m.ogc", "--iterations", "0"], ["--iterations: value 0 not in range"]), (["run", "m.ogc", "--seed", "x"], ["error: could not"]),
    (["compile", "m.onnx", "--precision", "FP64"], ["--precision: FP64 not in"]),
    (["verify", "m.ogc", "--random-calls", "9", "--nodes"], ["--random-calls excludes --nodes"]),
    (["verify", "m.ogc", "--random-calls", "9", "--graph", "a"], ["--graph excludes --random-calls"]),
    (["inspect", "m.ogc", "--ir", "--html", "m.html"], ["--html excludes --ir"]),
    (["compile", "--shapes", "x=2x4", "m.onnx", "-o", "m.ogc"], ["model is required: --shapes takes all words behind it, so the model goes in front"]),
    (["compile", "-o", "m.ogc"], ["model is required (ogc"]),
    (["verify", "m.ogc", "--seconds", "9"], ["--seconds requires --random-calls"]),
], ids=lambda value: " ".join(value))
def test_usage_says_what(ogc, arguments, parts):
    """Also: no word of the parser's begins with upper case, and no negative number is taken for a large one."""
    refused(lambda: ogc(*arguments), *parts, code=2)


@pytest.mark.parametrize("target", ["sm_1", "sm_999", "gpu", "", "sm_90,tpu"])
def test_unknown_target(ogc, model, tmp_path, target):
    refused(lambda: ogc.compile(model, tmp_path / "m.ogc", "x=2x4", target=target), code=2)
    assert not (tmp_path / "m.ogc").exists()


def test_unknown_processor(ogc, model, tmp_path):
    refused(lambda: ogc.compile(model, tmp_path / "m.ogc", "x=2x4", cpu="foo"), "'foo'")


@pytest.mark.parametrize("program", ["ogc", "ogc-rt"])
def test_version(program):
    done = subprocess.run([harness.BIN / program, "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and re.fullmatch(program + r" \d+\.\d+\.\d+\n", done.stdout)


def test_full_edges_alone(ogc, tmp_path):
    assert re.search(r"--no-pdl +full edges only", ogc("compile", "--help"))
    nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("MatMul", ["s", "w"], ["y"])]
    onnx.save(harness.make_model(nodes, {"x": (F32, (2, 64))}, {"y": (F32, (2, 64))}, {"w": np.eye(64, dtype=np.float32)}), tmp_path / "m.onnx")
    for flags, kinds in (((), (0, 1)), (("--no-pdl",), (1, 0))):
        ogc("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ogc", "--target", "cpu", *flags)
        edges = ogc.inspect(tmp_path / "m.ogc")["graphs"][0]["edges"]
        assert (edges["full"], edges["programmatic"]) == kinds


def test_output_that_is_listed_twice(ogc, tmp_path):
    twice = harness.make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": (F32, (2,))}, {"y": (F32, (2,))})
    twice.graph.output.append(twice.graph.output[0])
    (tmp_path / "m.onnx").write_bytes(twice.SerializeToString())
    refused(lambda: ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), "output 'y'", "twice")


def test_names_with_line_ends(ogc, tmp_path):
    """A message stays one line whatever the model's names are."""
    node = helper.make_node("Relu", ["no\nsuch\tthing"], ["y"], name="a\nb")
    (tmp_path / "m.onnx").write_bytes(harness.make_model([node], {"x": (F32, (2,))}, {"y": (F32, (2,))}).SerializeToString())
    refused(lambda: ogc.compile(tmp_path / "m.onnx", tmp_path / "m.ogc"), "Relu", "no such thing")


COMMANDS = [["inspect"], ["run", "--device", "cpu", "--output-dir", "unused"], ["bench", "--device", "cpu"], ["verify", "--device", "cpu"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
@pytest.mark.parametrize("damage", ["empty", "text", "half", "tail", "flipped"])
def test_bad_bundle(ogc, bundle, tmp_path, command, damage):
    data = bytearray(bundle.read_bytes())
    if damage == "flipped":  # a byte of a section: between sections there are only zeros
        data[next(at for at in range(len(data) // 2, len(data)) if data[at])] ^= 0x40
    path = tmp_path / "bad.ogc"
    path.write_bytes({"empty": b"", "text": b"no bundle\n" * 500, "half": data[:len(data) // 2], "tail": data[:-1], "flipped": data}[damage])
    refused(lambda: ogc(command[0], path, *command[1:], cwd=tmp_path), "bad.ogc")
    assert [file.name for file in tmp_path.iterdir()] == ["bad.ogc"]


def test_every_truncation_is_refused(ogc, bundle, tmp_path):
    data = bundle.read_bytes()
    path = tmp_path / "bad.ogc"
    for size in range(1, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:size])
        refused(lambda: ogc("inspect", path), "bad.ogc")


def test_bundle_for_another_device(ogc, model, tmp_path):
    only_gpu = ogc.compile(model, tmp_path / "gpu.ogc", "x=2x4", target="sm_90")
    refused(lambda: ogc.run(only_gpu, {"x": np.zeros((2, 4), np.float32)}), "cpu")


def test_outputs_are_no_inputs(ogc, model, tmp_path):
    """Whatever a command reads is still there after it."""
    onnx.save(small_model(), tmp_path / "e.onnx", save_as_external_data=True, location="e.bin", size_threshold=0)
    shutil.copy(model, tmp_path / "b.weights")
    bundle = ogc.compile(model, tmp_path / "m.ogc", "n=2")
    os.link(tmp_path / "e.bin", tmp_path / "link")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    sizes = ["--shapes", "n=2", "--target", "cpu"]
    for name in ("e.bin", "link"):
        refused(lambda name=name: ogc("compile", tmp_path / "e.onnx", "-o", tmp_path / name, *sizes), "e.bin' cannot be read: it is the output")
    refused(lambda: ogc("compile", tmp_path / "e.onnx", "-o", tmp_path / "e.bin", "--stop-after", "lower", *sizes), "e.bin' cannot be read: it is the output")
    refused(lambda: ogc("compile", tmp_path / "b.weights", "-o", tmp_path / "b", "--weights", "external", *sizes), "b.weights': it is the model")
    refused(lambda: ogc("refit", bundle, "--weights", tmp_path / "e.onnx", "-o", tmp_path / "e.bin"), "e.bin' cannot be read: it is the output")
    refused(lambda: ogc("inspect", bundle, "--html", bundle), "m.ogc': it is the bundle")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def with_small_files(most, *command):
    """Runs a command that cannot write files of more than `most` bytes, as on a disk that is full."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=limit, restore_signals=False)


@pytest.mark.parametrize("most, options, name", [
    (1024, ["--stop-after", "lower", "-o", "ir.mlir"], "ir.mlir"), (1024, ["--dump-dir", "dump", "-o", "m.ogc"], "dump/1-import.mlir"),
    (1 << 19, ["-o", "m.ogc"], "m.ogc"), (1 << 19, ["--weights", "external", "-o", "m.ogc"], "m.ogc")], ids=["ir", "dump", "bundle", "weights"])
def test_full_disk(ogc, tmp_path, most, options, name):
    """One line that names the file, and nothing half written."""
    nodes = [helper.make_node("MatMul", ["v0", "w"], ["v1"])] + [helper.make_node("Tanh", [f"v{i}"], [f"v{i + 1}"]) for i in range(1, 16)]
    weight = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    onnx.save(harness.make_model(nodes, {"v0": (F32, (4, 512))}, {"v16": (F32, (4, 512))}, {"w": weight}), tmp_path / "m.onnx")
    words = [str(tmp_path / word) if word in ("ir.mlir", "m.ogc", "dump") else word for word in options]
    done = with_small_files(most, ogc.program, "compile", tmp_path / "m.onnx", "--target", "cpu", *words)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"error: cannot write '{tmp_path / name}': File too large"), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == (["dump", "m.onnx"] if "dump" in options else ["m.onnx"])


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a GPU")
@pytest.mark.parametrize("arguments", [["inspect", "--json"], ["inspect", "--ir"], ["run"]])
def test_full_standard_output(ogc, bundle, arguments):
    """What could not be written is an error, whoever writes."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([ogc.program, arguments[0], bundle, *arguments[1:]], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "error: cannot write to standard output\n")


def test_no_gpu(ogc, bundle):
    refused(lambda: ogc.run(bundle, {"x": np.zeros((2, 4), np.float32)}, device="cuda:0"), "cuda")


@pytest.mark.parametrize("inputs, words", [
    ({"z": np.zeros((2, 4), np.float32)}, ["z"]),
    ({"x": np.zeros((2, 5), np.float32)}, ["x", "2x5", "2x4"]),
    ({"x": np.zeros(8, np.float32)}, ["x", "8", "2x4"]),
    ({"x": np.zeros((2, 4), np.float64)}, ["x", "f"]),
], ids=["name", "shape", "rank", "type"])
def test_wrong_inputs(ogc, bundle, inputs, words):
    refused(lambda: ogc.run(bundle, inputs), *words)


def test_unknown_graph(ogc, bundle):
    refused(lambda: ogc.run(bundle, {}, graph="absent"), "absent")


def test_input_that_is_no_array(ogc, bundle, tmp_path):
    (tmp_path / "x.npy").write_text("no array")
    refused(lambda: ogc("run", bundle, "--device", "cpu", "--input", f"x={tmp_path}/x.npy", "--output-dir", tmp_path / "out"), "x.npy")
    assert not (tmp_path / "out").exists()
