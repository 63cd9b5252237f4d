"""Fixtures of the end-to-end tests."""
import tempfile
from pathlib import Path

import pytest

import harness


@pytest.fixture(scope="session")
def ogc():
    """The ogc program of the build folder; a missing program fails every test that asks for it."""
    program = harness.BIN / "ogc"
    assert program.exists(), f"{program} is not built"
    return harness.Ogc(program)


class Bundles:
    """Compiled models, each made once in a test process."""

    def __init__(self, ogc, folder):
        self.ogc, self.folder, self.made = ogc, Path(folder), {}

    def get(self, model, shapes=(), **options):
        """The bundle of a model of the shared folder; options are those of Ogc.compile."""
        key = (model, str(shapes), *sorted(options.items()))
        if key not in self.made:
            try:
                path = self.folder / f"{model}-{len(self.made)}.ogc"
                self.made[key] = self.ogc.compile(harness.shared_model(model), path, shapes, **options)
            except harness.OgcError as error:  # reported by every test that needs the bundle, without compiling again
                self.made[key] = error
        if isinstance(self.made[key], Exception):
            raise self.made[key]
        return self.made[key]


@pytest.fixture(scope="session")
def bundles(ogc):
    with tempfile.TemporaryDirectory(prefix="ogc-e2e-") as folder:
        yield Bundles(ogc, folder)


def pytest_collection_modifyitems(items):
    """Tests of large models are skipped where the shared folder is missing."""
    if (harness.SHARED / "models").is_dir():
        return
    for item in items:
        if item.get_closest_marker("model"):
            item.add_marker(pytest.mark.skip(reason="needs the models of ../shared"))
