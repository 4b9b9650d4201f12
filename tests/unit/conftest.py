"""What a unit test chooses for itself is taken back after it."""

from collections.abc import Iterator

import pytest

from crawlsched.compiling import use_compiled


@pytest.fixture(autouse=True)
def code_in_use() -> Iterator[None]:
    """Whatever code a test uses, the others use what they like."""
    yield
    use_compiled(None)
