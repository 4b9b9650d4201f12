"""Content: what of a body counts, by what the body is."""

from collections.abc import Callable, Collection

from crawlsched.change_detection.canonical_json import canonical_json
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.change_detection.decoding import decoded
from crawlsched.change_detection.visible_text import visible_text
from crawlsched.change_detection.xml_text import xml_text

__all__ = ["content_of"]


def content_of(
    body: bytes,
    content_type: str | None,
    encoding: str | None,
    html_text: Callable[[str], str] = visible_text,
    ignore_keys: Collection[str] = (),
) -> bytes | str:
    """Give what of a body counts: the same for the same content, however it is encoded and spelled.

    Parameters
    ----------
    body : bytes
    content_type : str or None
        The Content-Type header.
    encoding : str or None
        The encoding, where it is known.
    html_text : callable
        What of an HTML page counts.
    ignore_keys : collection of str
        Keys of JSON which do not count.

    Returns
    -------
    bytes or str
        Of HTML, what `html_text` gives; of JSON, XML and feeds, one form of what they say; of plain text, its words;
        of all else (pictures, PDF), the bytes.

    Examples
    --------
    >>> content_of(b"<p>caf&eacute;", "text/html", None), content_of("<p>café".encode("latin-1"), None, "latin-1")
    ('café', 'café')
    >>> content_of(b"%PDF-1.7", "application/pdf", None)
    b'%PDF-1.7'
    """
    kind = content_kind(body, content_type, encoding)
    if kind == "binary":
        return body
    text = decoded(body, content_type, encoding)
    if kind == "html":
        return html_text(text)
    if kind == "xml":
        return xml_text(text)
    canonical = canonical_json(text, ignore_keys) if kind == "json" else None
    # Text is taken as it stands: what looks like a reference in it is none.
    return " ".join(text.split()) if canonical is None else canonical
