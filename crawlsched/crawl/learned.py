"""Knowledge of templates and sites, as far as it is in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from logging import getLogger
from typing import Any
from urllib.parse import urlsplit

from scrapy.utils.datatypes import LocalCache

from crawlsched.change_detection.detector import Detector
from crawlsched.change_detection.limits import DEEPEST, LONGEST_NAME
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.store.models import SITE

__all__ = ["Learned", "places_of", "template_and_site"]

logger = getLogger(__name__)

_DIGITS = re.compile(r"\d+")
_SLUG = re.compile(r"[-_%,.+~]|[^\x00-\x7f]")


class Learned:
    """The `TemplateNoise` of each template and the `SharedTexts` of each site; at most `most` of them are in memory.

    Only the crawling thread uses this class.

    Examples
    --------
    >>> learned = Learned(read=lambda name: None)
    >>> learned.detector("https://example.com/news/2026/tea-is-back", "blocks/7").noise.n_probes
    0
    """

    def __init__(self, read: Callable[[str], Mapping[str, Any] | None], most: int = 10_000) -> None:
        self._read = read
        self._known: LocalCache[str, TemplateNoise | SharedTexts] = LocalCache(most)

    def drop(self, names: Iterable[str]) -> None:
        """Forget templates and sites that belong to another process from now on."""
        for name in names:
            self._known.pop(name, None)

    def detector(self, url: str, recipe: str) -> Detector:
        """Return the detector that judges a page."""
        template, site = template_and_site(url, recipe)
        return Detector(self._of(template, TemplateNoise), self._of(site, SharedTexts))

    def to_write(self, url: str, recipe: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield what has been learned of a page's template and site, for the store.

        It is written when it has grown by a tenth, so a killed crawl loses about a tenth of it.
        """
        for name in template_and_site(url, recipe):
            known = self._known.get(name)
            for suggestion in known.suggestions(new=True) if isinstance(known, TemplateNoise) else ():
                logger.info("Of pages like %s %s.", name, suggestion)
            if known is not None and known.n_learned > 1.1 * known.n_written:
                known.n_written = known.n_learned
                yield name, known.to_dict()

    def _of(self, name: str, kind: Any) -> Any:
        known = self._known.pop(name, None) or kind.from_dict(self._read(name) or {})
        self._known[name] = known  # the youngest; if there are too many, the oldest goes, which was written long ago
        return known


def places_of(read: Callable[[str], Mapping[str, Any] | None], names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the places that are left out on pages of some templates, and the places that are suggested for that."""
    for name in names:
        noise = TemplateNoise.from_dict(read(name) or {})
        for hidden in noise.known():
            yield {"template": name, **hidden}
        for suggestion in noise.suggestions():
            yield {"template": name, "suggestion": suggestion}


def template_and_site(url: str, recipe: str) -> tuple[str, str]:
    """Return the names under which a page's template and site are stored.

    Pages of a site are of one template if their folders have the same pattern. In a pattern, a number is ``#``, and a
    name of several words is ``*``. This is only a guess: pages that look alike may be of several templates, and each of
    these costs a probe.

    >>> template_and_site("https://example.com/news/2026/tea-is-back?page=2", "blocks/7")
    ('example.com/https/news/#/*', '//example.com https blocks/7')
    """
    try:
        parts = urlsplit(url)
        host, scheme = parts.hostname or "", f"{parts.scheme}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "/*", f"{SITE} {recipe}"
    folders = [
        "*" if _SLUG.search(folder) or len(folder) > LONGEST_NAME else _DIGITS.sub("#", folder)
        for folder in [folder for folder in parts.path.split("/") if folder][:-1][:DEEPEST]
    ]
    return "/".join([host, scheme, *folders, "*"]), f"{SITE}{host} {scheme} {recipe}"
