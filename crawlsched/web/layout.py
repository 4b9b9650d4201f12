"""The frame around every view: head, navigation, and the two files of style and script."""

from __future__ import annotations

from crawlsched import __version__
from crawlsched.web.html import Html, raw, tag

__all__ = ["document"]

_NAMES = {
    "": "Overview",
    "pages": "Pages",
    "changes": "Changes",
    "hosts": "Hosts",
    "sources": "Sources",
    "whatif": "What if",
}


def document(
    title: str,
    main: Html,
    name: str,
    *,
    view: str | None = None,
    refresh: int = 0,
    base: str = "",
    root: str = "",
    is_one_of: bool = False,
    has_views: bool = True,
) -> str:
    """Return a whole page with one `view` of the collection `name`; it reloads after `refresh` seconds, if not 0."""
    links = [
        tag("a", called, href=f"{base}{path or './'}", class_="chosen" if path == view else None)
        for path, called in _NAMES.items()
        if has_views
    ]
    if is_one_of:
        links.insert(0, tag("a", "All", href=root or "./", class_=None if has_views else "chosen"))
    bar = tag(
        "header",
        tag(
            "a",
            tag("span", class_="logo"),
            tag("b", "crawlsched"),
            tag("span", name, class_="name"),
            href=(base if has_views else root) or "./",
            class_="brand",
        ),
        tag("nav", *links),
        class_="bar",
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · {name} · crawlsched"),
        tag("link", rel="icon", href=f"{root}static/icon.svg"),
        tag("link", rel="stylesheet", href=f"{root}static/style.css"),
        tag("link", rel="alternate", type="application/atom+xml", href=f"{base}changes.atom", title="Changes")
        if has_views
        else None,
        tag("script", src=f"{root}static/page.js", defer=True),
    )
    foot = tag("footer", f"crawlsched {__version__} · times are UTC")
    body = tag("body", bar, main, foot, data_refresh=refresh or None)
    return f"<!doctype html>{raw(tag('html', head, body, lang='en'))}"
