"""What `ogc inspect` says of the memory plan, and its page in a browser."""
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper

import harness

F32 = TensorProto.FLOAT
HOSTILE = "</script><script>document.title='taken'</script>"


@pytest.fixture(scope="module")
def bundle(ogc, tmp_path_factory):
    """Two graph IDs of a chain of row kernels with branches, and a name that would leave a page's data."""
    folder = tmp_path_factory.mktemp("inspect")
    nodes, value = [], "x"
    for layer in range(6):
        nodes += [helper.make_node("MatMul", [value, "w"], [f"m{layer}"], name=f"product {layer}"), helper.make_node("Softmax", [f"m{layer}"], [f"s{layer}"], name=f"soft {layer}"),
                  helper.make_node("Add", [f"s{layer}", value], [f"a{layer}"], name=f"sum {layer}")]
        value = f"a{layer}"
    nodes.append(helper.make_node("Relu", [value], ["y"], name=HOSTILE))
    model = harness.make_model(nodes, {"x": (F32, ("n", 64))}, {"y": (F32, None)}, {"w": np.eye(64, dtype=np.float32)})
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return ogc.compile(folder / "m.onnx", folder / "m.ogc", ["small: x=4x64", "large: x=64x64"], target="sm_90,cpu")


def test_page_refers_to_nothing_outside(ogc, bundle, tmp_path):
    ogc("inspect", bundle, "--html", tmp_path / "m.html")
    page = (tmp_path / "m.html").read_text()
    assert not re.search(r'(src|href)="(?!data:)', page) and "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
    assert page.count("</script>") == 2
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))
    assert [graph["id"] for graph in data["graphs"]] == ["small", "large"]
    assert any(HOSTILE in node[2] for node in data["graphs"][0]["nodes"])


def browser():
    return shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(not browser(), reason="needs the Debian package chromium")
def test_page_in_a_browser(ogc, bundle, tmp_path):
    """The page draws every node, edge and buffer, and no error is reported."""
    ogc("inspect", bundle, "--html", tmp_path / "m.html")
    done = subprocess.run([browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile", "--enable-logging=stderr",
                           "--v=0", "--virtual-time-budget=5000", "--dump-dom", (tmp_path / "m.html").as_uri()], capture_output=True, text=True, timeout=240)
    assert "CONSOLE" not in done.stderr, done.stderr
    facts = ogc.inspect(bundle)["graphs"][0]
    ready = re.search(r'data-ready="(\d+) nodes, (\d+) edges, (\d+) buffers"', done.stdout)
    assert ready, done.stdout[:2000] + done.stderr
    assert int(ready.group(1)) == facts["nodes"]["total"] and int(ready.group(2)) == sum(facts["edges"].values())
    assert int(ready.group(3)) >= facts["nodes"]["total"]
    assert len(re.findall(r'class="node [a-z]+"', done.stdout)) == facts["nodes"]["total"]
    assert "<title>m.onnx</title>" in done.stdout
