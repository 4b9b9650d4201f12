"""The size of a change: how much of a page's text is another one."""

from collections import Counter
from hashlib import blake2b
from heapq import nsmallest

from crawlsched.change_detection.blocks import PageBlocks

__all__ = ["SKETCH_SIZE", "changed_share", "shingle_similarity", "sketch", "sketch_similarity"]

SKETCH_SIZE = 64
"""Shingles that a sketch keeps."""

_SHINGLE_WORDS = 3
_HASH_BYTES = 8


def changed_share(before: PageBlocks, after: PageBlocks) -> float:
    """Share of the blocks of two pages whose text is not in the other page.

    Parameters
    ----------
    before, after : PageBlocks

    Returns
    -------
    float
        From 0 (the same texts, wherever they stand) to 1 (no text in common).

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> changed_share(page_blocks("<p>a<p>b<p>c<p>d"), page_blocks("<p>a<p>b<p>c<p>e"))
    0.25
    """
    one, two = Counter(before.texts.values()), Counter(after.texts.values())
    total = one.total() + two.total()
    return 1.0 - 2.0 * (one & two).total() / total if total else 0.0


def shingle_similarity(before: str, after: str) -> float:
    """Jaccard similarity of the three-word shingles of two texts.

    Parameters
    ----------
    before, after : str

    Returns
    -------
    float
        1 for texts with the same shingles, 0 for texts without a common one.

    References
    ----------
    .. [1] Broder (1997), "On the resemblance and containment of documents".

    Examples
    --------
    >>> shingle_similarity("a b c d", "a b c e")
    0.333...
    """
    one, two = _shingles(before), _shingles(after)
    return len(one & two) / len(one | two) if one or two else 1.0


def sketch(text: str) -> bytes:
    """Sketch of a text, from which similarities can be estimated when the text is gone.

    Parameters
    ----------
    text : str

    Returns
    -------
    bytes
        The `SKETCH_SIZE` smallest hashes of its shingles, 8 bytes each: at most 512 bytes.

    Notes
    -----
    A sketch measures a change; it does not detect one. It misses most one-word edits of long pages.

    References
    ----------
    .. [1] Broder (1997), "On the resemblance and containment of documents".

    Examples
    --------
    >>> len(sketch("a b c d"))
    16
    """
    hashes = {blake2b(shingle.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
              for shingle in _shingles(text)}  # fmt: skip
    return b"".join(nsmallest(SKETCH_SIZE, hashes))


def sketch_similarity(before: bytes, after: bytes) -> float:
    """Estimate the similarity of two texts from their sketches.

    Parameters
    ----------
    before, after : bytes
        As `sketch` gives them.

    Returns
    -------
    float
        An estimate of `shingle_similarity`, exact for texts of at most `SKETCH_SIZE` shingles together; its standard
        error is at most 1 / (2 sqrt(SKETCH_SIZE)), about 0.06.

    Examples
    --------
    >>> sketch_similarity(sketch("a b c d"), sketch("a b c e"))
    0.333...
    """
    one, two = _hashes(before), _hashes(after)
    smallest = nsmallest(SKETCH_SIZE, one | two)
    return sum(value in one and value in two for value in smallest) / len(smallest) if smallest else 1.0


def _shingles(text: str) -> set[str]:
    words = text.split()
    if len(words) < _SHINGLE_WORDS:
        return {" ".join(words)} if words else set()
    return {" ".join(words[start : start + _SHINGLE_WORDS]) for start in range(len(words) - _SHINGLE_WORDS + 1)}


def _hashes(data: bytes) -> set[bytes]:
    return {data[start : start + _HASH_BYTES] for start in range(0, len(data), _HASH_BYTES)}
