"""Text sitemaps: one URL on each line."""

import csv
import re
from collections.abc import Iterable
from itertools import chain
from time import sleep

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.limits import Limits
from crawlsched.change_signals.locations import parted_locations
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["read_lines"]

_BEHIND = ",;\"'<>"
_SCHEMES = ("http://", "https://")
# The first line of a table whose first column has the URLs.
_HEADER = re.compile(r"""\W*(?:url|loc|location|link|page|address)s?["']?\s*([,;|\t])""", re.IGNORECASE)


def read_lines(text: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    r"""Read a list of URLs into `collected`; return "text", or "unknown" if no line is one.

    Lines that are no URL with a scheme (prose, comments, hosts) are left out and counted.
    """
    kind = "unknown"
    others: list[str] = []
    n_others = 0
    between = ""
    for line in _lines(text, limits.max_text):
        first = next(csv.reader([line or '""'], delimiter=between))[0] if between else line
        locations = [place for text in parted_locations(first) if (place := text.rstrip(_BEHIND))]
        if not all(map(_is_url, locations)):
            if header := _HEADER.match(line):
                between = header[1]
            n_others += 1
            others = others or [line]
            if not collected.look():
                break
            continue
        if not locations:
            continue
        kind = "text"
        if len(line) > limits.max_text:
            problems.add("text-too-long", line)
            continue
        if locations != [line.strip()]:
            problems.add("around-url", line)
        if not all(collected.page([place]) for place in locations):
            break
    if others and kind == "text":
        problems.add("not-a-url", others[0], n_others)
    return kind


def _is_url(text: str) -> bool:
    """Whether a text begins as a URL does, and it is clear where that ends."""
    has_columns = " " in text and any(character in text for character in ",;|")
    return text[:8].lower().startswith(_SCHEMES) and not has_columns


def _lines(text: Iterable[str], max_text: int) -> Iterable[str]:
    """Give the lines of a text, of a line that is too long as much as shows that."""
    rest = ""
    for piece in chain(text, ("\n",)):
        *lines, rest = (rest + piece).replace("\r", "\n").split("\n")
        rest = rest[: max_text + 1]
        yield from lines
        sleep(0)  # gives up the interpreter lock
