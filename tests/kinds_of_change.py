"""Kinds of noise and of edits, drawn from what people complain of: small pages, 12 of a template, visited 40 times.

Each kind is a function of a `Moment` that gives what a page answers then, or parts of a page of a shop. Its name says
what it is about. Pages are edited three times each, by one word of a paragraph, unless the kind edits something
else by `Moment.version`.
"""

import gzip
import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from crawlsched.jobs.recorded import JudgedVisit, RecordedVisit, judge_all

PAGES, VISITS, EDITS = 12, 40, 3
HOUR = 3600.0
START = 1_700_000_000.0
WORDS = re.findall(
    r"\w+",
    (
        "anchor basket bramble candle chimney cinder cobalt copper drizzle feather ferry garden granite harbour kettle"
        " lantern maple marble meadow mirror orchard pebble pepper ribbon river saddle silver thunder timber tunnel"
        " velvet walnut"
    ),
)


@dataclass
class Moment:
    """A fetch of a page.

    Attributes
    ----------
    page : int
    hours : float
        Since the first visit of all.
    version : int
        How often the page was edited.
    common : int
        How often all pages were edited.
    fetch : Random
        Another one at each fetch.
    """

    page: int
    hours: float
    version: int
    common: int
    fetch: Random
    is_second: bool = False
    before: int = 0

    @property
    def visit(self) -> Random:
        """The same at fetches made at once, and another one at each visit."""
        return Random(f"{self.page} {self.hours:.3f}")

    def own(self, *what: object) -> Random:
        """The same at all times."""
        return Random(f"{self.page} {what}")


Kind = Callable[[Moment], bytes | str]
KINDS: dict[str, Kind] = {}
CONTENT_TYPES: dict[str, str] = {}
#: Kinds in which all pages are edited alike: that is the site's, and told once.
COMMON: set[str] = set()
#: What is slower than two fetches made at once, and not alike on other pages: it is told each time. Of those that
#: differ at most visits it is suggested to leave them out.
SLOW = {
    "list_in_another_order_every_six_hours": True, "previous_and_next_title": False, "poll_of_readers": True,
    "views_counted_up": True, "in_so_many_baskets": True, "counter_without_a_telling_name": True,
    "two_counters_and_a_clock": True, "meta_updated_time": True,
}  # fmt: skip
#: Kinds whose edit is the name of a class: there the names tell something.
BY_CLASS = {"hidden_by_class", "calendar_by_class", "icon_by_class"}
#: Kinds in which something else is answered at times: an edit that comes just then is seen one or two visits later.
PASSING = {"answers_cut_in_the_middle", "wall_in_a_fifth_of_fetches", "stale_replicas"}


def kind(function: Kind) -> Kind:
    """Take a kind in."""
    KINDS[function.__name__] = function
    return function


def of_type(content_type: str) -> Callable[[Kind], Kind]:
    """Take a kind in that is no page."""

    def take(function: Kind) -> Kind:
        CONTENT_TYPES[function.__name__] = content_type
        return kind(function)

    return take


def name_of(page: int) -> str:
    """Return the heading of a page."""
    rng = Random(page)
    return f"{rng.choice(WORDS).title()} {rng.choice(WORDS)} {rng.choice(WORDS)} {page}"


def paragraphs(page: int, version: int = 0, n: int = 4) -> list[str]:
    """Return the paragraphs of a page after so many edits of one word each."""
    texts = [Random(f"{page} {number}").choices(WORDS, k=25 + 3 * number) for number in range(n)]
    for edit in range(1, version + 1):
        rng = Random(f"{page} edit {edit}")
        words = texts[rng.randrange(n)]
        words[rng.randrange(len(words))] = f"{rng.choice(WORDS)}{WORDS[edit % len(WORDS)]}"
    return [" ".join(words) for words in texts]


