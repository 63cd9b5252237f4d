"""What the end-to-end tests share: running the ogc program, making models and inputs, and comparing with onnxruntime."""
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("OGC_SHARED") or ROOT / ".." / "shared")
CACHE = Path(os.environ.get("OGC_CACHE_DIR") or Path.home() / ".cache/ogc")
BIN = ROOT / os.environ.get("OGC_BUILD_DIR", "build") / "bin"

TYPES = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.DOUBLE: np.float64, TensorProto.INT64: np.int64,
         TensorProto.INT32: np.int32, TensorProto.INT8: np.int8, TensorProto.UINT8: np.uint8, TensorProto.BOOL: np.bool_}


def first_line(*command):
    """What a command prints first, or "unknown"."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "unknown"


class OgcError(Exception):
    """A run of ogc that failed: `code` is the exit code, `message` what it wrote to standard error."""

    def __init__(self, arguments, done):
        super().__init__(f"ogc {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}{done.stdout}")
        self.code, self.message = done.returncode, done.stderr


class Ogc:
    """The command-line program, one method a subcommand; every failure raises OgcError."""

    def __init__(self, program=BIN / "ogc"):
        self.program = str(program)

    def __call__(self, *arguments, timeout=900, cwd=None):
        arguments = [str(argument) for argument in arguments]
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, cwd=cwd)
        if done.returncode:
            raise OgcError(arguments, done)
        return done.stdout

    def compile(self, model, bundle, shapes=(), target="cpu", precision="fp32", **options):
        """`shapes` is the text of one --shapes, or a list of them; other options by name, e.g. cache_dir=..."""
        arguments = ["compile", model, "-o", bundle, "--target", target, "--precision", precision]
        for text in [shapes] if isinstance(shapes, str) else shapes:
            arguments += ["--shapes", text]
        for name, value in options.items():
            arguments += ["--" + name.replace("_", "-"), value]
        self(*arguments)
        return Path(bundle)

    def run(self, bundle, inputs, device="cpu", graph=None):
        """Runs one graph on the given arrays and returns its outputs by name."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["run", bundle, "--device", device, "--output-dir", folder]
            for number, (name, array) in enumerate(inputs.items()):
                path = Path(folder, f"input{number}.npy")
                np.save(path, np.array(array, order="C"))
                arguments += ["--input", f"{name}={path}"]
            if graph is not None:
                arguments += ["--graph", graph]
            self(*arguments)
            found = self.inspect(bundle)["graphs"]
            names = [output["name"] for output in next(g for g in found if graph is None or g["id"] == graph)["outputs"]]
            return {name: np.load(Path(folder, file)) for name, file in zip(names, file_names(names))}

    def inspect(self, bundle):
        return json.loads(self("inspect", bundle, "--json"))

    def bench(self, bundle, *options, device="cpu", iterations=5):
        return json.loads(self("bench", bundle, "--device", device, "--iterations", iterations, "--json", *options))

    def verify(self, bundle, *options, device="cpu"):
        return self("verify", bundle, "--device", device, *options)


def file_names(outputs):
    """The files that `ogc run` writes for the outputs: what no file name should hold becomes '_', and equal names get a number."""
    files, taken = [], set()
    for output in outputs:
        base = re.sub(rb"[^A-Za-z0-9._-]", b"_", output.encode()[:200]).decode()  # a byte a letter
        base = "_" + base[1:] if not base or base[0] == "." else base
        number, file = 2, base
        while file.lower() in taken:
            file, number = f"{base}_{number}", number + 1
        taken.add(file.lower())
        files.append(file + ".npy")
    return files


