"""What an XML document says: its elements, attributes and texts, without what only says when it was made."""

import re

from crawlsched.change_detection.html_scan import normalised

__all__ = ["xml_text"]

_TAG = re.compile(r"<(/?)([A-Za-z_][^\s/<>]*+)([^<>]*+)>([^<]*+)")
# Comments, instructions and declarations say nothing; what stands in CDATA is text. What has no end goes to the last.
_SPECIAL = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<!.*?(?:>|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]++)\s*+=\s*+("[^"]*+"|'[^']*+')""")
_CDATA_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FEED_ROOTS = frozenset({"rss", "RDF", "feed"})
_FEED_ITEMS = frozenset({"item", "entry"})
# Outside of its items, these say when a feed was made, and nothing about what is in it.
_FEED_CHURN = frozenset(
    {"lastBuildDate", "pubDate", "updated", "modified", "date", "generator", "ttl", "docs", "cloud"}
)


def xml_text(markup: str) -> str:
    """Say what an XML document says, in one way however it is spelled; one line for each element.

    A line is the name without prefix, the attributes in order of their names, and the text behind the tag. Comments,
    processing instructions and declarations do not count, nor when a feed was made.

    Examples
    --------
    >>> print(xml_text('<a x="1" b="2"><!-- now -->Fish <![CDATA[& chips]]></a>'))
    a b="2" x="1" Fish & chips
    /a
    >>> rss = "<rss><channel><lastBuildDate>{}</lastBuildDate><item><title>A</title></item></channel></rss>"
    >>> xml_text(rss.format("12:01")) == xml_text(rss.format("12:02"))
    True
    """
    markup = _SPECIAL.sub(lambda special: (special[1] or "").translate(_CDATA_ESCAPES), markup)
    tags = _TAG.findall(markup)
    is_feed = bool(tags) and _local(tags[0][1]) in _FEED_ROOTS
    lines: list[str] = []
    within_item = False
    for slash, qualified, attributes, text in tags:
        name = _local(qualified)
        if is_feed:
            if name in _FEED_ITEMS:
                within_item = not slash
            elif not within_item and name in _FEED_CHURN:
                continue
        parts = [slash + name]
        if "=" in attributes:
            found = _ATTRIBUTE.findall(attributes)
            parts += sorted(f'{key}="{normalised(value[1:-1])}"' for key, value in found)
        if attributes.endswith("/"):  # <a/> is <a></a>
            lines.append(" ".join(parts))
            parts = [f"/{name}"]
        content = normalised(text)
        if content:
            parts.append(content)
        lines.append(" ".join(parts))
    return "\n".join(lines)


def _local(name: str) -> str:
    return name[name.rfind(":") + 1 :]
