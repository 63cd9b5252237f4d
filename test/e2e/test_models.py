"""The models of the shared folder: right against onnxruntime, few nodes, a tight memory plan, the same bits in any order, the same bytes."""
import filecmp
import os
import shutil

import pytest

import harness
import model_calls

# Model -> most nodes a graph may have.
MODELS = {"resnet50": 75, "mobilenet_v3_large": 110, "vit_b_16": 140, "bert_base": 130, "gpt2": 150}
TARGETS = "sm_90,cpu"
TOLERANCE = {"fp32": 1e-5, "fp16": 2e-2}


def each_model():
    """One parameter a model; the tests of a model run in one process, so that they share its bundles."""
    return pytest.mark.parametrize("model", [pytest.param(name, marks=[pytest.mark.model, pytest.mark.xdist_group(name)]) for name in MODELS])


@each_model()
@pytest.mark.parametrize("precision", TOLERANCE)
def test_right(ogc, bundles, model, precision):
    bundle = bundles.get(model, target=TARGETS, precision=precision)
    path = harness.shared_model(model)
    inputs = harness.model_inputs(path)
    harness.check_outputs(ogc.run(bundle, inputs), harness.reference(path, inputs), TOLERANCE[precision])


@each_model()
@pytest.mark.parametrize("precision", TOLERANCE)
def test_graph(ogc, bundles, model, precision):
    """One graph with few nodes, whose scratch is close to the bytes that live at once."""
    facts = ogc.inspect(bundles.get(model, target=TARGETS, precision=precision))
    (graph,) = facts["graphs"]
    assert graph["nodes"]["total"] <= MODELS[model]
    assert graph["arena"]["peak_bytes"] <= 1.02 * graph["arena"]["bound_bytes"]
    assert set(TARGETS.split(",")) <= set(facts["targets"])


@each_model()
def test_any_order(ogc, bundles, model):
    """Random topological orders and poisoned scratch give the same bits."""
    ogc.verify(bundles.get(model, target=TARGETS, precision="fp32"), "--random-orders", 50, "--poison")


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy(source, target)


@each_model()
def test_same_bytes(ogc, bundles, model, tmp_path):
    """A second compilation, of a copy in another folder and with one thread, gives the same file."""
    first = bundles.get(model, target=TARGETS, precision="fp32")
    folder = tmp_path / "copy"
    shutil.copytree(harness.shared_model(model).parent, folder, copy_function=link_or_copy)
    second = ogc.compile(folder / f"{model}.onnx", tmp_path / "again.ogc", target=TARGETS, precision="fp32", threads=1)
    assert filecmp.cmp(first, second, shallow=False)


@pytest.mark.model
@pytest.mark.parametrize("model", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in model_calls.SIZES])
@pytest.mark.parametrize("precision", TOLERANCE)
def test_free_dimensions(ogc, tmp_path, model, precision):
    """Three sizes of each, compiled into one bundle."""
    path = harness.shared_model(model)
    given = model_calls.calls(model)
    bundle = ogc.compile(path, tmp_path / "m.ogc", model_calls.named_shapes(given), precision=precision)
    for number, inputs in enumerate(given):
        harness.check_outputs(ogc.run(bundle, inputs, graph=f"g{number}"), harness.reference(path, inputs), TOLERANCE[precision])


@pytest.mark.model
@pytest.mark.xdist_group("resnet50_dyn_bn")
def test_batch_normalization_is_folded(ogc, bundles):
    """Batch normalization costs no node: the count is that of resnet50, whose exporter had folded it."""
    facts = ogc.inspect(bundles.get("resnet50_dyn_bn", "x=1x3x224x224", target=TARGETS, precision="fp32"))
    assert facts["graphs"][0]["nodes"]["total"] <= MODELS["resnet50"]
