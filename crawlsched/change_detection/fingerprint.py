"""Fingerprints: what a page's content comes down to, and by which recipe."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

__all__ = ["Fingerprint", "compare"]

_PERSON = b"crawlsched-page"


class Fingerprint(NamedTuple):
    """A digest of content, with the recipe that made it.

    Attributes
    ----------
    recipe : str
        Method, parameters and library version. Fingerprints of different recipes say nothing about each other.
    digest : bytes
        16 bytes.
    """

    recipe: str
    digest: bytes

    @classmethod
    def of(cls, recipe: str, content: bytes) -> Fingerprint:
        """Return the fingerprint of content that a recipe has prepared."""
        return cls(recipe, blake2b(content, digest_size=16, person=_PERSON).digest())


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
    return previous.digest != current.digest