def relative_error(actual, expected):
    """Relative L2 error; integers and booleans must be equal, so that any difference there is infinite. NaN where NaN is expected is right."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    assert actual.dtype == expected.dtype, f"type {actual.dtype}, expected {expected.dtype}"
    if expected.dtype.kind not in "fc":
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    a, e = (np.where(same & ~np.isfinite(expected), 0, x).astype(np.float64) for x in (actual, expected))
    if not e.size:
        return 0.0
    difference, norm = np.linalg.norm(a - e), np.linalg.norm(e)
    return float(difference if norm == 0 else difference / norm)


def check_outputs(actual, expected, tolerance):
    assert list(actual) == list(expected)
    errors = {name: relative_error(actual[name], expected[name]) for name in expected}
    assert all(error <= tolerance for error in errors.values()), f"relative errors {errors}, allowed {tolerance}"


def reference(model, inputs, optimize=True):
    """The outputs of onnxruntime on the CPU, by name. `model` is a path or a ModelProto. Not everything that its optimizer does is right: it
    takes a transposed matrix times a vector for the matrix as it lies."""
    options = onnxruntime.SessionOptions()
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def model_inputs(path, sizes=None, seed=0):
    """Random inputs of a model: numbers from a normal distribution, token ids, and masks that leave out the end of the sequence.
    `sizes` gives the named dimensions."""
    rng = np.random.default_rng(seed)
    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = [(sizes or {})[d.dim_param] if d.dim_param else d.dim_value for d in tensor.shape.dim]
        dtype = TYPES[tensor.elem_type]
        if "mask" in value.name and dtype == np.int64:
            inputs[value.name] = np.broadcast_to(np.arange(shape[-1]) < max(1, shape[-1] * 7 // 8), shape).astype(dtype)
        elif np.issubdtype(dtype, np.integer):
            inputs[value.name] = rng.integers(0, 100, shape).astype(dtype)
        else:
            inputs[value.name] = rng.standard_normal(shape).astype(dtype)
    return inputs


@contextlib.contextmanager
def locked(path):
    """Holds a lock file, so that test processes do not make the same thing twice."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def shared_model(name):
    """The path of a model of the shared folder with its weights, which are made once, in the cache folder."""
    source = SHARED / "models" / f"{name}.onnx"
    maker = SHARED / "models" / "make_weights.py"
    key = hashlib.sha256(source.read_bytes() + maker.read_bytes()).hexdigest()[:12]
    folder = CACHE / "models" / f"{name}-{key}"
    with locked(CACHE / "models" / f"{name}.lock"):
        if not folder.exists():
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            subprocess.run([sys.executable, maker, source, part], check=True, capture_output=True)
            part.rename(folder)
    return folder / source.name


def make_model(nodes, inputs, outputs, initializers=None, opset=21, ir_version=10, domains=()):
    """A model from nodes; `inputs` and `outputs` are {name: (element type, shape)}, `initializers` {name: array}."""
    infos = [[helper.make_tensor_value_info(name, *info) for name, info in values.items()] for values in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "test", *infos, initializer=tensors)
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def single_node(op, inputs, attributes=None, outputs=1, constants=(), opset=21, domain=""):
    """A model of one node. `inputs` are arrays in order (None: absent); those with an index in `constants` become initializers.
    Returns (model, inputs that are fed)."""
    names, fed, fixed = [], {}, {}
    for number, array in enumerate(inputs):
        names.append("" if array is None else f"x{number}")
        if array is not None:
            (fixed if number in constants else fed)[f"x{number}"] = array
    results = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(op, names, results, name=f"the_{op}", domain=domain, **(attributes or {}))
    infos = {name: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in fed.items()}
    model = make_model([node], infos, {}, fixed, opset, domains=[domain] if domain else ())
    # The results' types are left to shape inference, so that no case has to state them.
    for name in results:
        model.graph.output.add().name = name
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return inferred, fed


# The "light" models of the onnx package, whose weights are all ConstantOfShape.
LIGHT_FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
# Those that can be tried with random weights; the others have fully connected layers of hundreds of megabytes.
LIGHT_MODELS = ["light_densenet121", "light_inception_v1", "light_inception_v2", "light_resnet50", "light_shufflenet", "light_squeezenet"]


def with_random_weights(model):
    """The model with every ConstantOfShape replaced by random numbers that keep the size of the activations."""
    rng = np.random.default_rng(0)
    graph = model.graph
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    variances = {node.input[4] for node in graph.node if node.op_type == "BatchNormalization"}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        name, shape = node.output[0], shapes[node.input[0]]
        values = rng.standard_normal(shape)
        if name in variances:
            values = 1 + 0.1 * np.abs(values)
        elif len(shape) > 1:
            values *= np.sqrt(2 / np.prod(shape[1:]))
        else:
            values = 0.5 + 0.1 * values
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del graph.node[:]
    graph.node.extend(kept)
    return model


def light_model(name, folder):
    """Writes a light model with random weights to the folder and returns its path."""
    model = with_random_weights(onnx.load(LIGHT_FOLDER / f"{name}.onnx"))
    model.ir_version = max(model.ir_version, 4)  # initializers need not be inputs
    path = Path(folder) / f"{name}.onnx"
    onnx.save(model, path)
    return path


def compile_seconds(ogc, path, folder, shapes=()):
    """Processor time of a compilation, user's and system's, in seconds: the least of three."""
    best = float("inf")
    for _ in range(3):
        before = os.times()
        ogc.compile(path, folder / "m.ogc", shapes)
        after = os.times()
        best = min(best, after.children_user + after.children_system - before.children_user - before.children_system)
    return best
