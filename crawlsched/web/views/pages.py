"""Pages: the first of several orders, or those whose URL contains something; each leads to its why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from sqlalchemy import select

from crawlsched.pages import STATE_NAMES
from crawlsched.store import Store, models
from crawlsched.store.listing import Condition, listed
from crawlsched.store.records import first_pages
from crawlsched.store.rows import among, own
from crawlsched.web import words
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views import Context, choice, empty, section, table

__all__ = ["pages"]

_AT_ONCE, _FOUND = 50, 200
_COLUMNS = ("url", "state", "crawled_at", "n_crawls", "n_changes", "change_rate", "expected_freshness")
# The orders, and the word for what their value is.
ORDERS = {
    "changing": ("most changing", "changes found"),
    "oldest": ("longest not looked at", "looked at"),
    "uncertain": ("least certain", "rate known to a factor of"),
    "failing": ("failing", "failures in a row"),
    "new": ("never looked at", "known since"),
    "undelivered": ("not delivered", "changed"),
}


def pages(context: Context) -> Html:
    """Return the middle of the page."""
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
    orders = choice({title: f"pages?order={name}" for name, (title, _) in ORDERS.items()}, chosen, "choice tabs")
    body = _ordered(context, order) if order else _searched(context, query)
    return tag("main", section("Pages", form, orders, *body))


def _ordered(context: Context, order: str) -> list[Node]:
    offset, store = _offset(context.query.get("from", "")), context.store
    if order == "undelivered":
        ranked: list[tuple[int, float]] = [(page, 0.0) for page in store.reader.undelivered()[offset:][:_AT_ONCE]]
    else:
        ranked = first_pages(store, order, offset, _AT_ONCE)
    rows = _by_number(store, [page for page, _ in ranked])
    if not rows:
        return [empty("Every change was delivered." if order == "undelivered" else "None as of the last plan.")]
    values = {page: _value(order, value, context.now) for page, value in ranked}
    # The number of changes found has a column of its own.
    heading = None if order == "changing" else ORDERS[order][1]
    starts = {"before": max(offset - _AT_ONCE, 0)} if offset > 0 else {}
    if len(ranked) == _AT_ONCE:
        starts["more"] = offset + _AT_ONCE
    pager = choice({name: f"pages?order={order}&from={start}" for name, start in starts.items()}, style="pager")
    return [_table(rows, context.now, heading, values), pager if starts else None]


def _value(order: str, value: float, now: float) -> Node:
    if order in ("oldest", "new"):
        return words.moment(value, now)
    if order == "uncertain":
        return f"{2.718281828459045**value:.2g}"
    return words.number(value)


def _offset(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _searched(context: Context, text: str) -> list[Node]:
    rows = _containing(context.store, text, _FOUND + 1)
    if not rows:
        return [empty("No page like this was found.")]
    more = empty("There are more; name more of the URL.") if len(rows) > _FOUND else None
    return [_table(rows[:_FOUND], context.now, None, {}), more]


def _table(rows: list[dict[str, Any]], now: float, heading: str | None, values: dict[int, Node]) -> Html:
    headings = [("page", ""), (heading or "state", "r"), ("changes", "r"), ("changes every", "r w")]
    headings += [("fresh", "r"), ("last looked at", "r"), ("visits", "r w")]
    cells: list[list[Node]] = []
    for row in rows:
        state = row["state"]
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


def _state(number: int) -> str:
    return STATE_NAMES[number] if 0 <= number < len(STATE_NAMES) else "?"


def _by_number(store: Store, pages: Sequence[int]) -> list[dict[str, Any]]:
    """Return what is known of pages, in the order asked; one that is gone meanwhile is left out."""
    table = models.pages
    wanted = select(*[table.c[name] for name in ("page", *_COLUMNS)])
    with store.database.reading() as connection:
        rows = connection.execute(wanted.where(*own(table, store.key), among(table.c.page, pages)))
        found = {row.page: {**row._asdict(), "state": _state(row.state)} for row in rows}
    return [found[page] for page in pages if page in found]


def _containing(store: Store, text: str, limit: int) -> list[dict[str, Any]]:
    """Return the first pages whose URL contains a text; an index for this would cost every new page something."""
    if (page := store.reader.find(text)) is not None:
        return _by_number(store, [page])
    with store.database.reading() as connection:
        rows = listed(connection, store.key, "pages", _COLUMNS, [Condition("url", "~", f"*{text}*")], None, limit)
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
