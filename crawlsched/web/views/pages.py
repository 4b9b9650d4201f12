"""Pages: the first of several orders, those of all whose URL contains something, or both; each leads to its why."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from crawlsched.pages import STATE_NAMES
from crawlsched.web import page_rows, words
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views.context import Context, empty, section, table

__all__ = ["pages"]

# As many as there are of an order (`crawlsched.refresh.figures`), and as are shown at once.
_MOST, _AT_ONCE = 1_000, 50
#: The orders, and the word for what their value is.
ORDERS = {
    "changing": ("most changing", "changes found"),
    "oldest": ("longest not looked at", "looked at"),
    "uncertain": ("least certain", "rate known to a factor of"),
    "failing": ("failing", "failures in a row"),
    "new": ("never looked at", "known since"),
    "undelivered": ("not delivered", "changed"),
    "withheld": ("held back", "held back"),
}


def pages(context: Context) -> Html:
    """Return the middle of the page."""
    query = context.query.get("q", "").strip()
    order = context.query.get("order", "" if query else "changing")
    order = order if order in ORDERS or (query and not order) else "changing"
    form = tag(
        "form",
        tag(
            "input",
            type="search",
            name="q",
            value=query,
            placeholder="URL, or a part of it",
            aria_label="URL, or a part of it",
        ),
        tag("button", "Search"),
        method="get",
        action="pages",
        class_="search",
    )
    # What is searched for among all pages can be looked for among the first of an order, too.
    shown = [("", "all")] if query else []
    shown += [(name, said) for name, (said, _) in ORDERS.items()]
    tabs = tag(
        "nav",
        *[
            tag("a", said, href=f"pages?{_query(name, query)}", class_="chosen" if name == order else None)
            for name, said in shown
        ],
        class_="choice tabs",
    )
    body = _ordered(context, order, query) if order else _searched(context, query)
    return tag("main", section("Pages", form, tabs, *body))


def _query(order: str, text: str) -> str:
    return urlencode({name: value for name, value in (("order", order), ("q", text)) if value})


def _ordered(context: Context, order: str, text: str) -> list[Node]:
    offset = _number(context.query.get("from", "0"))
    store = context.store
    if order == "withheld":
        return _withheld(context, offset, text)
    # To be looked through for a text, they all have to be read.
    start, most = (0, _MOST) if text else (offset, _AT_ONCE)
    if order == "undelivered":
        ranked: list[tuple[int, float]] = [(page, 0.0) for page in store.reader.undelivered()[start : start + most]]
    else:
        ranked = store.first_pages.read(order, start, most)
    values = dict(ranked)
    rows = page_rows.by_number(store, [page for page, _ in ranked])
    more = len(ranked) == _AT_ONCE
    if text:
        rows = [row for row in rows if text in row["url"]][offset:]
        rows, more = rows[:_AT_ONCE], len(rows) > _AT_ONCE
    if not rows:
        none = "None as of the last plan." if order != "undelivered" else "Every change was delivered."
        return [empty(f"None of the first {_MOST:,} is like this." if text else none)]
    said = {page: _value(order, value, context.now) for page, value in values.items()}
    # How many changes were found has a column of its own.
    value = None if order == "changing" else ORDERS[order][1]
    return [_table(rows, context.now, value, said), _pager(_query(order, text), offset, more=more)]


def _value(order: str, value: float, now: float) -> Node:
    if order in ("oldest", "new"):
        return words.moment(value, now)
    if order == "uncertain":
        return f"{2.718281828459045**value:.2g}"
    return words.number(value)


def _searched(context: Context, text: str) -> list[Node]:
    after = _number(context.query.get("after", "-1"), -1)
    rows, goes_on = page_rows.search(context.store, text, after, _AT_ONCE)
    more = None
    if goes_on is not None:
        said = "more" if rows else "none so far; go on searching"
        more = tag("nav", tag("a", said, href=f"pages?{urlencode({'q': text, 'after': goes_on})}"), class_="pager")
    if not rows:
        return [empty("No page like this was found." if more is None else "Not found so far."), more]
    return [_table(rows, context.now, None, {}), more]


def _withheld(context: Context, offset: int, text: str) -> list[Node]:
    rows = [
        (at, url, reason)
        for host in context.store.reader.hosts(notable_at=context.now)
        for reason, row in host.counts.get("withheld", {}).items()
        for url, at in row.get("urls", ())
        if text in url
    ]
    rows.sort(reverse=True)
    shown = rows[offset : offset + _AT_ONCE]
    if not shown:
        return [empty("Nothing was held back.")]
    cells: list[list[Node]] = [[_link(url), reason, words.moment(at, context.now)] for at, url, reason in shown]
    more = len(rows) > offset + _AT_ONCE
    return [
        table([("page", ""), ("why", ""), ("when", "r")], cells),
        _pager(_query("withheld", text), offset, more=more),
    ]


def _table(rows: list[dict[str, Any]], now: float, value: str | None, said: dict[int, Node]) -> Html:
    headings = [("page", ""), (value or "state", "r"), ("changes", "r"), ("changes every", "r w")]
    headings += [("fresh", "r"), ("last looked at", "r"), ("visits", "r w")]
    cells: list[list[Node]] = []
    for row in rows:
        state = STATE_NAMES[row["state"]] if 0 <= row["state"] < len(STATE_NAMES) else "?"
        cells.append(
            [
                [
                    _link(row["url"]),
                    tag("span", state, class_=f"badge {state}") if state not in ("live", "new") else None,
                ],
                said.get(row["page"], state) if value else state,
                words.number(row["n_changes"]),
                words.per_time(row["change_rate"]).removeprefix("every "),
                words.share(row["expected_freshness"]),
                words.moment(row["crawled_at"], now),
                words.number(row["n_crawls"]),
            ]
        )
    return table(headings, cells)


def _link(url: str) -> Html:
    return tag("a", url, href=f"page?url={quote(url, safe='')}", class_="url")


def _pager(query: str, offset: int, *, more: bool) -> Html | None:
    before = tag("a", "before", href=f"pages?{query}&from={max(offset - _AT_ONCE, 0)}") if offset else None
    after = tag("a", "more", href=f"pages?{query}&from={offset + _AT_ONCE}") if more else None
    return tag("nav", before, after, class_="pager") if before or after else None


def _number(text: str, otherwise: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else otherwise