def shop(
    moment: Moment, *, meta: str = "", price: str = "", stock: str = "In stock", text: str | None = None,
    side: str = "", foot: str = "", head: str = "", top: str = "", title: str = "", version: int | None = None,
    nav: str = "",
) -> str:  # fmt: skip
    """Return a page of a shop."""
    n = moment.version if version is None else version
    body = text if text is not None else "".join(f"<p>{one}</p>" for one in paragraphs(moment.page, n))
    name = name_of(moment.page)
    cost = price or f"{moment.own('price').randint(500, 9_900) / 100:.2f}"
    return (
        f"<!DOCTYPE html><html><head><title>{title or name} | Harbour</title>{head}</head><body>{top}"
        "<header class=site><a class=logo href=/>Harbour</a>"
        f"<nav><ul><li><a href=/new>New in</a><li><a href=/sale>Sale</a>{nav}</ul></nav>"
        f"</header><main><article class=product><h1>{name}</h1><div class=meta>{meta}</div><div class=offer>"
        f"<span class=price>€ {cost}</span> <span class=stock>{stock}</span></div><div class=description>{body}</div>"
        f"</article></main><aside class=side>{side}</aside><footer class=site><p>© Harbour Ltd.</p>{foot}</footer>"
    )


def in_shop(name: str, *, is_common: bool = False, **parts: Any) -> None:
    """Take in a kind that is a page of the shop, with parts by moment."""
    KINDS[name] = lambda m: shop(m, **{part: said(m) if callable(said) else said for part, said in parts.items()})
    if is_common:
        COMMON.add(name)


def bare(moment: Moment, *, before: str = "", between: str = "", after: str = "", version: int | None = None) -> str:
    """Return a page without a class."""
    n = moment.version if version is None else version
    texts = [f"<p>{text}</p>" for text in paragraphs(moment.page, n)]
    name = name_of(moment.page)
    return (
        f"<html><head><title>{name}</title></head><body><h1>{name}</h1>{before}{texts[0]}{texts[1]}{between}"
        f"{texts[2]}{texts[3]}{after}</body></html>"
    )


# -- noise of each fetch


in_shop(
    "clock_in_footer", foot=lambda m: f"<p class=now>It is 12:{m.fetch.randint(10, 59)}:{m.fetch.randint(10, 59)}</p>"
)


@kind
def clock_in_bare_footer(m: Moment) -> str:
    return bare(m, after=f"<footer>It is {m.fetch.random():.6f}</footer>")


@kind
def related_list_drawn_anew(m: Moment) -> str:
    items = "".join(f"<li><a href=/x>{name_of(n)}</a>" for n in m.fetch.sample(range(100, 130), 5))
    return shop(m, side=f"<ul class=related>{items}</ul>")


@kind
def list_in_another_order_at_each_fetch(m: Moment) -> str:
    items = "".join(f"<li>{name_of(n)}" for n in m.fetch.sample(range(100, 106), 6))
    return shop(m, side=f"<ul class=tags>{items}</ul>")


@kind
def advertisement_that_comes_and_goes(m: Moment) -> str:
    ad = f"<div class=ad>Buy {m.fetch.choice(WORDS)} {m.fetch.choice(WORDS)} now</div>"
    return shop(m, side=ad if m.fetch.random() < 0.6 else "")


in_shop(
    "trial_of_four_headings",
    side=lambda m: f"<p class=subscribe>{m.fetch.choice(['Subscribe', 'Read on', 'Join us', 'Support us'])}</p>",
)
in_shop(
    "token_in_a_hidden_field",
    side=lambda m: f"<form><input type=hidden name=csrf_token value={m.fetch.getrandbits(160):x}></form>",
)
in_shop(
    "request_id_in_a_field",
    side=lambda m: f"<form><input type=hidden name=rid value={m.fetch.getrandbits(64):x}></form>",
)
in_shop(
    "reader_named_beside_the_author",
    version=0,
    meta=lambda m: f"<p>seen by {m.fetch.choice(WORDS)}, written by {WORDS[(m.page + m.version) % 32]}, Harbour</p>",
)
in_shop(
    "boxes_that_change_places",
    side=lambda m: "".join(m.fetch.sample([f"<div class={name}>{name_of(n)}</div>" for n, name in enumerate("ab")], 2)),
)
in_shop("token_in_data_attribute", side=lambda m: f'<div class=box data-seed="{m.fetch.getrandbits(40)}">Box</div>')


