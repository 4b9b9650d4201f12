"""Pages: the first pages in a chosen order, or the pages whose URL contains a text; each has a link to its why."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sqlalchemy import ColumnElement, Select, select

from crawlsched.pages import ERROR, LIVE, NEW
from crawlsched.store import Store, models
from crawlsched.store.listing import TABLES, Condition, listed
from crawlsched.store.rows import own
from crawlsched.web import words
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views import Context, choice, empty, section, table
from crawlsched.web.words import SHOWN

__all__ = ["pages"]

_COLUMNS = ("url", "state", "crawled_at", "n_crawls", "n_changes", "change_rate", "expected_freshness")
_page = models.pages.c
_WANTED = select(_page.page, *[TABLES["pages"][name].column.label(name) for name in _COLUMNS])
_factor = _page.change_rate_high / _page.change_rate_low
# Each order has a title, a heading for its value, the value, the key for sorting, and a condition for its pages.
ORDERS: dict[str, tuple[str, str, ColumnElement[Any], ColumnElement[Any], ColumnElement[bool]]] = {
    "changing": ("most changing", "changes found", _page.n_changes, _page.n_changes.desc(), _page.n_changes > 0),
    "oldest": ("longest not looked at", "looked at", _page.crawled_at, _page.crawled_at, _page.state == LIVE),
    "uncertain": ("least certain", "rate known to a factor of", _factor, _factor.desc(), _page.change_rate_low > 0),
    "failing": ("failing", "failures in a row", _page.n_errors, _page.n_errors.desc(), _page.state == ERROR),
    "new": ("never looked at", "known since", _page.first_seen, _page.first_seen, _page.state == NEW),
    "undelivered": ("not delivered", "changed", _page.changed_at, _page.page, _page.pending_fingerprint.is_not(None)),
}


def pages(context: Context) -> Html:
    """Return the main part of the page."""
    query, order = context.query.get("q", "").strip(), context.query.get("order", "")
    order = "" if query else order if order in ORDERS else "changing"
    sought = "URL, or a part of it"
    form = tag(
        "form",
        tag("input", type="search", name="q", value=query, placeholder=sought, aria_label=sought),
        tag("button", "Search"),
        method="get",
        action="pages",
        class_="search",
    )
    chosen = ORDERS[order][0] if order else None
    orders = choice({title: f"pages?order={name}" for name, (title, *_) in ORDERS.items()}, chosen, "choice tabs")
    body = _ordered(context, order) if order else _searched(context, query)
    return tag("main", section("Pages", form, orders, *body))


def _ordered(context: Context, name: str) -> list[Node]:
    offset = _offset(context.query.get("from", ""))
    _, heading, value, order, condition = ORDERS[name]
    ranked = _WANTED.add_columns(value.label("value")).where(condition).order_by(order, _page.page)
    rows = _rows(context.store, ranked.offset(offset).limit(SHOWN))
    if not rows:
        return [empty("Every change was delivered." if name == "undelivered" else "There is none.")]
    values = {row["page"]: _value(name, row["value"], context.now) for row in rows}
    starts = {"before": max(offset - SHOWN, 0)} if offset > 0 else {}
    if len(rows) == SHOWN:
        starts["more"] = offset + SHOWN
    pager = choice({word: f"pages?order={name}&from={start}" for word, start in starts.items()}, style="pager")
    # The number of changes found has a column of its own.
    shown = None if name == "changing" else heading
    return [_table(rows, context.now, shown, values), pager if starts else None]


def _value(order: str, value: float, now: float) -> Node:
    if order in ("oldest", "new", "undelivered"):
        return words.moment(value, now)
    if order == "uncertain":
        return f"{value:.2g}"
    return words.number(value)


def _offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _searched(context: Context, text: str) -> list[Node]:
    rows = _containing(context.store, text, SHOWN + 1)
    if not rows:
        return [empty("No page like this was found.")]
    more = empty("There are more pages. Type more of the URL.") if len(rows) > SHOWN else None
    return [_table(rows[:SHOWN], context.now, None, {}), more]


def _table(rows: list[dict[str, Any]], now: float, heading: str | None, values: dict[int, Node]) -> Html:
    headings = [("page", ""), (heading or "state", "r"), ("changes", "r"), ("changes every", "r w")]
    headings += [("fresh", "r"), ("last looked at", "r"), ("visits", "r w")]
    cells: list[list[Node]] = []
    for row in rows:
        state = row["state"] or "?"  # a damaged row has no state
        badge = None if state in ("live", "new") else tag("span", state, class_=f"badge {state}")
        link = tag("a", row["url"], href=f"page?url={quote(row['url'], safe='')}", class_="url")
        cells.append(
            [
                [link, badge],
                values.get(row["page"]) if heading else state,
                words.number(row["n_changes"]),
                words.per_time(row["change_rate"]).removeprefix("every "),
                words.share(row["expected_freshness"]),
                words.moment(row["crawled_at"], now),
                words.number(row["n_crawls"]),
            ]
        )
    return table(headings, cells)


def _rows(store: Store, wanted: Select[Any]) -> list[dict[str, Any]]:
    return [row._asdict() for row in store.rows(wanted.where(*own(models.pages, store.key)))]


def _containing(store: Store, text: str, limit: int) -> list[dict[str, Any]]:
    """Return the first pages whose URL contains a text. An index for this would slow down every new page."""
    if (page := store.reader.find(text)) is not None:
        return _rows(store, _WANTED.where(_page.page == page))
    with store.database.reading() as connection:
        rows = listed(connection, store.key, "pages", _COLUMNS, [Condition("url", "~", f"*{text}*")], None, limit)
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
