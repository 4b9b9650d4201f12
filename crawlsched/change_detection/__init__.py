"""Change detection: did the content of a page change? Bytes in, fingerprints out."""

from crawlsched.change_detection.fingerprint import Fingerprint, compare
from crawlsched.change_detection.recipes import (
    RECIPE_NAMES,
    Json,
    RawBytes,
    Recipe,
    Selectors,
    UserFunction,
    VisibleText,
    recipe,
)

__all__ = [
    "RECIPE_NAMES",
    "Fingerprint",
    "Json",
    "RawBytes",
    "Recipe",
    "Selectors",
    "UserFunction",
    "VisibleText",
    "compare",
    "recipe",
]
