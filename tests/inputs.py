"""How many generated inputs a property is tried with: in `make test-all` all, in `make test` a quarter."""

import os
from typing import Any

from hypothesis import settings

# Fewer show too little of a property.
_FEWEST = 10


def tries(n: int, **more: Any) -> settings:
    """Return Hypothesis's settings for so many inputs in `make test-all`; `more` as for `hypothesis.settings`."""
    return settings(max_examples=n if os.environ.get("TEST_INPUTS") == "all" else max(n // 4, _FEWEST), **more)
