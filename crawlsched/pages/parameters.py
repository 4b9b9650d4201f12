"""Parameters of a URL's query that name no other page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["named", "without_parameters"]


def named(names: Sequence[str]) -> Callable[[str], object]:
    """Return a test whether a parameter (``name=value``) has one of these names, in which ``*`` is anything.

    >>> fits = named(["sid", "utm_*"])
    >>> [bool(fits(parameter)) for parameter in ("sid=7", "sid", "side=1", "utm_source=x")]
    [True, True, False, True]
    """
    patterns = (".*".join(map(re.escape, name.split("*"))) for name in names)
    return re.compile(f"(?:{'|'.join(patterns)})(?:=.*)?", re.DOTALL).fullmatch


def without_parameters(url: str, fits: Callable[[str], object]) -> str:
    """Return a URL without the parameters of its query that pass a test.

    >>> without_parameters("https://a.example/1?sid=7&b=%20#top", named(["sid"]))
    'https://a.example/1?b=%20#top'
    """
    start, _, fragment = url.partition("#")
    path, mark, query = start.partition("?")
    if not mark:
        return url
    kept = "&".join(parameter for parameter in query.split("&") if not fits(parameter))
    return path + (f"?{kept}" if kept or not query else "") + (f"#{fragment}" if fragment else "")
