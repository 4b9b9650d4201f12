"""Change detection: did the content of a page change? Bytes in, fingerprints out."""

from crawlsched.change_detection.block_recipe import LivingBlocks
from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.change_size import changed_share, shingle_similarity, sketch, sketch_similarity
from crawlsched.change_detection.fingerprint import Fingerprint, compare
from crawlsched.change_detection.flapping import MAX_HISTORY, extended_history, is_flapping
from crawlsched.change_detection.noise import NoiseMask
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
from crawlsched.change_detection.templates import template_of

__all__ = [
    "MAX_HISTORY",
    "RECIPE_NAMES",
    "Fingerprint",
    "Json",
    "LivingBlocks",
    "NoiseMask",
    "PageBlocks",
    "RawBytes",
    "Recipe",
    "Selectors",
    "UserFunction",
    "VisibleText",
    "changed_share",
    "compare",
    "extended_history",
    "is_flapping",
    "page_blocks",
    "recipe",
    "shingle_similarity",
    "sketch",
    "sketch_similarity",
    "template_of",
]
