"""Decoding of a body: which encoding it is in, and its characters."""

import codecs

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

__all__ = ["decoded"]

_FALLBACK = "cp1252"


def decoded(body: bytes, content_type: str | None, encoding: str | None) -> str:
    """Decode a body.

    Parameters
    ----------
    body : bytes
    content_type : str or None
        The Content-Type header; its charset counts where `encoding` is not given.
    encoding : str or None
        The encoding, where it is known already.

    Returns
    -------
    str
        A byte order mark is taken off; bytes that cannot be decoded become U+FFFD.

    Notes
    -----
    The order is that of browsers: byte order mark, what the caller or the header says, what the document itself
    declares; otherwise UTF-8 where that fits, and Windows-1252.

    Examples
    --------
    >>> decoded("é".encode("latin-1"), "text/html; charset=iso-8859-1", None) == decoded("é".encode(), None, None)
    True
    """
    marked, mark = read_bom(body)
    if marked and mark:
        return _decode(body[len(mark) :], marked)
    for name in (encoding, http_content_type_encoding(content_type), html_body_declared_encoding(body[:4096])):
        known = _text_encoding(name)
        if known:
            return _decode(body, known)
    if b"\x00" in body[:64]:  # UTF-16 without a mark
        return _decode(body, "utf-16-be" if body[:1] == b"\x00" else "utf-16-le")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A document that was cut within its last character is still UTF-8.
        is_cut = error.end == len(body) and error.start >= len(body) - 3 and error.start > 0
        return body.decode("utf-8" if is_cut else _FALLBACK, "replace")


def _text_encoding(name: str | None) -> str | None:
    resolved = resolve_encoding(name) if name else None
    if not resolved:
        return None
    try:
        is_text = codecs.lookup(resolved)._is_text_encoding
    except Exception:  # names from the web can be anything
        return None
    return resolved if is_text else None


def _decode(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding, "replace").removeprefix("\ufeff")
    except Exception:  # some codecs (idna, undefined) raise whatever the error handler
        return body.decode("utf-8", "replace")
