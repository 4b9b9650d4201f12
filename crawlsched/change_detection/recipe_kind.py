"""What every recipe is: it says what of a body counts, and that becomes a fingerprint."""

import json
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any

from crawlsched.change_detection.fingerprint import Fingerprint

__all__ = ["Recipe", "checked_keys", "keys_id", "short_digest"]


class Recipe:
    """How content becomes a fingerprint.

    Attributes
    ----------
    id : str
        Method, parameters, version of what it is made with.
    """

    id: str

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return what of a body counts, and the id of the recipe by which it was found."""
        raise NotImplementedError

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""
        return Fingerprint.of(*self.content(body, content_type, encoding, url))


def checked_keys(ignore_keys: Sequence[str]) -> frozenset[str]:
    """Return names of keys of JSON, or raise `ValueError`."""
    is_list = isinstance(ignore_keys, Collection) and not isinstance(ignore_keys, str)
    if not is_list or not all(isinstance(key, str) for key in ignore_keys):
        raise ValueError(f"ignore_keys is {ignore_keys!r}; it is a list of names of keys, such as ['generated_at'].")
    return frozenset(ignore_keys)


def keys_id(ignore_keys: Collection[str]) -> str:
    """Return what ignored keys add to a recipe's id; nothing if there are none."""
    return f"+keys{short_digest(sorted(ignore_keys))}" if ignore_keys else ""


def short_digest(parameters: Any) -> str:
    """Return a few characters that stand for parameters in a recipe's id."""
    return blake2b(json.dumps(parameters).encode(), digest_size=6).hexdigest()
