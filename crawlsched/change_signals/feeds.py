"""Feeds read by feedparser, which knows more kinds of them and of dates than anybody, and mends more damage."""

import re
from io import BytesIO
from time import struct_time
from typing import Any

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.entry_parts import is_page_link
from crawlsched.change_signals.lastmod import parse_lastmod
from crawlsched.change_signals.locations import is_web_url
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["MOST_CHARACTERS", "read_feed"]

#: Longer feeds are read by lxml alone.
MOST_CHARACTERS = 200_000
# Elements beyond which feedparser takes half a second and more.
_MOST_TAGS = 20_000
# Two of feedparser's regular expressions take quadratic time: on white space, and on the names of people, which do not
# matter here.
_WHITE_SPACE = re.compile(r"\s{16}\s*+")
_PEOPLE = re.compile(
    r"(</?(?:[\w.-]++:)?)(?:author|creator|managingeditor|webmaster|publisher|contributor|owner)\b", re.IGNORECASE
)
_DATES = ("updated", "published", "created")
_NUMBER = re.compile(r"\d+")
_CLOCK = re.compile(r"\d\s*:\s*(\d\d)")
_MERIDIEM = re.compile(r"\b[ap]\.?m\b", re.IGNORECASE)


def read_feed(text: str, collected: Collected, problems: ProblemCounter) -> bool:
    """Read a feed with feedparser.

    Parameters
    ----------
    text : str
        A feed of at most `MOST_CHARACTERS`, without document type, comments and CDATA sections (see `Mender`).
    collected : Collected
        Where its entries go.
    problems : ProblemCounter

    Returns
    -------
    bool
        Whether feedparser has read it; False if it has too many elements, or feedparser fails.

    Notes
    -----
    Nothing is fetched: feedparser is given bytes. An entry's page is its link, otherwise an id that is a URL; its date
    is that of its last update, otherwise of its publication. A date is read by `parse_lastmod` where it can, and by
    feedparser otherwise, unless that has invented something.

    Examples
    --------
    >>> from crawlsched.change_signals.limits import Limits
    >>> from crawlsched.change_signals.locations import Locations
    >>> problems = ProblemCounter()
    >>> collected = Collected("http://a/feed", Limits(), Locations("http://a/feed", (), problems), (), problems)
    >>> item = "<item><link>http://a/1</link><pubDate>Sat, 21 Nov 2026 03:00 GMT</pubDate></item>"
    >>> read_feed("<rss version='2.0'><channel>" + item + "</channel></rss>", collected, problems)
    True
    >>> collected.entries.url, collected.entries.lastmod_text
    (['http://a/1'], ['Sat, 21 Nov 2026 03:00 GMT'])
    """
    if text.count("<") > _MOST_TAGS:
        problems.add("odd-feed", f"more than {_MOST_TAGS} tags")
        return False
    text = _PEOPLE.sub(r"\1person", _WHITE_SPACE.sub("\n", text.strip()))
    import feedparser  # here: most programs and commands read no feed, and its loading takes long

    try:
        # The texts are not looked at, so there is nothing to make harmless in them.
        feed: Any = feedparser.parse(
            BytesIO(text.encode("utf-8", "replace")), sanitize_html=False, resolve_relative_uris=False
        )
    except Exception as error:  # whatever a body of bytes makes of a reader of many years
        problems.add("odd-feed", repr(error))
        return False
    if feed.get("bozo"):
        problems.add("damaged-feed", str(feed.get("bozo_exception", "")))
    for entry in feed.entries:
        if not collected.page(_places(entry), _dates(entry)):
            break
    return True


def _places(entry: Any) -> list[str]:
    """Return what may be the URL of an entry's page, the likeliest first."""
    links = [link for link in entry.get("links", ()) if link.get("href") and is_page_link(link.get("rel"))]
    pages = [entry["feedburner_origlink"]] if entry.get("feedburner_origlink") else []
    pages += [link["href"] for link in links if "html" in link.get("type", "html")]
    pages += [link["href"] for link in links]
    name = entry.get("id") or ""
    if not entry.get("links") and entry.get("link"):
        pages.append(entry["link"])
    # A guid stands in for a link where it is said to be one, or not said to be none; only a URL can be that.
    pages = [page for page in pages if page != name or is_web_url(page)]
    if entry.get("guidislink") and is_web_url(name):
        pages.append(name)
    return list(dict.fromkeys(pages))


def _dates(entry: Any) -> list[str]:
    """Return the dates of an entry as they are written, where they can be read so, and as feedparser reads them."""
    found: list[str] = []
    for name in _DATES:
        # Not by its own `get`, which takes the publication for a missing update, and warns of doing so.
        text = (dict.get(entry, name) or "").strip()
        if not text:
            continue
        moment = dict.get(entry, f"{name}_parsed")
        if parse_lastmod(text) is None and moment is not None and _is_said(text, moment):
            found.append(_written(text, moment))
        found.append(text)
    return found


def _is_said(text: str, moment: struct_time) -> bool:
    """Whether a date says what was made of it: its year, its day, and its time of day if it has one.

    A zone can move the day by one, and the minutes by quarters of an hour.
    """
    numbers = {int(number) for number in _NUMBER.findall(text[:200])}
    clock = _CLOCK.search(text)
    near = range(moment.tm_mday - 1, moment.tm_mday + 2) if clock else [moment.tm_mday]
    has_day = moment.tm_yday in numbers or not numbers.isdisjoint(near)
    if moment.tm_mday == 1 and clock:  # what was the last of the month elsewhere
        has_day = has_day or not numbers.isdisjoint((28, 29, 30, 31))
    if not has_day or numbers.isdisjoint((moment.tm_year, moment.tm_year % 100)):
        return False
    if clock is None:
        return moment.tm_hour == moment.tm_min == moment.tm_sec == 0
    return not _MERIDIEM.search(text) and (moment.tm_min - int(clock[1])) % 15 == 0


def _written(text: str, moment: struct_time) -> str:
    year, month, day, hour, minute, second = moment[:6]
    clock = f"T{hour:02}:{minute:02}:{second:02}Z" if _CLOCK.search(text) else ""
    return f"{year:04}-{month:02}-{day:02}{clock}"
