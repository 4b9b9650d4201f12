"""Growth: finds the place of a site that brings ever more new URLs, and suggests a setting that stops it."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from crawlsched.crawl.fingerprints import named, without_parameters

__all__ = ["Growth"]

logger = logging.getLogger(__name__)

# Growth is measured over the time of `_ROUNDS` rounds, but at least over `_SHORTEST` and at most over `_LONGEST`
# seconds.
_ROUNDS, _SHORTEST, _LONGEST = 10, 20.0, 3600.0
# Pages found and pages crawled count as balanced up to this ratio.
_BALANCE = 1.25
# A warning needs at least this number of new URLs.
_FEWEST = 100
# At most this number of URLs are remembered in a round.
_MOST = 1_000


@dataclass
class _Round:
    """What was found in one round: how many URLs and first copies, and some of the URLs."""

    since: float
    n_pages: int
    found: int = 0
    first_copies: int = 0
    urls: list[str] = field(default_factory=list)


class Growth:
    """Notice when, for a long time, one place of a site brings more new URLs than can be crawled.

    Attributes
    ----------
    warning : str
        The sentence about the growth found at the last look; empty: no growth.
    """

    def __init__(self, n_pages: Callable[[], int], rate: Callable[[], float], now: float) -> None:
        self._n_pages, self._rate = n_pages, rate
        self.warning = ""
        self.n_first_copies = 0  # pages that brought content for the first time
        self._said: set[str] = set()
        self._rounds = deque([_Round(now, 0)], maxlen=_ROUNDS)

    def found(self, url: str) -> None:
        """A page was found, by a link or a sitemap."""
        newest = self._rounds[-1]
        newest.found += 1
        if len(newest.urls) < _MOST:
            newest.urls.append(url)

    def copied(self) -> None:
        """A page brought content for the first time."""
        self.n_first_copies += 1
        self._rounds[-1].first_copies += 1

    def pace(self, now: float) -> float:
        """Return how many first copies are made per second."""
        return sum(each.first_copies for each in self._rounds) / max(now - self._rounds[0].since, 1.0)

    def look(self, now: float) -> None:
        """Log, once, which part of a site has ever more URLs."""
        seconds = min(max(_ROUNDS * self._rounds[0].n_pages / self._rate(), _SHORTEST), _LONGEST)
        if now - self._rounds[-1].since < seconds / _ROUNDS:
            return
        self.warning = self._found_too_many(now)
        self._rounds.append(_Round(now, self._n_pages()))

    def _found_too_many(self, now: float) -> str:
        found, first_copies = (sum(getattr(each, name) for each in self._rounds) for name in ("found", "first_copies"))
        # In a chain each page leads to the next, so found and crawled pages are balanced. There the growth shows when
        # the number of pages has doubled.
        is_twice = found >= self._rounds[0].n_pages and _BALANCE * found >= first_copies
        if found < _FEWEST or not (is_twice or found > _BALANCE * first_copies):
            return ""
        urls = [url for each in self._rounds for url in each.urls]
        ((where, _),) = Counter(map(_place, urls)).most_common(1)
        newest = [url for url in urls if url.startswith(where)]
        n_rounds = sum(any(url.startswith(where) for url in each.urls) for each in self._rounds)
        if 2 * len(newest) <= len(urls) or n_rounds < _ROUNDS - 1:
            return ""
        parameters = [parameter for url in newest for parameter in _parameters(url)]
        with_parameter, rests = (Counter(name for name, _ in some) for some in (parameters, set(parameters)))
        names = [name for name, m in with_parameter.items() if 2 * m > len(newest) and 4 * rests[name] < m]
        by_parameter = (
            f". Most differ in {', '.join(names)} only: if it makes no difference to the page, write "
            f"CRAWLSCHED_IGNORE_PARAMETERS = {names}"
        )
        says = (
            f"In {now - self._rounds[0].since:.0f} s {found:,} new URLs were found and {first_copies:,} crawled for "
            f"the first time; {100 * len(newest) / len(urls):.0f} % of them begin with {where}, such as "
            f"{newest[-1][:200]}{by_parameter if names else ''}. If there is no end to them, write "
            f"CRAWLSCHED_PAGES = [({where + '*'!r}, {{'max_pages': 500}})]"
        )
        if where not in self._said:
            self._said.add(where)
            logger.warning("%s", says)
        return says


def _place(url: str) -> str:
    """Return the beginning of a URL, up to the first directory of its path."""
    parts = urlsplit(url)
    first, deeper, _ = parts.path[1:].partition("/")
    return f"{parts.scheme}://{parts.netloc}/{first}{deeper}"


def _parameters(url: str) -> list[tuple[str, str]]:
    """Return, for each parameter of a URL, its name and its place. A place is the name and the URL without it."""
    if "?" not in url:
        return []
    names = {parameter.partition("=")[0].replace("*", "") for parameter in urlsplit(url).query.split("&")} - {""}
    return [(name, f"{name} {without_parameters(url, named([name]))}") for name in sorted(names)]
