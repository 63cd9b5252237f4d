"""Time limits; these tests run with nothing beside them. The figures hold for two cores of the class named in docs/dependencies.md."""
import os
import time

import pytest

import harness

pytestmark = [pytest.mark.alone, pytest.mark.model]


@pytest.mark.parametrize("model, cold, warm", [("resnet50", 20, 5), ("bert_base", 30, None)])
def test_compile_time(ogc, tmp_path, model, cold, warm):
    """Seconds to compile for the GPU and the CPU, with an empty and with a filled kernel cache."""
    path = harness.shared_model(model)
    seconds = []
    for _ in range(2 if warm else 1):
        start = time.monotonic()
        ogc.compile(path, tmp_path / "m.ogc", target="sm_90,cpu", cache_dir=tmp_path / "kernels")
        seconds.append(time.monotonic() - start)
    print(f"{model}: {', '.join(f'{s:.1f} s' for s in seconds)}")
    assert seconds[0] <= cold
    assert warm is None or seconds[1] <= warm


@pytest.mark.parametrize("model, limit_ms", [("resnet50", 200), ("bert_base", 500)])
def test_inference_time_on_one_core(ogc, tmp_path, model, limit_ms):
    bundle = ogc.compile(harness.shared_model(model), tmp_path / "m.ogc")
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        p50 = ogc.bench(bundle, iterations=5)["wall_us"]["p50"]
    finally:
        os.sched_setaffinity(0, cores)
    print(f"{model}: {p50 / 1000:.0f} ms")
    assert p50 <= 1000 * limit_ms
