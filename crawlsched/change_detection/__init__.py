"""Change detection: did the content of a page change? Bytes in, fingerprints out.

A library without Scrapy, store or clock. Begin reading with `recipes`.
"""

from crawlsched.change_detection.blocks import page_blocks
from crawlsched.change_detection.change_size import sketch, sketch_similarity
from crawlsched.change_detection.detector import Detector, Finding, Seen, are_comparable, is_cut
from crawlsched.change_detection.fingerprint import Fingerprint, compare
from crawlsched.change_detection.likeness import likeness
from crawlsched.change_detection.recipes import RECIPE_NAMES, RECIPE_OPTIONS, Recipe, recipe
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.change_detection.templates import template_of
from crawlsched.change_detection.trace import Trace

__all__ = [
    "RECIPE_NAMES",
    "RECIPE_OPTIONS",
    "Detector",
    "Finding",
    "Fingerprint",
    "Recipe",
    "Seen",
    "SharedTexts",
    "TemplateNoise",
    "Trace",
    "are_comparable",
    "compare",
    "is_cut",
    "likeness",
    "page_blocks",
    "recipe",
    "sketch",
    "sketch_similarity",
    "template_of",
]
