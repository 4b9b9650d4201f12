"""The text of a page that a reader sees."""

from collections.abc import Iterable

from crawlsched.change_detection.html_scan import Tag, normalised, scanned, target_of

__all__ = ["text_of", "visible_text"]


def visible_text(markup: str, links: bool = False, images: bool = False) -> str:
    """Return the text of an HTML page that a reader sees, with single spaces; on demand with targets and sources.

    Title and text count, without scripts, styles, comments and what stands in for something that is not shown
    (noscript, template, iframe). Text that a style sheet hides is included.

    Examples
    --------
    >>> visible_text("<title>Tea</title><p>A&nbsp;cup <b>now</b>!<script>var t = '<p>12:01</p>'</script><!-- 1 -->")
    'Tea A cup now!'
    >>> visible_text('<a href="/new.pdf">Download</a>', links=True)
    '/new.pdf Download'
    """
    return text_of(scanned(markup), links, images)


def text_of(scan: Iterable[tuple[str, Tag | None, str | None]], links: bool = False, images: bool = False) -> str:
    """Return the text of what `scanned` yields."""
    pieces: list[str] = []
    for text, tag, inner in scan:
        pieces.append(text)
        if tag is None:
            continue
        # An inline tag does not part words, and neither does what is no tag.
        separator = " " if tag.parts_words else ""
        pieces.append(separator)
        if (links or images) and (target := target_of(tag, links, images)):
            pieces.append(f" {target} ")
        if inner is not None and tag.name != "script":
            pieces += inner, separator
    return normalised("".join(pieces))
