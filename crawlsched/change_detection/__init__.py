"""Change detection: did the content of a page change? Bytes in, fingerprints out."""

from crawlsched.change_detection.fingerprint import Fingerprint, compare
from crawlsched.change_detection.recipes import RawBytes, Selectors, UserFunction, VisibleText, recipe

__all__ = ["Fingerprint", "RawBytes", "Selectors", "UserFunction", "VisibleText", "compare", "recipe"]
