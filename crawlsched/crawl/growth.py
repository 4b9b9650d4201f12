"""Growth: finds the place of a site that brings ever more new URLs, and suggests a setting that stops it."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
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
# At most this number of URLs are remembered, and at most this number of places in a round.
_MOST = 10_000


class _Round:
    """What was found in one round: URLs, first copies, and the URLs of each place."""

    def __init__(self, since: float, n_pages: int) -> None:
        self.since, self.n_pages = since, n_pages
        self.found = self.first_copies = 0
        self.places = Counter[str]()


class Growth:
    """Notice when one place of a site brings more new URLs than can be crawled, for a long time.

    Attributes
    ----------
    warning : dict
        The growth found at the last look: ``says`` has a sentence, ``line`` a line for the settings. Empty: no growth.
    """

    def __init__(self, n_pages: Callable[[], int], rate: Callable[[], float], now: float) -> None:
        self._n_pages, self._rate = n_pages, rate
        self.warning: dict[str, str] = {}
        self.n_first_copies = 0  # pages that brought content for the first time
        self._said: set[str] = set()
        self._rounds = deque([_Round(now, 0)], maxlen=_ROUNDS)
        self._newest: deque[str] = deque(maxlen=_MOST)

    def found(self, url: str) -> None:
        """A page was found, by a link or a sitemap."""
        newest = self._rounds[-1]
        newest.found += 1
        parts = urlsplit(url)
        first, deeper, _ = parts.path[1:].partition("/")
        place = f"{parts.scheme}://{parts.netloc}/{first}{deeper}"
        if place in newest.places or len(newest.places) < _MOST:
            newest.places[place] += 1
        self._newest.append(url)

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
        if self.warning and self.warning["line"] not in self._said:
            self._said.add(self.warning["line"])
            logger.warning("%s", self.warning["says"])
        self._rounds.append(_Round(now, self._n_pages()))

    def _found_too_many(self, now: float) -> dict[str, str]:
        found, first_copies = (sum(getattr(each, name) for each in self._rounds) for name in ("found", "first_copies"))
        # In a chain each page leads to the next, so found and crawled pages are balanced. There the growth shows when
        # the number of pages has doubled.
        is_twice = found >= self._rounds[0].n_pages and _BALANCE * found >= first_copies
        outgrows = found > _BALANCE * first_copies or is_twice
        places = sum((each.places for each in self._rounds), Counter[str]())
        if found < _FEWEST or not outgrows or not places:
            return {}
        ((where, n),) = places.most_common(1)
        n_rounds = sum(where in each.places for each in self._rounds)
        if 2 * n <= found or n_rounds < _ROUNDS - 1:
            return {}
        newest = [url for url in self._newest if url.startswith(where)]
        with_parameter = Counter(name for url in newest for name, _ in _parameters(url))
        rests = Counter(name for name, _ in {pair for url in newest for pair in _parameters(url)})
        names = [name for name, m in with_parameter.items() if 2 * m > len(newest) and 4 * rests[name] < m]
        by_parameter = (
            f". Most differ in {', '.join(names)} only: if it makes no difference to the page, write "
            f"CRAWLSCHED_IGNORE_PARAMETERS = {names}"
        )
        example = f"{(newest or [where])[-1][:200]}{by_parameter if names else ''}"
        line = f"CRAWLSCHED_PAGES = [({where + '*'!r}, {{'max_pages': 500}})]"
        says = (
            f"In {now - self._rounds[0].since:.0f} s {found:,} new URLs were found and {first_copies:,} crawled for "
            f"the first time; {n:,} of them begin with {where}, such as {example}. If there is no end to them, write "
            f"{line}"
        )
        return {"says": says, "line": line}


def _parameters(url: str) -> list[tuple[str, str]]:
    """Return the name of each parameter in a URL's query, with the name of a place: the URL without the parameter."""
    if "?" not in url:
        return []
    names = {parameter.partition("=")[0].replace("*", "") for parameter in urlsplit(url).query.split("&")} - {""}
    return [(name, f"{name} {without_parameters(url, named([name]))}") for name in sorted(names)]
