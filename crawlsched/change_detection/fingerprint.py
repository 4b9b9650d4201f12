"""Fingerprints: what a page's content comes down to, and by which recipe."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

__all__ = ["Fingerprint", "compare", "is_same"]

_DIGEST_SIZE = 16
_HALF = 8
_PERSON_SIZE = 16  # what blake2b takes


class Fingerprint(NamedTuple):
    """A digest of content, with the recipe that made it.

    Parameters
    ----------
    recipe : str
        Method, parameters and library version. Fingerprints of different recipes say nothing about each other.
    digest : bytes
        16 bytes. Of a recipe that sees content in two ways each half stands for one of them.

    Notes
    -----
    blake2b [1]_ is cryptographic, so that no site can craft another page with the same fingerprint; that others are
    faster does not matter beside reading the page. The recipe is its `person`: the same content has another digest
    under another recipe.

    References
    ----------
    .. [1] Aumasson, Neves, Wilcox-O'Hearn, Winnerlein (2013), "BLAKE2: simpler, smaller, fast as MD5".

    Examples
    --------
    >>> Fingerprint.of("raw/1", b"a") == Fingerprint.of("raw/1", "a")
    True
    >>> Fingerprint.of("raw/1", b"a").digest == Fingerprint.of("text/1", b"a").digest
    False
    """

    recipe: str
    digest: bytes

    @classmethod
    def of(cls, recipe: str, content: bytes | str, as_read: str | None = None) -> Fingerprint:
        """Return the fingerprint of content that a recipe has prepared.

        Parameters
        ----------
        recipe : str
        content : bytes or str
        as_read : str, optional
            The same content in another way: where one of the two is as it was, the content is.
        """
        digest = _digest(recipe, content)
        return cls(recipe, digest if as_read is None else digest[:_HALF] + _digest(recipe, as_read)[_HALF:])

    @property
    def is_empty(self) -> bool:
        """Whether the recipe found no content at all, as where no selector matched."""
        return self == Fingerprint.of(self.recipe, b"")


def compare(previous: Fingerprint | None, current: Fingerprint) -> bool | None:
    """Return whether content has changed between two visits; None if that cannot be told.

    It cannot be told at the first visit, and after a change of recipe: an extraction library that sees a page in
    another way after an upgrade would make every page of a site look changed.

    Examples
    --------
    >>> before, after = Fingerprint.of("raw/1", b"a"), Fingerprint.of("raw/1", b"b")
    >>> compare(before, after), compare(before, before), compare(None, after)
    (True, False, None)
    >>> compare(before, Fingerprint.of("text/1", b"b")) is None
    True
    """
    if previous is None or previous.recipe != current.recipe:
        return None
    return not is_same(previous.digest, current.digest)


def is_same(before: bytes, now: bytes, *, first_half: bool = False) -> bool:
    """Say whether two digests made by one recipe are of the same content: whether a half of them is the same.

    Parameters
    ----------
    before, now : bytes
    first_half : bool, default False
        Look at what is seen in the first way only.

    Examples
    --------
    >>> moved = Fingerprint.of("a/1", "<b>tea", "tea"), Fingerprint.of("a/1", "<i>tea", "tea")
    >>> other = Fingerprint.of("a/1", "<i>milk", "milk")
    >>> compare(*moved), compare(moved[1], other), is_same(moved[0].digest, moved[1].digest, first_half=True)
    (False, True, False)
    """
    return before[:_HALF] == now[:_HALF] or (not first_half and before[_HALF:] == now[_HALF:])


def _digest(recipe: str, content: bytes | str) -> bytes:
    # Text from the web can hold lone surrogates, which UTF-8 has no bytes for.
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return blake2b(data, digest_size=_DIGEST_SIZE, person=_person(recipe)).digest()


@lru_cache(maxsize=256)
def _person(recipe: str) -> bytes:
    return blake2b(recipe.encode("utf-8", "surrogatepass"), digest_size=_PERSON_SIZE).digest()
