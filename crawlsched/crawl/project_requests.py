"""Requests: URLs as Scrapy writes them, and the fingerprints by which a crawl knows their pages."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.store import host_of

if TYPE_CHECKING:
    from crawlsched.crawl.importing import ImportedPage
    from crawlsched.crawl.url_lines import UrlLine

__all__ = ["Requests"]

_SCRAPYS = "scrapy.utils.request.RequestFingerprinter"
# What Scrapy leaves as it is: most URLs of most lists. Its own way takes ten times as long.
_PLAIN = re.compile(
    r"https?://([a-z0-9]+(?:[.-][a-z0-9]+)*)(?![^?]*/\.)/[A-Za-z0-9_.,/-]*(?:\?[A-Za-z0-9_]+=[A-Za-z0-9_.-]+)?"
)


class Requests:
    """What a project makes of URLs; by default the project of the working directory, or Scrapy's own settings."""

    def __init__(self, project_settings: Mapping[str, Any] | None = None, ignored: Sequence[str] = ()) -> None:
        from scrapy import Request, Spider
        from scrapy.crawler import Crawler
        from scrapy.utils.misc import build_from_crawler, load_object
        from scrapy.utils.project import get_project_settings

        from crawlsched.crawl.fingerprints import fingerprints

        settings: Any = get_project_settings() if project_settings is None else project_settings
        made = build_from_crawler(load_object(settings["REQUEST_FINGERPRINTER_CLASS"]), Crawler(Spider, settings))
        self.fingerprinter, self._fingerprint = fingerprints(made, ignored)
        #: Whether Scrapy leaves it to crawls to ask for robots.txt.
        self.asks_robots = not settings.getbool("ROBOTSTXT_OBEY")
        self._is_scrapys = self.fingerprinter == _SCRAPYS
        self._request = Request

    def page_of(self, line: "UrlLine") -> "ImportedPage":
        """Return the page that a line names, or raise ValueError with what is wrong."""
        from crawlsched.crawl.importing import ImportedPage

        url = line.url
        if self._is_scrapys and (match := _PLAIN.fullmatch(url)) is not None:
            said = f'{{"body": "", "headers": {{}}, "method": "GET", "url": "{url}"}}'
            return ImportedPage(url, match[1], hashlib.sha1(said.encode()).digest(), line.importance)
        if not url[:8].lower().startswith(("http://", "https://")):
            raise ValueError(f"a URL must begin with http:// or https://, got {url!r:.100}")
        try:
            request = self._request(url)
            host = host_of(request.url)
            if not host:
                raise ValueError("it has no host")
            return ImportedPage(request.url, host, self._fingerprint(request), line.importance)
        except ValueError as error:
            raise ValueError(f"{url!r:.100} is no URL ({error})") from None
