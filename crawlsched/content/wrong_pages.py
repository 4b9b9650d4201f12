"""Wrong pages: what a host serves in the place of a page, with status 200: log-in walls, error pages, parking pages."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from posixpath import splitext
from random import Random
from urllib.parse import urljoin, urlsplit

from crawlsched.change_detection import Fingerprint
from crawlsched.content.judging import Verdict
from crawlsched.content.reading import Content
from crawlsched.store import PageFacts

__all__ = ["Suspicion", "WrongPages", "impossible_url"]

_DIGEST = 8  # bytes of a digest that are kept
# A page was replaced if no more of its three-word phrases are left.
_LEFT_OF_A_REPLACED_PAGE = 0.3
# So many pages replaced by the same content were not: another one is served in their place.
_ENOUGH_EQUAL = 3
# At most one request in so many to a host asks for a page that cannot exist.
_VISITS_PER_QUESTION = 20
_MOST_REMEMBERED = 256
_MOST_WRONG = 32
_MOST_HOSTS = 5_000


class Suspicion(Enum):
    """What to think of a page's content."""

    NONE = 0
    #: The host would have to be asked for a page that cannot exist: does it answer with the same?
    ASK = 1
    WRONG = 2


class _Host:
    """What is known of one host.

    Attributes
    ----------
    wrong : OrderedDict
        Likenesses of contents that are served in the place of pages; beginnings of digests where it has not said so.
    replaced_by : OrderedDict
        For likenesses of contents that have replaced a page or were the first to be seen of one: those pages, whether
        they were replaced, and the digests of what they said then.
    asked : set of bytes
        Likenesses of contents about which it has been asked, and has not answered yet.
    n_visits : int
        Since it was asked for a page that cannot exist.
    """

    __slots__ = ("asked", "n_visits", "replaced_by", "wrong")

    def __init__(self) -> None:
        self.wrong: OrderedDict[bytes, None] = OrderedDict()
        self.replaced_by: OrderedDict[bytes, dict[int, tuple[bool, bytes]]] = OrderedDict()
        self.asked: set[bytes] = set()
        self.n_visits = _VISITS_PER_QUESTION


