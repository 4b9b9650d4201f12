"""Templates: which pages of a site are made alike, by their URLs."""

import re
from urllib.parse import parse_qsl, urlsplit

__all__ = ["template_of"]

_DIGITS = re.compile(r"\d+")
_SLUG = re.compile(r"[-_%,.+~]|[^\x00-\x7f]")
_EXTENSION = re.compile(r"\.[a-z]{1,5}\Z", re.IGNORECASE)
_MAX_SEGMENTS = 8
_MAX_SEGMENT = 40


def template_of(url: str) -> str:
    """Name the template of a page: pages of one site whose paths have the same pattern.

    Numbers become ``#``, names of several words ``*``, and of a query only the keys are left. It is only a guess; pages
    that look alike may be of several templates, which costs a probe for each.

    Examples
    --------
    >>> template_of("https://www.example.com/news/2026/11/tea-is-back.html?page=2")
    'www.example.com/https/news/#/#/*.html?page'
    >>> template_of("https://www.example.com/about/") == template_of("https://www.example.com/about?")
    True
    """
    try:
        parts = urlsplit(url)
        # The host comes first: by it is known whose a template is.
        site = f"{parts.hostname or ''}/{parts.scheme}{f':{parts.port}' if parts.port else ''}"
        keys = sorted({key for key, _ in parse_qsl(parts.query, keep_blank_values=True, max_num_fields=100)})
    except ValueError:
        return ""
    segments = [_pattern(segment) for segment in parts.path.split("/") if segment]
    query = f"?{'&'.join(keys)[: 2 * _MAX_SEGMENT]}" if keys else ""
    return f"{site}/{'/'.join(segments[:_MAX_SEGMENTS])}{query}"


def _pattern(segment: str) -> str:
    extension = _EXTENSION.search(segment)
    ending = extension[0].lower() if extension else ""
    name = segment[: len(segment) - len(ending)]
    if _SLUG.search(name) or len(name) > _MAX_SEGMENT:
        return f"*{ending}"
    return f"{_DIGITS.sub('#', name)}{ending}"
