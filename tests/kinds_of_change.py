"""Kinds of noise and of edits, drawn from what people complain of: small pages, 12 of a template, visited 40 times.

Each kind is a function of a `Moment` that gives what a page answers then; those that words can say are in the table
beside this file. Its name says what it is about. Pages are edited three times each, by one word of a paragraph, unless
the kind edits something else by `Moment.version`.
"""

import gzip
import hashlib
import io
import json
import re
import struct
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from crawlsched.jobs.recorded import JudgedVisit, RecordedVisit, judge_all

PAGES, VISITS, EDITS = 12, 40, 3
HOUR = 3600.0
START = 1_700_000_000.0
WORDS = re.findall(
    r"\w+",
    "anchor basket bramble candle chimney cinder cobalt copper drizzle feather ferry garden granite harbour kettle "
    "lantern maple marble meadow mirror orchard pebble pepper ribbon river saddle silver thunder timber tunnel "
    "velvet walnut",
)


class Moment(NamedTuple):
    """A fetch of a page.

    Attributes
    ----------
    page : int
    hours : float
        Since the first visit of all.
    version : int
        How often the page was edited; of a kind in `COMMON`, all pages alike.
    fetch : Random
        Another one at each fetch.
    is_second : bool
        Whether it is a second fetch, made at once.
    before : int
        The version at the visit before.
    """

    page: int
    hours: float
    version: int
    fetch: Random
    is_second: bool = False
    before: int = 0


Kind = Callable[[Moment], bytes | str]
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
KINDS: dict[str, Kind] = {}
#: Of what is no page.
CONTENT_TYPES: dict[str, str] = _TABLE.pop("types")
#: Kinds in which all pages are edited alike: that is the site's, and told once.
COMMON: set[str] = set(_TABLE["common_edits"])
#: What is slower than two fetches made at once, and not alike on other pages: it is told each time. Of those that
#: differ at most visits it is suggested to leave them out.
SLOW: dict[str, bool] = _TABLE.pop("slow")
#: Kinds whose edit is the name of a class: there the names tell something.
BY_CLASS = {"hidden_by_class", "calendar_by_class", "icon_by_class"}
#: Kinds in which something else is answered at times: an edit that comes just then is seen one or two visits later.
PASSING = {"answers_cut_in_the_middle", "wall_in_a_fifth_of_fetches", "stale_replicas"}


def kind(function: Kind) -> Kind:
    """Take a kind in."""
    KINDS[function.__name__] = function
    return function


def name_of(page: int) -> str:
    """Return the heading of a page."""
    rng = Random(page)
    return f"{rng.choice(WORDS).title()} {rng.choice(WORDS)} {rng.choice(WORDS)} {page}"


def paragraphs(page: int, version: int = 0) -> list[str]:
    """Return the paragraphs of a page after so many edits of one word each."""
    texts = [Random(f"{page} {number}").choices(WORDS, k=25 + 3 * number) for number in range(4)]
    for edit in range(1, version + 1):
        rng = Random(f"{page} edit {edit}")
        words = texts[rng.randrange(4)]
        words[rng.randrange(len(words))] = f"{rng.choice(WORDS)}{WORDS[edit % len(WORDS)]}"
    return [" ".join(words) for words in texts]


def shop(
    moment: Moment, *, meta: str = "", price: str = "", stock: str = "In stock", text: str = "", side: str = "",
    foot: str = "", head: str = "", top: str = "", title: str = "", nav: str = "",
) -> str:  # fmt: skip
    """Return a page of a shop."""
    body = text or "".join(f"<p>{one}</p>" for one in paragraphs(moment.page, moment.version))
    name = name_of(moment.page)
    cost = price or f"{Random(moment.page).randint(500, 9_900) / 100:.2f}"
    return (
        f"<!DOCTYPE html><html><head><title>{title or name} | Harbour</title>{head}</head><body>{top}"
        "<header class=site><a class=logo href=/>Harbour</a>"
        f"<nav><ul><li><a href=/new>New in</a><li><a href=/sale>Sale</a>{nav}</ul></nav>"
        f"</header><main><article class=product><h1>{name}</h1><div class=meta>{meta}</div><div class=offer>"
        f"<span class=price>€ {cost}</span> <span class=stock>{stock}</span></div><div class=description>{body}</div>"
        f"</article></main><aside class=side>{side}</aside><footer class=site><p>© Harbour Ltd.</p>{foot}</footer>"
    )


def bare(moment: Moment, *, before: str = "", after: str = "") -> str:
    """Return a page without a class."""
    name = name_of(moment.page)
    text = "".join(f"<p>{text}</p>" for text in paragraphs(moment.page, moment.version))
    return f"<html><head><title>{name}</title></head><body><h1>{name}</h1>{before}{text}{after}</body></html>"


# -- kinds in the table


