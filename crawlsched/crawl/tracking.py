"""Tracking: the parameters of a link that track campaigns."""

import re

from crawlsched.pages.parameters import without_parameters

__all__ = ["without_tracking"]

_TRACKING = re.compile(
    r"(?:amp;)*(?:utm_[^=]*|fbclid|gclid|dclid|msclkid|yclid|mc_cid|mc_eid|_hsenc|_hsmi|mkt_tok)(?:=|$)", re.IGNORECASE
)


def without_tracking(url: str) -> str:
    """Return a URL without the parameters that track campaigns, such as ``utm_source``.

    They are for the statistics of who reads a feed, and name no other page.

    >>> without_tracking("https://a.example/1?utm_source=rss&b=%20&utm_medium=feed#top"), without_tracking("/?a&utm")
    ('https://a.example/1?b=%20#top', '/?a&utm')
    """
    return without_parameters(url, _TRACKING.match)
