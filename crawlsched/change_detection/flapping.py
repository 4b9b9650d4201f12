"""Flapping: pages that go back and forth between the same few contents."""

from collections.abc import Sequence

__all__ = ["MAX_HISTORY", "extended_history", "is_flapping", "n_variants"]

MAX_HISTORY = 8
"""Digests of a page that are kept."""

_MIN_RETURNS = 2


def extended_history(history: Sequence[bytes], digest: bytes) -> list[bytes]:
    """Add the digest of a visit to the history of a page.

    Parameters
    ----------
    history : sequence of bytes
        Digests of earlier visits, the oldest first, no two equal ones in a row.
    digest : bytes
        Of this visit.

    Returns
    -------
    list of bytes
        At most `MAX_HISTORY`.

    Examples
    --------
    >>> extended_history([b"a", b"b"], b"b"), extended_history([b"a", b"b"], b"a")
    ([b'a', b'b'], [b'a', b'b', b'a'])
    """
    kept = list(history)
    if not kept or kept[-1] != digest:
        kept.append(digest)
    return kept[-MAX_HISTORY:]


def is_flapping(history: Sequence[bytes], digest: bytes) -> bool:
    """Say whether a page only went back to one of the contents between which it flaps.

    Parameters
    ----------
    history : sequence of bytes
        Digests of earlier visits, as `extended_history` gives them.
    digest : bytes
        Of this visit.

    Returns
    -------
    bool
        True if this content is a known one of a page that returned to known contents at least twice before: by
        variants that rotate, by servers that disagree, by trials with two versions. Such a visit found no change.

    Notes
    -----
    A page that is reverted once (A, B, A) changed twice. New content is a change whatever the page did before.

    Examples
    --------
    >>> is_flapping([b"a", b"b", b"a", b"b"], b"a"), is_flapping([b"a", b"b"], b"a")
    (True, False)
    >>> is_flapping([b"a", b"b", b"a", b"b"], b"c")
    False
    """
    return digest in history[:-1] and digest != history[-1] and n_variants(history) > 0


def n_variants(history: Sequence[bytes]) -> int:
    """Count the contents between which a page flaps; 0 if it does not.

    Examples
    --------
    >>> n_variants([b"a", b"b", b"a", b"b"]), n_variants([b"a", b"b", b"a"])
    (2, 0)
    """
    returned = [known for position, known in enumerate(history) if known in history[:position]]
    return len(set(history)) if len(returned) >= _MIN_RETURNS else 0
