"""Fingerprints: digests of content with their recipes, and measures of how alike two contents are."""

from __future__ import annotations

import re
from hashlib import blake2b
from heapq import nsmallest
from struct import Struct
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from zlib import crc32

from crawlsched.change_detection.limits import LONGEST_COMPARED

__all__ = ["PHRASE", "Fingerprint", "likeness", "sketch", "sketch_similarity"]

_HASHES = 64  # the most hashes in a sketch
#: The form of a phrase's hash in a sketch. Hashes in this form sort like their numbers.
PHRASE = Struct(">I")
_MADE_UP = re.compile(r"\b(?=\w*\d)[0-9a-fA-F]{8,}\b|\d+")


class Fingerprint(NamedTuple):
    """A digest of content, with the recipe that made it.

    Notes
    -----
    blake2b [1]_ is cryptographic, so that no site can craft another page with the same fingerprint. A faster hash would
    save little time, because reading the page takes much longer. The recipe is blake2b's `person` parameter, so the
    same content has another digest under another recipe.

    Examples
    --------
    >>> Fingerprint.of("raw/1", b"a") == Fingerprint.of("raw/1", "a")
    True
    >>> Fingerprint.of("raw/1", b"a").digest == Fingerprint.of("text/1", b"a").digest
    False
    """

    # Method, parameters and library version. Fingerprints of different recipes cannot be compared.
    recipe: str
    digest: bytes  # 16 bytes

    @classmethod
    def of(cls, recipe: str, content: bytes | str) -> Fingerprint:
        """Return the fingerprint of content that a recipe has prepared."""
        # Text from the web can contain lone surrogates, for which UTF-8 has no bytes.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        person = blake2b(recipe.encode("utf-8", "surrogatepass"), digest_size=blake2b.PERSON_SIZE).digest()
        return cls(recipe, blake2b(data, digest_size=16, person=person).digest())


def sketch(text: str) -> bytes:
    """Return the 64 smallest hashes of a text's shingles; they can be compared when the text is no longer stored.

    Notes
    -----
    A sketch measures changes, but does not detect them. It misses most one-word edits of long pages. Hashes of 32 bits
    are enough for a measure, even if somebody constructs two phrases with the same hash.

    Examples
    --------
    >>> len(sketch("a b c d"))
    8
    """
    words = text.encode("utf-8", "surrogatepass").split()
    shingles = zip(words, words[1:] or [b""], words[2:] or [b""], strict=False)
    hashes = {crc32(b" ".join(shingle)) for shingle in shingles}
    return b"".join(map(PHRASE.pack, nsmallest(_HASHES, hashes)))


def sketch_similarity(before: bytes, after: bytes) -> float:
    """Estimate the similarity of two texts from their sketches.

    It is the Jaccard similarity of their three-word shingles. It is exact if both texts together have at most 64
    shingles. Otherwise its standard error is at most about 0.06.

    Examples
    --------
    >>> sketch_similarity(sketch("a b c d"), sketch("a b c e"))
    0.333...
    """
    one, two = ({*PHRASE.iter_unpack(data)} for data in (before, after))
    smallest = sorted(one | two)[:_HASHES]
    both = one & two
    return sum(number in both for number in smallest) / len(smallest) if smallest else 1.0


def likeness(text: str, address: str) -> bytes | None:
    """Return a digest of a text without its numbers and without the words that name the page; None for a long text.

    The words that name the page are those that contain the last part of the path of `address`.

    Examples
    --------
    >>> one = likeness("/news/tea-7.html was not found at 12:03", "https://example.com/news/tea-7.html")
    >>> two = likeness("/news/none.html was not found at 12:04", "https://example.com/news/none.html")
    >>> one == two, one == likeness("Tea was not found", "https://example.com/news/tea-7.html")
    (True, False)
    """
    if len(text) > LONGEST_COMPARED:  # two pages with so long a text are never alike
        return None
    name = unquote(urlsplit(address).path.rstrip("/").rpartition("/")[2])
    stem = name.rpartition(".")[0] or name
    names_it = re.compile(rf"(?<!\w){re.escape(stem)}(?!\w)", re.IGNORECASE)
    words = ["#" if name and names_it.search(word) else _MADE_UP.sub("#", word) for word in text.split()]
    return blake2b(" ".join(words).encode("utf-8", "surrogatepass"), digest_size=8).digest()
