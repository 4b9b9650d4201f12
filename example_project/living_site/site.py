"""The site: its pages, links and timelines at any time. No network and no clock here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

from living_site.cast import CAST, Host
from living_site.timeline import Timeline, draw_changes, draw_interval, draw_spells, draw_stamps

HORIZON = 3600.0  # the site changes for an hour, and not after that
LIFE_EVENTS = (5.0, 60.0)  # pages vanish and move early, so that a short demo sees it
GONE_FOR = 20.0  # mean time for which a page is away before it comes back

SECTIONS = ("amber", "birch", "cedar", "dahlia", "elder")
VOCABULARY = """
    river stone window harbour letter garden engine market winter bridge copper orchard signal lantern paper valley
    museum captain violet kitchen thunder marble forest ribbon compass island meadow saddle tunnel velvet whistle
    anchor barley candle desert ember feather glacier hollow ivory jasmine kettle ladder mirror needle
    opal pepper quarry
"""
WORDS = VOCABULARY.split()


@dataclass
class Page:
    """One URL that can be fetched, with its timeline."""

    number: int
    host: Host
    path: str
    title: str
    timeline: Timeline
    links: list[str] = field(default_factory=list)  # absolute paths on the same host, in their order on the page
    moved_to: Page | None = None

    def is_told(self, change: float) -> bool:
        """Whether the host's sitemap announces the change at this time, at once or late.

        A sitemap that stamps all pages at each request announces no change: its dates do not depend on changes.
        """
        return self.host.sitemap in ("honest", "late", "partial") and change in self._stamps

    @cached_property
    def _stamps(self) -> frozenset[float]:
        return frozenset(self.timeline.stamps)


class Site:
    """All pages of the cast, drawn from a seed.

    Two sites with the same seed have the same pages and the same change times, counted from their epochs.
    """

    def __init__(self, seed: int, cast: tuple[Host, ...] = CAST, horizon: float = HORIZON) -> None:
        self.seed, self.cast, self.horizon = seed, cast, horizon
        self.pages: list[Page] = []
        self.unavailable: dict[str, list[tuple[float, float]]] = {}
        self.too_many: dict[str, list[tuple[float, float]]] = {}
        self._at: dict[tuple[str, str], Page] = {}
        for host in cast:
            self._add_host(host)
        for page in list(self.pages):
            self._draw_fate(page)

    def page(self, address: str, path: str) -> Page | None:
        """Return the page at this address and path, also before or after its life; None if there never is one."""
        return self._at.get((address, path))

    def pages_of(self, host: Host) -> list[Page]:
        """Return the host's pages in the order of their numbers."""
        return [page for page in self.pages if page.host is host]

    def spell(self, address: str, at: float) -> tuple[int, float] | None:
        """Return the (status, end) of the host's present spell of errors; None if it is well."""
        for status, spells in ((503, self.unavailable), (429, self.too_many)):
            for start, end in spells[address]:
                if start <= at < end:
                    return status, end
        return None

    def _add_host(self, host: Host) -> None:
        rng = Random(f"{self.seed}/{host.number}")
        self.unavailable[host.address] = draw_spells(host.unavailable_interval, self.horizon, rng)
        self.too_many[host.address] = draw_spells(host.too_many_interval, self.horizon, rng)
        front = self._add_page(host, "/", f"The {host.subject}", [], rng)
        for section in SECTIONS[: host.n_sections]:
            edits = draw_changes(host.mass_edit_interval or math.inf, 1.0, self.horizon, rng)
            hub = self._add_page(host, f"/{section}/", f"{host.subject.title()}: {section}", edits, rng)
            front.links.append(hub.path)
            for i in range(1, host.articles_per_section + 1):
                words = rng.sample(WORDS, 2)
                article = self._add_page(host, f"/{section}/{'-'.join(words)}-{i}", " ".join(words).title(), edits, rng)
                hub.links.append(article.path)

    def _add_page(self, host: Host, path: str, title: str, edits: list[float], rng: Random) -> Page:
        changes = draw_changes(draw_interval(host, rng), host.burst, self.horizon, rng)
        changes = sorted(changes + edits)
        timeline = Timeline(changes, draw_stamps(host, changes, self.horizon, rng))
        return self._register(Page(len(self.pages), host, path, title, timeline))

    def _register(self, page: Page) -> Page:
        self.pages.append(page)
        self._at[page.host.address, page.path] = page
        return page

    def _draw_fate(self, page: Page) -> None:
        """Decide whether an article vanishes, comes back, or moves."""
        rng = Random(f"{self.seed}/{page.host.number}{page.path}/fate")
        fate, when = rng.random(), rng.uniform(*LIFE_EVENTS)
        if page.path.endswith("/"):
            return
        if fate < page.host.gone:
            self._vanish(page, when, rng)
        elif fate < page.host.gone + page.host.moved:
            self._move(page, when)

    def _vanish(self, page: Page, when: float, rng: Random) -> None:
        life = page.timeline
        life.gone = when
        if rng.random() < 0.5:
            # It comes back rewritten: a copy from before is stale.
            life.returned = when + rng.expovariate(1.0 / GONE_FOR)
            life.changes = sorted([*life.changes, life.returned])
            life.stamps = sorted([*life.stamps, life.returned])

    def _move(self, page: Page, when: float) -> None:
        old = page.timeline
        new = Timeline([c for c in old.changes if c > when], [s for s in old.stamps if s > when], born=when)
        old.moved = when
        page.moved_to = self._register(
            Page(len(self.pages), page.host, f"{page.path}-moved", page.title, new, page.links)
        )
