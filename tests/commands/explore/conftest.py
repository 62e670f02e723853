"""The built-in model, which the app runs."""

import pytest

from attnviz.kit.prepare import load_model
from attnviz.models.catalog import Source
from attnviz.models.loaded import LoadedModel


@pytest.fixture(scope="session")
def model() -> LoadedModel:
    return load_model(Source("builtin"))
