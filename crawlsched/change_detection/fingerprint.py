"""Fingerprints: what a page's content comes down to, and by which recipe."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

__all__ = ["Fingerprint", "compare"]

_SIZE = 16


class Fingerprint(NamedTuple):
    """A digest of content, with the recipe that made it.

    Notes
    -----
    blake2b [1]_ is cryptographic, so that no site can craft another page with the same fingerprint; that others are
    faster does not matter beside reading the page. The recipe is its `person`: the same content has another digest
    under another recipe.

    Examples
    --------
    >>> Fingerprint.of("raw/1", b"a") == Fingerprint.of("raw/1", "a")
    True
    >>> Fingerprint.of("raw/1", b"a").digest == Fingerprint.of("text/1", b"a").digest
    False
    """

    # Method, parameters and library version. Fingerprints of different recipes say nothing about each other.
    recipe: str
    digest: bytes  # 16 bytes

    @classmethod
    def of(cls, recipe: str, content: bytes | str) -> Fingerprint:
        """Return the fingerprint of content that a recipe has prepared."""
        # Text from the web can hold lone surrogates, which UTF-8 has no bytes for.
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        person = blake2b(recipe.encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()
        return cls(recipe, blake2b(data, digest_size=_SIZE, person=person).digest())

    @property
    def is_empty(self) -> bool:
        """Whether the recipe found no content at all, as where no selector matched."""
        return self == Fingerprint.of(self.recipe, b"")


def compare(previous: Fingerprint | None, current: Fingerprint) -> bool | None:
    """Return whether content has changed between two visits; None at the first one, and after a change of recipe.

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
    return previous.digest != current.digest
