"""HTML made of elements in which plain text is escaped, and the frame around every view."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from crawlsched import __version__

__all__ = ["Html", "Node", "document", "link_to", "raw", "tag"]


class Html(str):
    """Markup from this module, which is not escaped, unlike plain text."""

    __slots__ = ()


Node = str | int | None | Sequence["Node"]

_EMPTY = frozenset(("br", "hr", "img", "input", "link", "meta"))


def raw(node: Node) -> str:
    """Return the source of a node: markup as it is, and plain text escaped.

    >>> raw(["<b>", tag("b", "1 < 2"), None])
    '&lt;b&gt;<b>1 &lt; 2</b>'
    """
    if node is None:
        return ""
    if isinstance(node, Html):
        return str(node)
    if isinstance(node, str | int):
        return escape(str(node))
    return "".join(map(raw, node))


def tag(name: str, /, *children: Node, **attributes: str | float | bool | None) -> Html:
    """Return an element.

    The attribute ``class_`` becomes "class", and other underscores become dashes. An attribute that is True has no
    value. An attribute that is None or False is left out.

    >>> tag("a", "<x>", href="/?a=1&b=2", class_="row", data_at=3, hidden=False)
    '<a href="/?a=1&amp;b=2" class="row" data-at="3">&lt;x&gt;</a>'
    """
    written = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        written.append(label if value is True else f'{label}="{escape(str(value))}"')
    opening = f"<{' '.join(written)}>"
    return Html(opening if name in _EMPTY else f"{opening}{raw(children)}</{name}>")


def link_to(url: str, text: str | None = None) -> Html:
    """Return a link to another site, without a referrer, or plain text if the scheme is not http or https.

    >>> link_to("javascript:alert(1)")
    '<span>javascript:alert(1)</span>'
    """
    if not url.lower().startswith(("http://", "https://")):
        return tag("span", text or url)
    return tag("a", text or url, href=url, rel="noreferrer noopener nofollow", target="_blank")


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
    """Return a whole page with one `view` of the collection `name`. It reloads after `refresh` seconds (0: never)."""
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