class Asked:
    """What a template asks for in square brackets."""

    def __init__(self, answer: Callable[[Any], object]) -> None:
        self._answer = answer

    def __getitem__(self, what: object) -> object:
        return self._answer(what)


def drawn(rng: Random, what: str) -> object:
    """Draw a token, a share, a number from one to another, or one of several texts."""
    if what in ("hex", "share"):
        return f"{rng.getrandbits(160):x}" if what == "hex" else rng.random()
    least, is_range, most = what.partition("-")
    return rng.randint(int(least), int(most)) if is_range else rng.choice(what.split("|"))


def said(template: str | list[str], m: Moment) -> str:
    """Fill in a template of the table."""
    text = template if isinstance(template, str) else template[m.version % len(template)]
    return text.format(
        page=m.page,
        version=m.version,
        name=name_of(m.page),
        p=paragraphs(m.page, m.version),
        fetch=Asked(partial(drawn, m.fetch)),
        visit=Asked(partial(drawn, Random(f"{m.page} {m.hours:.3f}"))),
        counter=Asked(lambda an_hour: 1000 + int(an_hour * m.hours) + m.page),
        every=Asked(lambda hours: int(m.hours / float(hours))),
        words=Asked(lambda hours: " ".join(Random(int(m.hours / hours)).choices(WORDS, k=12))),
    )


def _in_table(section: str, parts: dict[str, str | list[str]]) -> Kind:
    """Return the kind that a row of the table is."""
    page = bare if parts.keys() & {"before", "after"} else shop

    def answer(m: Moment) -> str:
        texts = {name: said(template, m) for name, template in parts.items()}
        return texts.get("body") or page(m._replace(version=0) if "edits" in section else m, **texts)

    return answer


KINDS |= {name: _in_table(section, parts) for section, rows in _TABLE.items() for name, parts in rows.items()}


# -- kinds that need more than words


@kind
def related_list_drawn_anew(m: Moment) -> str:
    items = "".join(f"<li><a href=/x>{name_of(n)}</a>" for n in m.fetch.sample(range(100, 130), 5))
    return shop(m, side=f"<ul class=related>{items}</ul>")


@kind
def list_in_another_order_at_each_fetch(m: Moment) -> str:
    items = "".join(f"<li>{name_of(n)}" for n in m.fetch.sample(range(100, 106), 6))
    return shop(m, side=f"<ul class=tags>{items}</ul>")


@kind
def list_in_another_order_every_six_hours(m: Moment) -> str:
    names = Random(f"{m.page} {int(m.hours / 6)}").sample(range(100, 106), 6)
    return shop(m, side=f"<ul class=popular>{''.join(f'<li>{name_of(n)}' for n in names)}</ul>")


@kind
def previous_and_next_title(m: Moment) -> str:
    step = int((m.hours + 3 * m.page) / 12)
    links = f"<a class=prev href=/p>{name_of(200 + step)}</a><a class=next href=/n>{name_of(300 + step)}</a>"
    return shop(m, side=links)


@kind
def advertisement_that_comes_and_goes(m: Moment) -> str:
    ad = f"<div class=ad>Buy {m.fetch.choice(WORDS)} {m.fetch.choice(WORDS)} now</div>"
    return shop(m, side=ad if m.fetch.random() < 0.6 else "")


@kind
def entry_in_the_navigation(m: Moment) -> str:
    return shop(m, nav="".join(f"<li><a href=/n{n}>News {n}</a>" for n in range(int(m.hours / 40))))


@kind
def banner_for_some_days(m: Moment) -> str:
    return shop(m, top="<div class=banner>Summer sale!</div>" if 40 < m.hours < 80 else "")


@kind
def entities_and_white_space(m: Moment) -> str:
    euro, paragraph = m.fetch.choice(["€ ", "&euro; ", "&#8364;\n "]), m.fetch.choice(["<p>", "<p >\n"])
    return shop(m).replace("€ ", euro).replace("<p>", paragraph)


