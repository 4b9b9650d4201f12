"""Text sitemaps: one URL on each line."""

from collections.abc import Iterable
from itertools import chain
from time import sleep

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.limits import Limits
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["read_lines"]

_SCHEMES = ("http://", "https://")


def read_lines(text: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    r"""Read a list of URLs; return "text", or "unknown" if no line is one.

    Parameters
    ----------
    text : iterable of str
        The document, in pieces.
    collected : Collected
        Where its URLs go. Lines which are no URL with a scheme (prose, comments, hosts) are left out and counted [1]_.
    limits : Limits
    problems : ProblemCounter

    References
    ----------
    .. [1] sitemaps.org (2016), "Sitemaps XML format": text files hold nothing but fully specified URLs.

    Examples
    --------
    >>> from crawlsched.change_signals.locations import Locations
    >>> problems = ProblemCounter()
    >>> collected = Collected("http://a/", Limits(), Locations("http://a/", (), problems), (), problems)
    >>> read_lines(["All pages:\nhttp://a/1\nhttp", "://a/2"], collected, Limits(), problems)
    'text'
    >>> collected.entries.url, problems.problems()[0].kind
    (['http://a/1', 'http://a/2'], 'not-a-url')
    """
    kind = "unknown"
    others: list[str] = []
    n_others = 0
    for line in _lines(text, limits.max_text):
        location = line.strip("\ufeff\x00 \t\xa0")
        if not location:
            continue
        if not location[:8].lower().startswith(_SCHEMES):
            n_others += 1
            others = others or [location]
            if not collected.look():
                break
            continue
        kind = "text"
        if len(location) > limits.max_text:
            problems.add("text-too-long", location)
        elif not collected.page([location]):
            break
    if others and kind == "text":
        problems.add("not-a-url", others[0], n_others)
    return kind


def _lines(text: Iterable[str], max_text: int) -> Iterable[str]:
    """Give the lines of a text, of a line that is too long as much as shows that."""
    rest = ""
    for piece in chain(text, ("\n",)):
        *lines, rest = (rest + piece).replace("\r", "\n").split("\n")
        rest = rest[: max_text + 1]
        yield from lines
        sleep(0)  # gives up the interpreter lock
