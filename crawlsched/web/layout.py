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


def document(title: str, view: str | None, main: Html, collection: str, *, refresh: int = 0, base: str = "") -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
    view : str or None
        The name of the view that is shown.
    main : Html
        What stands in the middle.
    collection : str
    refresh : int
        After how many seconds it asks for itself again; 0: never.
    base : str
        The way to where the views are.
    """
    links = [
        tag("a", name, href=f"{base}{path or './'}", class_="chosen" if path == view else None)
        for path, name in _NAMES.items()
    ]
    bar = tag(
        "header",
        tag(
            "a",
            tag("span", class_="logo"),
            tag("b", "crawlsched"),
            tag("span", collection, class_="name"),
            href=base or "./",
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
        tag("title", f"{title} · {collection} · crawlsched"),
        tag("link", rel="icon", href=f"{base}static/icon.svg"),
        tag("link", rel="stylesheet", href=f"{base}static/style.css"),
        tag("link", rel="alternate", type="application/atom+xml", href=f"{base}changes.atom", title="Changes"),
        tag("script", src=f"{base}static/page.js", defer=True),
    )
    foot = tag("footer", f"crawlsched {__version__} · times are UTC · figures of the last minute")
    body = tag("body", bar, main, foot, data_refresh=refresh or None)
    return f"<!doctype html>{raw(tag('html', head, body, lang='en'))}"
