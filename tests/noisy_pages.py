"""Pages full of noise, and how many of their real changes the parts of the crawl that judge them find."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from random import Random

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.visible_text import visible_text
from crawlsched.content.judging import judged, kept_of, rebaselined
from crawlsched.content.noise_masks import NoiseMasks
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.site_templates import Sites
from crawlsched.store import PageFacts
from crawlsched.visits.probes import Probe, Probes

WORDS = [f"word{number:03d}" for number in range(997)]
# Modules of the standard library whose pages, as pydoc makes them, are real documents of up to 100 KB.
_DOCUMENTED = ("argparse", "calendar", "csv", "datetime", "decimal", "difflib", "email.message", "fractions", "heapq",
               "http.client", "json", "logging", "mailbox", "pathlib", "random", "sched", "shlex", "smtplib", "ssl",
               "statistics", "string", "subprocess", "tarfile", "textwrap", "threading", "uuid", "zipfile")  # fmt: skip
_PACKAGES = ("importlinter", "matplotlib", "numba")  # they carry HTML files
_TEXT = re.compile(r">([^<>&]{30,})<")
_WORD = re.compile(r"\b[a-zA-Z]{4,}\b")


@dataclass
class Counts:
    """What became of the visits."""

    quiet: int = 0
    false: int = 0
    edits: int = 0
    seen: int = 0
    visits: int = 0
    probes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def false_share(self) -> float:
        """Share of the visits to pages that had not changed which found a change."""
        return self.false / max(self.quiet, 1)

    @property
    def seen_share(self) -> float:
        """Share of the edits that were found."""
        return self.seen / max(self.edits, 1)


@dataclass
class Judge:
    """The parts of a crawl that judge contents, without the crawl: one page after the other, a second fetch at once."""

    recipe: Recipe
    rng: Random
    with_probes: bool = True
    counts: Counts = field(default_factory=Counts)
    #: Gives what a URL answers now, and something that differs where its content does; None: no siblings are looked at.
    world: Callable[[str], tuple[bytes, object]] | None = None

    def __post_init__(self) -> None:
        self.masks = NoiseMasks(read=lambda template: None)
        self.sites = Sites(read=lambda site: None)
        self.probes = Probes(self.rng, enabled=self.with_probes)
        self._facts: dict[str, PageFacts] = {}
        self._seen: dict[str, object] = {}
        self._seen_at: dict[int, int] = {}
        self.found_changed: list[str] = []
        self._looks_at_sibling = False

    def look(self, url: str) -> bool:
        """Visit a page of the world, which knows whether it was edited; return whether it was found changed."""
        assert self.world is not None
        content = self.world(url)[1]
        is_edited = self._seen.get(url, content) != content
        self._seen[url] = content
        return self.visit(url, lambda: self.world(url)[0], edited=is_edited)  # type: ignore[misc]

    def visit(self, url: str, fetch: Callable[[], bytes], *, edited: bool) -> bool:
        """Visit a page that was or was not edited since the visit before, count what is found, and return it."""
        is_first = url not in self._facts
        facts = self._facts.setdefault(
            url, PageFacts(len(self._facts), url, None, None, None, None, None, None, None, 0, None, 1)
        )
        content = self._read(url, fetch(), facts)
        verdict = judged(facts, content, (None, None), 0.0)
        self.counts.visits += 1
        sibling = self._sibling(facts, content) if verdict.changed else None
        if sibling is not None:
            asked: list[str] = []
            while sibling is not None and verdict.changed and content.may_be_template_edit:
                self._look_at_siblings(facts, content, sibling, asked)
                self.counts.probes += 1
                content = self._read(url, fetch(), facts, content)
                verdict = judged(facts, content, (None, None), 0.0)
                sibling = self._next_sibling(facts, content, asked) if len(asked) < 3 else None
            self.probes.sibling_told(str(content.template), is_template_edit=verdict.changed is False)
        elif self.probes.is_wanted(facts.page, content, verdict.changed, returned=verdict.returned):
            is_held = bool(verdict.changed)
            self.probes.ask(Probe(facts.page, 0, content, is_held, False, 0.0))
            probe = self.probes.next_due(lambda host: True)
            assert probe is not None
            second = self._read(url, fetch(), facts, probe.first)
            self.probes.ended(probe)
            if second.is_surprised is not None:
                self.probes.learned(str(second.template), is_surprised=second.is_surprised)
            self.counts.probes += 1
            if is_held:
                verdict = judged(facts, second, (None, None), 0.0)
            elif second.fingerprint.recipe != content.fingerprint.recipe:
                assert verdict.facts is not None
                verdict = verdict._replace(facts=rebaselined(verdict.facts, second, (None, None)))
        assert verdict.facts is not None
        kept = verdict.facts
        self._facts[url] = kept._replace(
            fingerprint=kept.pending_fingerprint or kept.fingerprint, pending_fingerprint=None
        )
        self._seen_at[facts.page] = self.counts.visits
        if edited:
            self.counts.edits += 1
            self.counts.seen += verdict.changed is True
        elif not is_first:
            self.counts.quiet += 1
            self.counts.false += verdict.changed is True
        if verdict.changed:
            self.found_changed.append(url)
        return verdict.changed is True

    def _look_at_siblings(self, facts: PageFacts, content: Content, sibling: str | None, asked: list[str]) -> None:
        is_open = True
        self._looks_at_sibling = True
        while is_open and sibling is not None and len(asked) < 3:
            asked.append(sibling)
            self.counts.probes += 1
            is_open = self.look(sibling)
            sibling = self._next_sibling(facts, content, asked)
        self._looks_at_sibling = False

    def _sibling(self, facts: PageFacts, content: Content) -> str | None:
        if self.world is None or self._looks_at_sibling or not self.probes.is_sibling_wanted(facts.page, content):
            return None
        return self._next_sibling(facts, content, [])

    def _next_sibling(self, facts: PageFacts, content: Content, asked: list[str]) -> str | None:
        others = [other for other in self._facts.values() if other.fingerprint and other.url not in (*asked, facts.url)]
        since = {other.page: self._seen_at[other.page] - self._seen_at[facts.page] for other in others}
        others.sort(key=lambda other: (since[other.page] > 0, abs(since[other.page]), abs(other.page - facts.page)))
        others = others[:8]
        others.sort(key=lambda other: self.masks.of(other.url)[0] != content.template)
        return others[0].url if others else None

    def _read(self, url: str, body: bytes, facts: PageFacts, first: Content | None = None) -> Content:
        blocks = None if first is None else first.blocks
        return read_content(
            Body(body, "text/html", "utf-8", url),
            self.recipe,
            self.masks,
            before=kept_of(facts),
            first=blocks,
            sites=self.sites,
        )


def written(rng: Random, n_paragraphs: int = 12) -> list[str]:
    """Write the content of a page, a string for each paragraph."""
    return [f"<p>{' '.join(rng.choices(WORDS, k=40))}</p>" for _ in range(n_paragraphs)]


def edited(content: list[str], rng: Random) -> None:
    """Change one word."""
    number = rng.randrange(len(content))
    content[number] = content[number].replace(rng.choice(content[number][3:-4].split()), f"new{rng.random()}", 1)


def noisy(content: Sequence[str], rng: Random, fetch: int) -> bytes:
    """Serve content with a token, a counter, an age, headlines, a shuffled list, a clock, a box that moves, a trial.

    The trial shows one of two headings to each visitor; the advertisement is there in every second fetch or so.
    """
    parts = list(content)
    promotion = f'<div class="promo"><b>{" ".join(rng.choices(WORDS, k=5))}</b></div>'
    parts.insert(rng.choice([1, len(parts) // 2, len(parts)]), promotion)
    related = "".join(f"<li><a href=/x>{' '.join(rng.choices(WORDS, k=7))}</a></li>" for _ in range(6))
    tags = "".join(f"<li>{tag}</li>" for tag in rng.sample("abcdefgh", 8))
    advertisement = (
        f'<div id="ad-{rng.random()}">{" ".join(rng.choices(WORDS, k=9))}</div>' if rng.random() < 0.5 else ""
    )
    trial = rng.choice(["Read it all", "Subscribe for nothing"])
    noise = (
        f"<!-- {rng.random()} --><input type=hidden name=csrf value={rng.random()}><script>{rng.random()}</script>"
        f'<p class="meta">{1000 + fetch * 7 + rng.randrange(5)} views, {fetch} hours ago</p><h3 class="ab">{trial}</h3>'
        f'<ul class="related">{related}</ul><ol>{tags}</ol>{advertisement}'
        f"<footer>Made on {('Monday', 'Friday')[fetch % 2]} at {rng.randrange(24)}:{rng.randrange(10, 60)}</footer>"
    )
    return f"<html><body>{''.join(parts)}{noise}</body></html>".encode()


def visits_of_a_site(judge: Judge, rng: Random, n_pages: int = 200, n_visits: int = 6) -> Counts:
    """Visit the pages of one template, all in turn, with an edit of one word before every third visit of each."""
    contents = [written(rng) for _ in range(n_pages)]
    for visit in range(n_visits):
        for number, content in enumerate(contents):
            is_edited = visit % 3 == 2
            if is_edited:
                edited(content, rng)
            judge.visit(
                f"https://www.example.com/news/{number}",
                lambda content=content, visit=visit: noisy(content, rng, visit),  # type: ignore[misc]
                edited=is_edited,
            )
    return judge.counts


def real_pages() -> dict[str, str]:
    """Return real HTML documents that are on any machine where these tests run, by name."""
    pages = {}
    for name in _DOCUMENTED:
        module = importlib.import_module(name)
        pages[name] = pydoc.HTMLDoc().page(name, pydoc.HTMLDoc().document(module))
    for name in _PACKAGES:
        folder = Path(str(inspect.getsourcefile(importlib.import_module(name)))).parent
        pages |= {f"{name}/{file.stem}": file.read_text() for file in sorted(folder.rglob("*.html"))}
    return {name: page for name, page in pages.items() if len(visible_text(page)) > 1_000}


def with_noise(page: str, rng: Random, fetch: int) -> bytes:
    """Serve a real page with noise at the places where such pages have it: a clock above, headlines and views below."""
    above = f'<div class="now">It is {rng.randrange(24)}:{rng.randrange(10, 60)}</div>'
    headlines = "".join(f"<li>{' '.join(rng.choices(WORDS, k=7))}</li>" for _ in range(6))
    below = f'<ul class="more">{headlines}</ul><p class="views">{fetch * 11 + rng.randrange(9)} have read this</p>'
    start, body, rest = page.partition("<body>") if "<body>" in page else ("", "", page)
    return f"{start}{body}{above}{rest}{below}".encode("utf-8", "replace")


def with_edit(page: str, rng: Random) -> str:
    """Change one word of a real page's text, which a reader sees."""
    while True:
        chosen = rng.choice([match for match in _TEXT.finditer(page) if _WORD.search(match[1])])
        word = rng.choice(list(_WORD.finditer(chosen[1])))
        start = chosen.start(1) + word.start()
        edited_page = f"{page[:start]}edit{rng.randrange(10**6)}{page[start + len(word[0]) :]}"
        if visible_text(edited_page) != visible_text(page):  # not in a script
            return edited_page


def visits_of_real_pages(judge: Judge, rng: Random, pages: dict[str, str], n_visits: int = 12) -> Counts:
    """Visit real pages in turn, with an edit of one word before every fourth visit."""
    pages = dict(pages)
    for visit in range(n_visits):
        for name in pages:
            if visit % 4 == 3:
                pages[name] = with_edit(pages[name], rng)
            judge.visit(
                f"https://docs.example.com/library/{name}.html",
                lambda name=name, visit=visit: with_noise(pages[name], rng, visit),  # type: ignore[misc]
                edited=visit % 4 == 3,
            )
    return judge.counts
