"""HTML that is made of elements: every text is escaped, and only an element is markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["Html", "Node", "link_to", "raw", "tag"]


class Html(str):
    """Markup that was made here; a plain text is none."""

    __slots__ = ()


Node = str | int | None | Sequence["Node"]

_EMPTY = frozenset(("br", "hr", "img", "input", "link", "meta"))


def raw(node: Node) -> str:
    """Return what stands in the document for a node: markup as it is, anything else as text.

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

    The attribute ``class_`` is "class", and other underscores are dashes. True: without a value; None and False: left
    out.

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
    """Return a link to another site, without a referrer; other schemes than http and https give plain text.

    >>> link_to("javascript:alert(1)")
    '<span>javascript:alert(1)</span>'
    """
    if not url.lower().startswith(("http://", "https://")):
        return tag("span", text or url)
    return tag("a", text or url, href=url, rel="noreferrer noopener nofollow", target="_blank")