@kind
def json_ld_with_a_time(m: Moment) -> str:
    data = {"@type": "Product", "name": name_of(m.page), "dateModified": f"2026-01-01T{m.fetch.random()}"}
    return shop(m, head=f'<script type="application/ld+json">{json.dumps(data)}</script>')


@kind
def next_data_with_build_and_time(m: Moment) -> str:
    data = {"props": {"name": name_of(m.page), "now": m.fetch.random()}, "buildId": f"{m.fetch.getrandbits(64):x}"}
    return shop(m, foot=f'<script id=__NEXT_DATA__ type="application/json">{json.dumps(data)}</script>')


in_shop(
    "state_in_a_script_variable",
    foot=lambda m: f"<script>window.__STATE__ = {json.dumps({'requestId': m.fetch.random()})};</script>",
)


@kind
def table_without_classes(m: Moment) -> str:
    rows = "".join(
        f"<tr><td>Lot {name_of(m.page * 7 + n)}</td><td>{m.fetch.randint(1, 99)} bids</td>"
        f"<td>{m.fetch.randint(1, 99)} min</td><td>€ {100 + n + (m.version if n == 2 else 0)}</td></tr>"
        for n in range(4)
    )
    return f"<html><title>{name_of(m.page)}</title><h1>Auction {m.page}</h1><table><tbody>{rows}</table>"


in_shop("comment_of_a_server", foot=lambda m: f"<!-- served by web{m.fetch.randint(1, 9)} in {m.fetch.random()} s -->")


@kind
def class_names_made_up(m: Moment) -> str:
    name = "".join(m.fetch.choices("abcdefghij", k=6))
    return shop(m, text="".join(f"<p class=css-{name}>{text}</p>" for text in paragraphs(m.page, m.version)))


in_shop("links_with_a_session", side=lambda m: f'<a href="/next?sid={m.fetch.getrandbits(64):x}">More</a>')


@kind
def entities_and_white_space(m: Moment) -> str:
    return (
        shop(m)
        .replace("€ ", m.fetch.choice(["€ ", "&euro; ", "&#8364;\n "]))
        .replace("<p>", m.fetch.choice(["<p>", "<p >\n"]))
    )


in_shop(
    "numbered_waiting_line",
    meta=lambda m: f"<span class=queue>{m.fetch.randint(1, 500)} people are viewers of this page right now</span>",
)


# -- noise of each visit, or slower


in_shop("views_counted_up", meta=lambda m: f"<span class=views>{3000 + int(10 * m.hours) + m.page} views</span>")
in_shop("in_so_many_baskets", meta=lambda m: f"<span class=social>In {m.visit.randint(2, 40)} baskets</span>")
in_shop("counter_without_a_telling_name", meta=lambda m: f"<b class=k>{5000 + int(13 * m.hours) + 7 * m.page}</b>")
in_shop("updated_so_long_ago", meta=lambda m: f"<time>{int(m.hours / 24) + 3} days ago</time>")


@kind
def list_in_another_order_every_six_hours(m: Moment) -> str:
    names = Random(f"{m.page} {int(m.hours / 6)}").sample(range(100, 106), 6)
    return shop(m, side=f"<ul class=popular>{''.join(f'<li>{name_of(n)}' for n in names)}</ul>")


