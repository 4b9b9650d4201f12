"""Change detection: did the content of a page change? Bytes in, fingerprints out.

A library without Scrapy, store or clock. Begin reading with `recipes`, then `detector`.
"""

from crawlsched.change_detection.detector import Detector
from crawlsched.change_detection.recipes import Recipe, recipe
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise

__all__ = ["Detector", "Recipe", "SharedTexts", "TemplateNoise", "recipe"]
