"""Change detection: did the content of a page change? Bytes in, fingerprints out.

A library without Scrapy, store or clock. Begin reading with `recipes`; `detector` judges what they find.
"""

from crawlsched.change_detection.recipes import Recipe, recipe

__all__ = ["Recipe", "recipe"]
