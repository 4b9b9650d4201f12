"""Change detection: did the content of a page change? Bytes in, fingerprints out.

A library without Scrapy, store or clock. Begin reading with `recipes`.
"""

from crawlsched.change_detection.block_recipe import LivingBlocks
from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.change_size import (
    sketch,
    sketch_similarity,
)
from crawlsched.change_detection.detector import (
    Detector,
    Finding,
    Seen,
    are_comparable,
    is_cut,
    page_number,
)
from crawlsched.change_detection.fingerprint import Fingerprint, compare
from crawlsched.change_detection.likeness import likeness
from crawlsched.change_detection.main_text import MainText
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
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.change_detection.templates import template_of
from crawlsched.change_detection.trace import Trace

__all__ = [
    "RECIPE_NAMES",
    "Detector",
    "Finding",
    "Fingerprint",
    "Json",
    "LivingBlocks",
    "MainText",
    "PageBlocks",
    "RawBytes",
    "Recipe",
    "Seen",
    "Selectors",
    "SharedTexts",
    "TemplateNoise",
    "Trace",
    "UserFunction",
    "VisibleText",
    "are_comparable",
    "compare",
    "is_cut",
    "likeness",
    "page_blocks",
    "page_number",
    "recipe",
    "recipe_from",
    "sketch",
    "sketch_similarity",
    "template_of",
]