@kind
def answers_cut_in_the_middle(m: Moment) -> str:
    page = bare(m)
    return page[: len(page) * 2 // 3] if m.fetch.random() < 0.06 else page


@kind
def stale_replicas(m: Moment) -> str:
    return bare(m._replace(version=m.before) if m.is_second and m.fetch.random() < 0.3 else m)


@kind
def wall_in_a_fifth_of_fetches(m: Moment) -> str:
    wall = "<html><title>Cookies</title><h1>Before you go on</h1><p>We and our partners value your privacy.</p>"
    return wall if m.fetch.random() < 0.2 else shop(m)


@kind
def discontinued_with_the_same_words(m: Moment) -> str:
    gone = "<h1>This product has been discontinued</h1><p>It will not come back.</p>"
    return f"<html><title>Tea</title><main>{gone}</main>" if m.version >= EDITS else shop(m)


@kind
def json_called_html(m: Moment) -> str:
    items = [{"name": name_of(m.page + n), "price": 5 + (m.version if n == 1 else 0)} for n in range(4)]
    keys = [("items", items), ("at", m.fetch.random()), ("kind", "shop")]
    m.fetch.shuffle(keys)
    return json.dumps(dict(keys))


@kind
def json_rows_in_any_order(m: Moment) -> str:
    rows = [f"{name_of(m.page + n)} {m.version if n == 1 else 0}" for n in range(5)]
    m.fetch.shuffle(rows)
    return json.dumps({"rows": rows})


@kind
def archive_packed_anew(m: Moment) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, text in enumerate(paragraphs(m.page, m.version)):
            when = (2026, 1 + m.fetch.randrange(12), 1, 0, 0, 0)
            archive.writestr(zipfile.ZipInfo(f"{number}.txt", when), text)
        archive.writestr("docProps/core.xml", str(m.fetch.random()))
    return packed.getvalue()


@kind
def gzip_packed_anew(m: Moment) -> bytes:
    return gzip.compress(" ".join(paragraphs(m.page, m.version)).encode(), mtime=m.fetch.randrange(10**9))


@kind
def picture_saved_anew(m: Moment) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(b"\0" + bytes([m.page, m.version, 7]) * 4, m.fetch.randrange(10))
    head = chunk(b"IHDR", struct.pack(">2I5B", 4, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tIME", str(m.fetch.random()).encode()) + chunk(b"IDAT", pixels)


_NAMES = re.compile(r"""\b(class|id)=("[^"]*"|'[^']*'|[^\s>]+)""")


def renamed(markup: str) -> str:
    """Give classes and ids names that say nothing, the same wherever they stand."""
    return _NAMES.sub(
        lambda match: f"{match[1]}='{' '.join(map(_renamed, match[2].strip(chr(34) + chr(39)).split()))}'", markup
    )


def _renamed(name: str) -> str:
    return "x" + "".join(chr(97 + byte % 26) for byte in hashlib.sha1(name.encode()).digest()[:8])


@dataclass
class Result:
    """What became of the visits of a kind."""

    edits: int = 0
    missed: int = 0
    quiet: int = 0
    false: int = 0
    templates: int = 0
    probes: int = 0
    visits: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def false_share(self) -> float:
        """Share of the visits without an edit that were delivered as changes of a page."""
        return self.false / max(self.quiet, 1)


def run(
    name: str, *, pages: int = PAGES, visits: int = VISITS, seed: int = 1, renames: bool = False, **options: object
) -> Result:
    """Judge a kind; edits are made between visits, each page's at times of its own unless the kind's are common."""
    rng, recorded, versions = Random(f"{name} {seed}"), [], []
    n_edits = 8 if any(word in name for word in ("comes_and_goes", "between_two", "status")) else EDITS
    edits = [sorted(rng.sample(range(4, visits), n_edits)) for _ in range(pages)]
    last = [0] * pages
    for number in range(visits):
        for page in range(pages):
            hours = 3.0 * number + page * 0.02
            version = sum(edit <= number for edit in edits[0 if name in COMMON else page])
            bodies = []
            for is_second in (False, True):
                fetch = Random(f"{seed} {name} {page} {number} {is_second}")
                body = KINDS[name](Moment(page, hours, version, fetch, is_second, last[page]))
                body = renamed(body) if renames and isinstance(body, str) else body
                bodies.append(body if isinstance(body, bytes) else body.encode())
            last[page] = version
            url = f"https://shop.example/product/{name_of(page).replace(' ', '-').lower()}"
            content_type = CONTENT_TYPES.get(name, "text/html; charset=utf-8")
            recorded.append(RecordedVisit(START + hours * HOUR, url, *bodies, 200, content_type))
            versions.append((page, version))
    return _counted(versions, list(judge_all(recorded, options, seed=seed)), name)


def _counted(versions: list[tuple[int, int]], judged: list[JudgedVisit], name: str) -> Result:
    result, given, late = Result(visits=len(judged), probes=sum(row.probes for row in judged)), {}, Counter[int]()
    rows = list(zip(versions, judged, strict=True))
    told = {version for (_, version), row in rows if row.delivered and row.kind != "first"}
    for (page, version), row in rows:
        if version == given.setdefault(page, version):
            result.quiet += row.kind != "first"
            result.templates += row.kind == "template"
            if row.delivered and row.kind not in ("template", "first"):
                result.false += 1
                result.errors.append(f"false: page {page}, {row.kind}, {row.ignored}")
        elif not row.delivered and late[page] < (2 if name in PASSING else 0):
            late[page] += 1
        else:
            given[page], late[page] = version, 0
            result.edits += 1
            if not (version in told if name in COMMON else row.delivered):
                result.missed += 1
                result.errors.append(f"missed: page {page}, {row.outcome}, {row.ignored}")
    return result
