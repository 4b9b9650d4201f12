"""Wrong pages, which a host serves with status 200 in the place of a page: log-in walls, error and parking pages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from math import inf
from posixpath import splitext
from random import Random
from urllib.parse import urljoin, urlsplit

from scrapy.utils.datatypes import LocalCache

from crawlsched.change_detection.fingerprint import PHRASE, sketch_similarity
from crawlsched.change_detection.limits import FEW, LEAST_SHARED, REMEMBERED, SHARE_AGAIN
from crawlsched.content.reading import Content
from crawlsched.content.verdict import Refetch
from crawlsched.store import Outcome, PageFacts

__all__ = ["WrongPages"]


_newest = partial(LocalCache, REMEMBERED)  # a dict of the last contents only


@dataclass(slots=True)
class _Host:
    """What is known of a host that served other content in the place of pages."""

    # Likenesses of contents that are served in the place of pages.
    wrong: LocalCache[bytes, None] = field(default_factory=_newest)
    # Contents that were gone at the second fetch, with the pages that they had replaced.
    passing: LocalCache[bytes, set[str]] = field(default_factory=_newest)
    asked: set[bytes] = field(default_factory=set)  # likenesses of contents that a pending question is about
    n_visits: float = inf  # visits since the host was asked for a page that cannot exist


class WrongPages:
    """Knows which contents hosts serve in the place of pages.

    Notes
    -----
    A page that was never delivered is judged as it is. So is a home page: its host may serve it in the place of other
    pages, but it is no error page itself. A page that was delivered and whose text was replaced wholly is suspected.
    Then the host is asked for a page that cannot exist, at most once in 20 visits. If the host answers with the same
    content, that content is known as a wrong page from then on. Contents are compared by their `likeness`, since many
    error pages contain the URL that was not found, and the time. Otherwise the page is fetched a second time at once.
    If the page then shows its own content again, the suspect content has passed. If it has passed on two pages, it is
    known as a wrong page (a temporary wall). If the suspect content stays, it is the page's content now, even if many
    pages of the host have the same content.
    """

    def __init__(self, rng: Random, *, enabled: bool = True) -> None:
        self._rng = rng
        self._enabled = enabled
        self._hosts = defaultdict[int, _Host](_Host)

    def suspect(self, host: int, facts: PageFacts, content: Content) -> Outcome | Refetch | None:
        """Return WRONG for a wrong page, a `Refetch` to find out whether it is one, or None for any other page."""
        if not self._enabled:
            return None
        if host in self._hosts:
            self._hosts[host].n_visits += 1
        if facts.fingerprint is None or not self.is_replaced(facts, content) or _is_home(facts.url):
            return None
        known = self._hosts[host]
        if content.likeness in known.wrong:
            self.learn(host, content)
            return Outcome.WRONG
        if content.is_empty:  # an empty page proves nothing
            return Outcome.WRONG
        if content.likeness in known.asked:  # no page is judged by this content before the answer
            return Refetch.IMPOSSIBLE_PAGE
        if known.n_visits * SHARE_AGAIN < 1.0 or not content.is_html:
            return Refetch.PAGE
        known.n_visits = 0
        known.asked.add(content.likeness)
        return Refetch.IMPOSSIBLE_PAGE

    def answered(self, host: int, alike: bytes) -> None:
        """A host has answered a question about this content, or no visit waits for the answer any more."""
        self._hosts[host].asked.discard(alike)

    def impossible_url(self, url: str) -> str:
        """Return a URL, in the folder of this page, of a page that cannot exist.

        >>> WrongPages(Random(1)).impossible_url("https://example.com/news/tea.html?id=7")
        'https://example.com/news/no-such-page-91b7584a2265b1f5_.html'
        """
        name = f"no-such-page-{self._rng.getrandbits(64):016x}_"
        return urljoin(url, name + splitext(urlsplit(url).path)[1])

    @staticmethod
    def is_replaced(facts: PageFacts, content: Content) -> bool:
        """Whether almost no text of a page is left."""
        last = facts.pending_fingerprint or facts.fingerprint
        recipe, digest = content.fingerprint
        if last is None or facts.recipe != recipe or digest == last:
            return False
        if (given := content.given_trace(facts)) is not None and content.seen is not None:
            left = len({*given.digests}.intersection(content.seen.trace.digests))
            if 2 * left >= len(given):  # most of the text is still there
                return False
        if min(len(facts.text_sketch), len(content.text_sketch)) <= FEW * PHRASE.size:  # a page may have one word only
            return content.is_empty
        return sketch_similarity(facts.text_sketch, content.text_sketch) < LEAST_SHARED

    def passed(self, host: int, url: str, content: Content) -> bool:
        """Note that a page shows its own content again at once; return whether `content` is known as wrong now.

        Pages of one URL count as one: a wall in front of two of them was seen on one page.
        """
        passing = self._hosts[host].passing
        pages = passing.pop(content.likeness, set()) | {url}
        if len(pages) > 1:
            self.learn(host, content)
            return True
        passing[content.likeness] = pages
        return False

    def learn(self, host: int, content: Content) -> None:
        """Take content of a host for a wrong page from now on."""
        self._hosts[host].wrong.pop(content.likeness, None)
        self._hosts[host].wrong[content.likeness] = None

    def to_list(self, host: int) -> list[str]:
        """Return the wrong pages of a host as plain data, for JSON."""
        return [digest.hex() for digest in self._hosts[host].wrong] if host in self._hosts else []

    def load(self, host: int, data: list[str]) -> None:
        """Take over the data of `to_list`."""
        if data:
            self._hosts[host].wrong.update((bytes.fromhex(digest), None) for digest in data)


def _is_home(url: str) -> bool:
    name, _ = splitext(urlsplit(url).path.strip("/").lower())
    return name in ("", "index", "default", "home")