@kind
def previous_and_next_title(m: Moment) -> str:
    step = int((m.hours + 3 * m.page) / 12)
    return shop(
        m,
        foot="",
        side=f"<a class=prev href=/p>{name_of(200 + step)}</a><a class=next href=/n>{name_of(300 + step)}</a>",
    )


in_shop(
    "testimonial_of_the_day",
    side=lambda m: (
        f"<blockquote class=testimonial>{' '.join(Random(int(m.hours / 24)).choices(WORDS, k=12))}</blockquote>"
    ),
)
in_shop(
    "poll_of_readers",
    side=lambda m: f"<p class=poll-hits>Yes {1000 + int(30 * m.hours)}, no {700 + int(11 * m.hours)}</p>",
)
in_shop(
    "rate_in_the_header",
    top=lambda m: f"<div class=topbar-ticker>EURUSD {1 + Random(int(m.hours * 2)).random():.4f}</div>",
)


@kind
def two_counters_and_a_clock(m: Moment) -> str:
    meta = f"<i class=hits>{int(m.hours * 9) + m.page}</i><i class=online>{m.visit.randint(3, 99)}</i>"
    return shop(m, meta=meta, foot=f"<p class=clock>{m.fetch.random()}</p>")


in_shop("meta_updated_time", head=lambda m: f'<meta property="og:updated_time" content="{int(m.hours * 3600)}">')
in_shop("data_attribute_of_age", side=lambda m: f'<div class=box data-age="{int(m.hours * 60)}">Box</div>')


# -- edits of the template


in_shop("release_in_the_header", top=lambda m: f"<ul><li id=projectVersion>Version: 2.{int(m.hours / 30)}</li></ul>")
in_shop("release_in_the_title", title=lambda m: f"{name_of(m.page)} (Harbour 2.{int(m.hours / 40)} API)")
in_shop(
    "entry_in_the_navigation",
    nav=lambda m: "".join(f"<li><a href=/n{n}>News {n}</a>" for n in range(int(m.hours / 40))),
)
in_shop("year_in_the_footer", foot=lambda m: f"<p>Copyright {2025 + int(m.hours / 60)} of us all</p>")
in_shop("banner_for_some_days", top=lambda m: "<div class=banner>Summer sale!</div>" if 40 < m.hours < 80 else "")


# -- answers that are something else


