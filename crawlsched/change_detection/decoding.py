"""Decoding of a body: which encoding it is in, and its characters."""

from w3lib.encoding import html_to_unicode

__all__ = ["decoded"]


def decoded(body: bytes, content_type: str | None, encoding: str | None) -> str:
    """Decode a body; a byte order mark is taken off, and bytes that cannot be decoded become U+FFFD.

    Notes
    -----
    The order is that of browsers: byte order mark, what the caller or the header says, what the document itself
    declares; otherwise UTF-8 where that fits, and Windows-1252.

    Examples
    --------
    >>> decoded("é".encode("latin-1"), "text/html; charset=iso-8859-1", None) == decoded("é".encode(), None, None)
    True
    """
    try:
        return html_to_unicode(f"charset={encoding}" if encoding else content_type, body, auto_detect_fun=_likely)[1]
    except Exception:  # names from the web can be anything; some codecs raise whatever the error handler
        return body.decode("utf-8", "replace")


def _likely(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A document that was cut within its last character is still UTF-8.
        is_cut = error.end == len(body) and error.start >= len(body) - 3 and error.start > 0
        return "utf-8" if is_cut else "cp1252"
    return "utf-8"
