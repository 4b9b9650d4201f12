"""The text of a page that a reader sees."""

from collections.abc import Iterable

from crawlsched.change_detection.html_scan import Tag, normalised, scanned

__all__ = ["text_of", "visible_text"]


def visible_text(markup: str) -> str:
    """Return the text of an HTML page that a reader sees, with single spaces.

    Title and text count, without scripts, styles, comments and what stands in for something that is not shown
    (noscript, template, iframe). Text that a style sheet hides is included.

    Examples
    --------
    >>> visible_text("<title>Tea</title><p>A&nbsp;cup <b>now</b>!<script>var t = '<p>12:01</p>'</script><!-- 1 -->")
    'Tea A cup now!'
    """
    return text_of(scanned(markup))


def text_of(scan: Iterable[tuple[str, Tag | None, str | None]]) -> str:
    """Return the text of what `scanned` yields."""
    pieces: list[str] = []
    for text, tag, inner in scan:
        pieces.append(text)
        if tag is None:
            continue
        separator = " " if tag.parts_words else ""  # inline tags do not part words
        pieces.append(separator)
        if inner is not None and tag.name != "script":
            pieces += inner, separator
    return normalised("".join(pieces))