@kind
def answers_cut_in_the_middle(m: Moment) -> str:
    page = bare(m)
    return page[: len(page) * 2 // 3] if m.fetch.random() < 0.06 else page


@kind
def stale_replicas(m: Moment) -> str:
    return bare(m, version=m.before if m.is_second and m.fetch.random() < 0.3 else None)


@kind
def wall_in_a_fifth_of_fetches(m: Moment) -> str:
    wall = "<html><title>Cookies</title><h1>Before you go on</h1><p>We and our partners value your privacy.</p>"
    return wall if m.fetch.random() < 0.2 else shop(m)


# -- bodies that are no pages


def _items(m: Moment) -> dict[str, object]:
    return {"items": [{"name": name_of(m.page + n), "price": 5 + (m.version if n == 1 else 0)} for n in range(4)]}


@of_type("application/json")
def json_generated_at(m: Moment) -> str:
    return json.dumps({"generated_at": m.fetch.random(), **_items(m)})


@of_type("text/html")
def json_called_html(m: Moment) -> str:
    keys = [*_items(m).items(), ("at", m.fetch.random()), ("kind", "shop")]
    m.fetch.shuffle(keys)
    return json.dumps(dict(keys))


@of_type("application/json")
def json_rows_in_any_order(m: Moment) -> str:
    rows = [f"{name_of(m.page + n)} {m.version if n == 1 else 0}" for n in range(5)]
    m.fetch.shuffle(rows)
    return json.dumps({"rows": rows})


@of_type("application/x-ndjson")
def json_lines_with_a_stamp(m: Moment) -> str:
    rows = ({"name": name_of(m.page + n), "at": m.fetch.random(), "price": 5 + m.version * (n == 1)} for n in range(4))
    return "\n".join(map(json.dumps, rows))


@of_type("text/csv")
def csv_with_a_stamp(m: Moment) -> str:
    rows = "".join(f"{name_of(m.page + n)},{5 + (m.version if n == 1 else 0)}\n" for n in range(4))
    return f"# generated {m.fetch.random()}\nname,price\n{rows}"


@of_type("text/csv")
def csv_with_a_column_of_times(m: Moment) -> str:
    rows = "".join(f"{name_of(m.page + n)},{5 + (m.version if n == 1 else 0)},{m.fetch.random()}\n" for n in range(4))
    return f"name,price,fetched_at\n{rows}"


@of_type("text/calendar")
def calendar_with_a_stamp(m: Moment) -> str:
    event = f"DTSTAMP:2026{int(m.fetch.random() * 1e9)}\nDTSTART:20260{1 + m.version}01\nSUMMARY:{name_of(m.page)}\n"
    return f"BEGIN:VCALENDAR\nBEGIN:VEVENT\n{event}END:VEVENT\nEND:VCALENDAR\n"


@of_type("text/plain")
def text_with_a_time(m: Moment) -> str:
    lines = "\n".join(paragraphs(m.page, m.version))
    return f"{name_of(m.page)}\nPrinted: {m.fetch.random()}\n{lines}\n"


@of_type("application/rss+xml")
def feed_built_anew(m: Moment) -> str:
    items = "".join(f"<item><title>{text}</title></item>" for text in paragraphs(m.page, m.version))
    return f"<rss><channel><lastBuildDate>{m.fetch.random()}</lastBuildDate>{items}</channel></rss>"


@of_type("text/xml")
def xml_with_a_request_id(m: Moment) -> str:
    items = "".join(f"<item>{text}</item>" for text in paragraphs(m.page, m.version))
    return f"<list><requestId>{m.fetch.random()}</requestId>{items}</list>"


@of_type("application/pdf")
def pdf_made_anew(m: Moment) -> str:
    text = " ".join(paragraphs(m.page, m.version))
    date = f"(D:2026{int(m.fetch.random() * 1e9)})"
    made = f"/Producer (x{m.fetch.random()}) /CreationDate {date} /ModDate {date}"
    return f"%PDF-1.7\n1 0 obj<<{made}>>\n({text}) Tj\n/ID [<{date}>]"


@of_type("application/zip")
def archive_packed_anew(m: Moment) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number, text in enumerate(paragraphs(m.page, m.version)):
            when = (2026, 1 + m.fetch.randrange(12), 1, 0, 0, 0)
            archive.writestr(zipfile.ZipInfo(f"{number}.txt", when), text)
        archive.writestr("docProps/core.xml", str(m.fetch.random()))
    return packed.getvalue()


@of_type("application/gzip")
def gzip_packed_anew(m: Moment) -> bytes:
    return gzip.compress(" ".join(paragraphs(m.page, m.version)).encode(), mtime=m.fetch.randrange(10**9))


@of_type("image/png")
def picture_saved_anew(m: Moment) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    pixels = zlib.compress(b"\0" + bytes([m.page, m.version, 7]) * 4, m.fetch.randrange(10))
    head = chunk(b"IHDR", struct.pack(">2I5B", 4, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tIME", str(m.fetch.random()).encode()) + chunk(b"IDAT", pixels)


# -- edits of what is no paragraph


in_shop("price_edited", price=lambda m: f"{20 + m.page + m.version}.00", version=0)
in_shop("price_between_two_values", price=lambda m: "19.90" if m.version % 2 else "24.90", version=0)
in_shop("stock_that_comes_and_goes", stock=lambda m: "Sold out" if m.version % 2 else "In stock", version=0)


@kind
def status_of_a_service(m: Moment) -> str:
    return bare(m, before=f"<p class=state>{'Outage' if m.version % 2 else 'All works'}</p>", version=0)


in_shop("same_price_rises_everywhere", is_common=True, price=lambda m: f"{19 + m.common}.90", version=0)
in_shop(
    "sold_out_everywhere_and_back",
    is_common=True,
    stock=lambda m: "Sold out" if m.common % 2 else "In stock",
    version=0,
)
in_shop(
    "clause_of_all_contracts",
    is_common=True,
    meta=lambda m: f"<p>You may return goods within {30 - m.common} days.</p>",
    version=0,
)


for _name, _off, _on in (
    ("hidden_by_class", "<p class='notice hidden'>Recalled.</p>", "<p class=notice>Recalled.</p>"),
    ("hidden_by_attribute", "<p hidden>Recalled.</p>", "<p>Recalled.</p>"),
    ("hidden_by_style", "<p style='display:none'>Recalled.</p>", "<p style='display:block'>Recalled.</p>"),
    ("button_disabled", "<button disabled>Add</button>", "<button>Add</button>"),
    ("button_by_value", "<input type=submit value='Add'>", "<input type=submit value='Notify me'>"),
    ("option_chosen", "<select><option selected>A<option>B</select>", "<select><option>A<option selected>B</select>"),
    ("box_checked", "<input type=checkbox checked>", "<input type=checkbox>"),
    ("field_read_only", "<input value=5 readonly>", "<input value=5>"),
    ("struck_out", "<p>Talk at <s>nine</s></p>", "<p>Talk at nine</p>"),
    ("alternative_text", "<img alt='Open daily' src=/1>", "<img alt='Closed' src=/1>"),
    ("label_for_screen_readers", "<i aria-label='4 stars'></i>", "<i aria-label='3 stars'></i>"),
    ("meter_moves", "<meter value=0.2></meter>", "<meter value=0.9></meter>"),
    ("list_starts_elsewhere", "<ol start=1><li>a</ol>", "<ol start=5><li>a</ol>"),
    ("svg_text", "<svg><text>12</text></svg>", "<svg><text>13</text></svg>"),
    ("shadow_root", "<div><template shadowrootmode=open>A</template></div>",
     "<div><template shadowrootmode=open>B</template></div>"),
    ("frame_by_srcdoc", "<iframe srcdoc='&lt;p&gt;one'></iframe>", "<iframe srcdoc='&lt;p&gt;two'></iframe>"),
    ("text_becomes_link", "<p>Apply here</p>", "<p><a href=/apply>Apply here</a></p>"),
    ("rows_with_ids_swapped", "<ul><li id=x>Xavier<li id=y>Yvonne</ul>", "<ul><li id=y>Yvonne<li id=x>Xavier</ul>"),
    ("rows_swapped", "<ol><li>Xavier<li>Yvonne<li>Zoe</ol>", "<ol><li>Yvonne<li>Xavier<li>Zoe</ol>"),
    ("calendar_by_class", "<td class='day free'>7</td>", "<td class='day booked'>7</td>"),
    ("icon_by_class", "<i class=icon-check></i>", "<i class=icon-cross></i>"),
    ("itemprop", "<meta itemprop=price content=5>", "<meta itemprop=price content=6>"),
    ("comma", "<p>Eat, kids.</p>", "<p>Eat kids.</p>"),
    ("paragraph_added", "", "<p>It was recalled.</p>"),
    ("digits_in_a_sentence", "<p>It weighs 100 grams and is blue.</p>", "<p>It weighs 120 grams and is blue.</p>"),
    ("json_ld_price", '<script type="application/ld+json">{"offers": {"price": 5}}</script>',
     '<script type="application/ld+json">{"offers": {"price": 6}}</script>'),
    ("json_ld_availability", '<script type="application/ld+json">[{"availability": "InStock"}]</script>',
     '<script type="application/ld+json">[{"availability": "OutOfStock"}]</script>'),
):  # fmt: skip
    in_shop(_name, version=0, meta=lambda m, of=(_off, _on): of[m.version % 2])


@kind
def next_data_alone(m: Moment) -> str:
    data = {"props": {"product": {"id": m.page, "price": 10 + m.version}}}
    script = f'<script id=__NEXT_DATA__ type="application/json">{json.dumps(data)}</script>'
    return f"<html><title>Shop</title><div id=app></div>{script}"


in_shop(
    "description_for_search_engines",
    head=lambda m: f'<meta name=description content="Now for {20 + m.version}">',
    version=0,
)
in_shop(
    "open_graph_price", head=lambda m: f'<meta property="product:price:amount" content="{20 + m.version}">', version=0
)


@kind
def discontinued_with_the_same_words(m: Moment) -> str:
    gone = (
        "<html><title>Tea</title><main><h1>This product has been discontinued</h1><p>It will not come back.</p></main>"
    )
    return gone if m.version >= EDITS else shop(m)


in_shop(
    "price_beside_a_clock",
    price=lambda m: f"{20 + m.page + m.version}.00",
    version=0,
    meta=lambda m: f"<i class=served>{m.fetch.random()}</i>",
)
in_shop(
    "price_beside_a_counter_in_one_text",
    version=0,
    meta=lambda m: f"<p>{m.fetch.randint(2, 99)} people look at this · € {20 + m.version}</p>",
)


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
    function, rng = KINDS[name], Random(f"{name} {seed}")
    n_edits = 8 if "comes_and_goes" in name or "between_two" in name or "status" in name else EDITS
    edits = {page: sorted(rng.sample(range(4, visits), n_edits)) for page in range(pages)}
    common_edits = sorted(rng.sample(range(4, visits), n_edits))
    recorded, versions = [], []
    last = dict.fromkeys(range(pages), 0)
    for number in range(visits):
        for page in range(pages):
            hours = 3.0 * number + page * 0.02
            at = common_edits if name in COMMON else edits[page]
            version = sum(edit <= number for edit in at)
            bodies = []
            for is_second in (False, True):
                fetch = Random(f"{seed} {name} {page} {number} {is_second}")
                moment = Moment(page, hours, version, version, fetch, is_second, last[page])
                body = function(moment)
                body = renamed(body) if renames and isinstance(body, str) else body
                bodies.append(body if isinstance(body, bytes) else body.encode())
            last[page] = version
            url = f"https://shop.example/product/{name_of(page).replace(' ', '-').lower()}"
            content_type = CONTENT_TYPES.get(name, "text/html; charset=utf-8")
            recorded.append(RecordedVisit(START + hours * HOUR, url, *bodies, 200, content_type))
            versions.append((page, version))
    return _counted(
        versions, list(judge_all(recorded, options, seed=seed)), 2 if name in PASSING else 0, name in COMMON
    )


def _counted(versions: list[tuple[int, int]], judged: list[JudgedVisit], patience: int, is_common: bool) -> Result:
    result, given = Result(), {}
    told = {
        version for (_, version), row in zip(versions, judged, strict=True) if row.delivered and row.kind != "first"
    }
    late: dict[int, int] = {}
    for (page, version), row in zip(versions, judged, strict=True):
        result.visits += 1
        result.probes += row.probes
        if page not in given:
            given[page] = version
            continue
        if version != given[page] and not row.delivered and late.get(page, 0) < patience:
            late[page] = late.get(page, 0) + 1
        elif version != given[page]:
            late[page] = 0
            result.edits += 1
            if not (version in told if is_common else row.delivered):
                result.missed += 1
                result.errors.append(f"missed: page {page}, {row.outcome}, {row.ignored}")
            given[page] = version
        else:
            result.quiet += 1
            result.templates += row.kind == "template"
            if row.delivered and row.kind != "template":
                result.false += 1
                result.errors.append(f"false: page {page}, {row.kind}, {row.ignored}")
    return result
