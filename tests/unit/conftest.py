"""What a unit test chooses for itself is taken back after it."""

from collections.abc import Iterator

import pytest

from crawlsched.compiling import prepare_compiled, use_compiled


@pytest.fixture(autouse=True)
def code_in_use() -> Iterator[None]:
    """Whatever code a test uses, the others use what they like."""
    yield
    use_compiled(None)


@pytest.fixture
def compiled_code(code_in_use: None) -> None:
    """Use compiled code where numba is installed, as long replays do: it picks the same pages (test_replay.py)."""
    prepare_compiled()
