"""The project: its database, the collection that arguments name, and the fingerprints of its requests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from crawlsched.exceptions import SettingError
from crawlsched.store import host_of

if TYPE_CHECKING:
    from crawlsched.crawl.collection import FoundPage
    from crawlsched.crawl.url_lines import UrlLine

__all__ = ["Requests", "anchored", "is_named_by_arguments", "named_collection"]

_SQLITE = "sqlite:///"
_CONFIG = "scrapy.cfg"


def anchored(database_url: str, here: Path) -> str:
    """Return a database URL whose relative path counts from the project (the nearest ``scrapy.cfg``) above `here`.

    >>> anchored("postgresql://db/crawls", Path("/"))
    'postgresql://db/crawls'
    """
    path = database_url.removeprefix(_SQLITE)
    if path == database_url or not path or path.startswith((":", "/", "file:")) or Path(path).is_absolute():
        return database_url
    here = here.resolve()
    for folder in (here, *here.parents):
        if (folder / _CONFIG).is_file():
            return database_url if folder == here else f"{_SQLITE}{folder / path}"
    return database_url


def is_named_by_arguments(collection: str | None) -> bool:
    """Whether a collection's name has a spider's arguments in it, as in ``{name}-{tag}``."""
    return collection is not None and "{" in collection


def named_collection(collection: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a collection with the spider's name and arguments in the place of ``{name}`` and the like.

    >>> named_collection("{name}-{tag}", "quotes", {"tag": "love"})
    'quotes-love'

    Raises
    ------
    SettingError
        If it names an argument that the spider does not have.
    """
    values = {**arguments, "name": name}
    try:
        wanted = [field for _, field, _, _ in Formatter().parse(collection) if field is not None]
    except ValueError as error:
        raise SettingError(f"CRAWLSCHED_COLLECTION is {collection!r}, and its braces do not close: {error}.") from error
    for field in wanted:
        if not field.isidentifier() or values.get(field) is None:
            raise SettingError(
                f"CRAWLSCHED_COLLECTION is {collection!r}, but the spider {name!r} has no argument {field!r}; give it "
                f"with -a {field}=VALUE, or set a default in the spider's class."
            )
    return collection.format_map({field: str(values[field]) for field in wanted})


_SCRAPYS = "scrapy.utils.request.RequestFingerprinter"
# What Scrapy leaves as it is: most URLs of most lists. Scrapy's own way takes ten times as long.
_PLAIN = re.compile(
    r"https?://([a-z0-9]+(?:[.-][a-z0-9]+)*)(?![^?]*/\.)/[A-Za-z0-9_.,/-]*(?:\?[A-Za-z0-9_]+=[A-Za-z0-9_.-]+)?"
)


class Requests:
    """The requests that a project makes of URLs. By default it is the project of the working directory, or none."""

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

    def fingerprint(self, url: str) -> bytes:
        """Return the fingerprint by which a URL's page is known."""
        return self._fingerprint(self._request(url))

    def page_of(self, line: UrlLine) -> FoundPage:
        """Return the page that a line names, or raise ValueError with what is wrong."""
        from crawlsched.crawl.collection import FoundPage

        url = line.url
        if self._is_scrapys and (match := _PLAIN.fullmatch(url)) is not None:
            said = f'{{"body": "", "headers": {{}}, "method": "GET", "url": "{url}"}}'
            return FoundPage(url, hashlib.sha1(said.encode()).digest(), match[1], line.importance)
        if not url[:8].lower().startswith(("http://", "https://")):
            raise ValueError(f"a URL must begin with http:// or https://, got {url!r:.100}")
        try:
            request = self._request(url)
            host = host_of(request.url)
            if not host:
                raise ValueError("it has no host")
            return FoundPage(request.url, self._fingerprint(request), host, line.importance)
        except ValueError as error:
            raise ValueError(f"{url!r:.100} is no URL ({error})") from None
