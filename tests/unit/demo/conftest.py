"""The example project is importable here."""

import sys
from pathlib import Path

import pytest

EXAMPLE_PROJECT = Path(__file__).parents[3] / "example_project"


@pytest.fixture(autouse=True, scope="module")
def _example_project_is_importable():
    sys.path.insert(0, str(EXAMPLE_PROJECT))
    yield
    sys.path.remove(str(EXAMPLE_PROJECT))
