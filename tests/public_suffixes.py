"""Public suffixes for the cookies of tests: from the list that comes with tldextract, and never from the network."""

import logging
import os
import tempfile
from unittest.mock import patch

from tldextract import TLDExtract

__all__ = ["keep_at_hand"]

_FOLDER = "TLDEXTRACT_CACHE"


def keep_at_hand() -> tempfile.TemporaryDirectory[str] | None:
    """Fill a cache for all processes that are started from here; return its folder, or None if one was made before.

    Scrapy asks for the list of public suffixes at the first cookie of a machine. Without a network that fails loudly,
    in the log of whatever test happens to be the first.
    """
    if _FOLDER in os.environ:
        return None
    folder = tempfile.TemporaryDirectory(prefix="suffixes-")
    os.environ[_FOLDER] = folder.name
    logging.getLogger("tldextract").addFilter(lambda record: False)
    with patch.dict(os.environ, dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")):
        TLDExtract(folder.name, include_psl_private_domains=True)("example.com")
    return folder
