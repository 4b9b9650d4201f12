"""Likeness: what of a text is the same on pages that are made by one sentence, such as *Page 7 was not found*."""

import re
from hashlib import blake2b
from urllib.parse import unquote, urlsplit

__all__ = ["likeness"]

_SIZE = 8
# Of a long text that numbers and a name are left out makes no difference that matters: it is the page's own.
_MOST_CHARACTERS = 5_000
_MADE_UP = re.compile(r"\b(?=\w*\d)[0-9a-fA-F]{8,}\b|\d+")


def likeness(text: str, address: str) -> bytes | None:
    """Return a digest of a text without numbers, and without the words that name the page; None for a long text.

    Words that contain the last part of the path of `address` do not count.

    Examples
    --------
    >>> one = likeness("/news/tea-7.html was not found at 12:03", "https://example.com/news/tea-7.html")
    >>> two = likeness("/news/none.html was not found at 12:04", "https://example.com/news/none.html")
    >>> one == two, one == likeness("Tea was not found", "https://example.com/news/tea-7.html")
    (True, False)
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    name = unquote(urlsplit(address).path.rstrip("/").rpartition("/")[2])
    stem = name.rpartition(".")[0] or name
    names_it = re.compile(rf"(?<!\w){re.escape(stem)}(?!\w)", re.IGNORECASE)
    words = ["#" if name and names_it.search(word) else _MADE_UP.sub("#", word) for word in text.split()]
    return blake2b(" ".join(words).encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()
