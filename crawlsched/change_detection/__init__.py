"""Change detection: did the content of a page change? Bytes in, fingerprints out.

A library without Scrapy, store or clock. Begin reading with `recipes`.
"""

from crawlsched.change_detection.block_recipe import LivingBlocks
from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.change_size import (
    block_sketch,
    changed_share,
    has_new_block,
    known_blocks,
    shingle_similarity,
    sketch,
    sketch_changed_share,
    sketch_similarity,
)
from crawlsched.change_detection.earlier_contents import EarlierContents
from crawlsched.change_detection.fingerprint import Fingerprint, compare, is_same
from crawlsched.change_detection.flapping import MAX_HISTORY, extended_history, is_flapping, n_variants
from crawlsched.change_detection.likeness import likeness
from crawlsched.change_detection.main_text import MainText
from crawlsched.change_detection.noise import NoiseMask
from crawlsched.change_detection.recipe_kind import Recipe
from crawlsched.change_detection.recipe_spec import recipe_from
from crawlsched.change_detection.recipes import (
    RECIPE_NAMES,
    Json,
    RawBytes,
    Selectors,
    UserFunction,
    VisibleText,
    recipe,
)
from crawlsched.change_detection.template_edits import TemplateEdits
from crawlsched.change_detection.templates import template_of

__all__ = [
    "MAX_HISTORY",
    "RECIPE_NAMES",
    "EarlierContents",
    "Fingerprint",
    "Json",
    "LivingBlocks",
    "MainText",
    "NoiseMask",
    "PageBlocks",
    "RawBytes",
    "Recipe",
    "Selectors",
    "TemplateEdits",
    "UserFunction",
    "VisibleText",
    "block_sketch",
    "changed_share",
    "compare",
    "extended_history",
    "has_new_block",
    "is_flapping",
    "is_same",
    "known_blocks",
    "likeness",
    "n_variants",
    "page_blocks",
    "recipe",
    "recipe_from",
    "shingle_similarity",
    "sketch",
    "sketch_changed_share",
    "sketch_similarity",
    "template_of",
]