class WrongPages:
    """Which contents hosts serve in the place of pages.

    Parameters
    ----------
    rng : random.Random
        Makes up names of pages that cannot exist.
    enabled : bool, default True
        False: nothing is ever suspected.

    Notes
    -----
    A page whose text was replaced wholly, or a new page whose content another page of its host has, too, is suspected.
    Then the host is asked for a page that cannot exist. If it answers with the same content, that content is known for
    a wrong page from then on. Contents are compared by their `likeness`, since many say which page they have not found,
    and when. So is content by which three pages of a host were replaced, whatever it answers: a
    log-in wall may know very well which pages there are. A page that was empty from the start is what it is; one that
    has lost its content is wrong.
    """

    def __init__(self, rng: Random, *, enabled: bool = True) -> None:
        self._rng = rng
        self._enabled = enabled
        self._hosts: OrderedDict[int, _Host] = OrderedDict()

    def suspect(self, host: int, facts: PageFacts, content: Content, verdict: Verdict) -> Suspicion:
        """Say what to think of content that a page of a host seems to have.

        Parameters
        ----------
        host : int
            Row number.
        facts : PageFacts
            What was kept of the content before.
        content : Content
            What was served.
        verdict : Verdict
            What it says, taken as the page's own.
        """
        if not self._enabled:
            return Suspicion.NONE
        known = self._host(host)
        known.n_visits += 1
        alike, digest = content.likeness, content.fingerprint.digest
        if (name := _known_as(content, known)) is not None:
            known.wrong.move_to_end(name)
            return Suspicion.WRONG
        if content.fingerprint.is_empty and _had_content(facts):
            return Suspicion.WRONG
        is_first = verdict.changed is None and verdict.is_new
        if not content.is_html or not (is_first or _is_replaced(verdict)):
            return Suspicion.NONE
        pages = known.replaced_by.setdefault(alike, {})
        known.replaced_by.move_to_end(alike)
        if len(known.replaced_by) > _MOST_REMEMBERED:
            known.replaced_by.popitem(last=False)
        others = len(pages.keys() - {facts.page})
        if not is_first or len(pages) < _ENOUGH_EQUAL:
            pages[facts.page] = not is_first, digest
        # Three pages that say so with other numbers each may well have become that; only the host can tell.
        if list(pages.values()).count((True, digest)) >= _ENOUGH_EQUAL and not is_first:
            return Suspicion.WRONG
        if not others and is_first:
            return Suspicion.NONE
        if alike in known.asked:  # until the answer is there, no page is judged by this content
            return Suspicion.ASK
        if known.n_visits < _VISITS_PER_QUESTION:
            return Suspicion.NONE
        known.n_visits = 0
        known.asked.add(alike)
        return Suspicion.ASK

    def answered(self, host: int, alike: bytes) -> None:
        """A host has answered a question about this content, or nobody waits for its answer any more."""
        self._host(host).asked.discard(alike)

    def impossible_url(self, url: str) -> str:
        """Return the URL of a page beside another one that cannot exist."""
        return impossible_url(url, self._rng)

    def learn(self, host: int, content: Content, *, is_told: bool = False) -> list[tuple[int, bytes]]:
        """Take content of a host for a wrong page from now on.

        Parameters
        ----------
        host : int
        content : Content
        is_told : bool, default False
            Whether the host serves it for a page that cannot exist: then what is like it is wrong, too.

        Returns
        -------
        list of (int, bytes)
            The pages which were thought to have such content, and its digests: what is known of it is worth nothing.
        """
        known = self._host(host)
        exact = content.fingerprint.digest[:_DIGEST]
        if is_told:
            known.wrong.pop(exact, None)
            known.wrong[content.likeness] = None
        elif _known_as(content, known) is None:
            known.wrong[exact] = None
        if len(known.wrong) > _MOST_WRONG:
            known.wrong.popitem(last=False)
        pages = known.replaced_by.pop(content.likeness, {})
        is_all = content.likeness in known.wrong
        return [(page, digest) for page, (_, digest) in pages.items() if is_all or digest[:_DIGEST] == exact]

    def to_list(self, host: int) -> list[str]:
        """Return the wrong pages of a host as plain data, for JSON."""
        known = self._hosts.get(host)
        return [digest.hex() for digest in known.wrong] if known is not None else []

    def load(self, host: int, data: list[str]) -> None:
        """Take over what `to_list` gave."""
        if data:
            self._host(host).wrong.update((bytes.fromhex(digest), None) for digest in data)

    def _host(self, host: int) -> _Host:
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = _Host()
            if len(self._hosts) > _MOST_HOSTS:
                self._forget_one()
        self._hosts.move_to_end(host)
        return known

    def _forget_one(self) -> None:
        """Forget the host that was heard of longest ago among those of which there is nothing to be kept."""
        for host, known in self._hosts.items():
            if not known.wrong:
                del self._hosts[host]
                return


def impossible_url(url: str, rng: Random) -> str:
    """Return the URL of a page beside another one that cannot exist.

    Examples
    --------
    >>> impossible_url("https://example.com/news/tea.html?id=7", Random(1))
    'https://example.com/news/no-such-page-91b7584a2265b1f5_.html'
    """
    name = f"no-such-page-{rng.getrandbits(64):016x}_"
    return urljoin(url, name + splitext(urlsplit(url).path)[1])


def _had_content(facts: PageFacts) -> bool:
    last_seen = facts.pending_fingerprint or facts.fingerprint
    return bool(last_seen and facts.recipe) and not Fingerprint(str(facts.recipe), bytes(last_seen or b"")).is_empty


def _known_as(content: Content, known: _Host) -> bytes | None:
    """Return the name by which content is known for a wrong page of a host; None if it is not."""
    names = content.likeness, content.fingerprint.digest[:_DIGEST]
    return next((name for name in names if name in known.wrong), None)


def _is_replaced(verdict: Verdict) -> bool:
    size = verdict.size
    return bool(verdict.changed) and size is not None and size.similarity < _LEFT_OF_A_REPLACED_PAGE
