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
from crawlsched.change_detection.detector import Detector, Finding
from crawlsched.change_detection.html_scan import visible_text
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.verdict import Circumstances, Verdict, given_trace, judge
from crawlsched.crawl.learned import Learned
from crawlsched.crawl.probes import Probes
from crawlsched.store import PageFacts

WORDS = [f"word{number:03d}" for number in range(997)]
# Modules of the standard library whose pages, as pydoc makes them, are real documents of up to 100 KB.
_DOCUMENTED = ("argparse", "calendar", "csv", "datetime", "decimal", "difflib", "email.message", "fractions", "heapq",
               "http.client", "json", "logging", "mailbox", "pathlib", "random", "sched", "shlex", "smtplib", "ssl",
               "statistics", "string", "subprocess", "tarfile", "textwrap", "threading", "uuid", "zipfile")  # fmt: skip
_PACKAGES = ("importlinter", "matplotlib")  # they carry HTML files
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

    def __post_init__(self) -> None:
        self.learned = Learned(read=lambda name: None)
        self.probes = Probes(self.rng, lambda: False, enabled=self.with_probes)
        self._facts: dict[str, PageFacts] = {}
        self.found_changed: list[str] = []

    def visit(self, url: str, fetch: Callable[[], bytes], *, edited: bool) -> bool:
        """Visit a page that was or was not edited since the visit before, count what is found, and return it."""
        is_first = url not in self._facts
        facts = self._facts.setdefault(
            url, PageFacts(len(self._facts), url, None, None, None, None, None, None, None, 0, None, 1)
        )
        content = self._read(url, fetch(), facts)
        verdict, finding, noise = self._judged(facts, content, None)
        self.counts.visits += 1
        self.probes.visited(is_again=not is_first)
        is_held = verdict.refetch is not None
        if is_held or (finding is not None and noise is not None and self.probes.is_wanted(0, finding, noise)):
            second = self._read(url, fetch(), facts)
            self.counts.probes += 1
            self.probes.n_asked += 1
            if content.seen is not None and second.seen is not None:
                self._detector(second).learn_at_once(content.seen, second.seen, 0.0)
            if is_held:
                verdict, _, _ = self._judged(facts, second, content)
        if verdict.facts is not None:
            last = verdict.facts.pending_fingerprint or verdict.facts.fingerprint
            self._facts[url] = verdict.facts._replace(fingerprint=last, pending_fingerprint=None)
        is_found = verdict.kind not in ("", "first", "template")
        if edited:
            self.counts.edits += 1
            self.counts.seen += is_found
        elif not is_first:
            self.counts.quiet += 1
            self.counts.false += is_found
        if is_found:
            self.found_changed.append(url)
        return is_found

    def _judged(
        self, facts: PageFacts, content: Content, first: Content | None
    ) -> tuple[Verdict, Finding | None, TemplateNoise | None]:
        if content.seen is None:
            return judge(facts, content, (None, None), Circumstances()), None, None
        detector = self._detector(content)
        if first is None and content.fingerprint.digest == (facts.pending_fingerprint or facts.fingerprint):
            given = given_trace(facts, content)
            assert given is not None
            content.seen.trace = given
        finding = detector.judge(content.seen, given_trace(facts, content), 0.0, learns=first is None)
        around = Circumstances(
            finding,
            first=first,
            may_refetch=first is None and self.probes.may_ask(facts.page, 0, detector.noise),
            confirms_return=self.probes.confirms_return(detector.noise),
            knows_template=not self.with_probes or self.probes.knows(detector.noise),
        )
        return judge(facts, content, (None, None), around), finding, detector.noise

    def _detector(self, content: Content) -> Detector:
        return self.learned.detector(content.url, content.fingerprint.recipe)

    def _read(self, url: str, body: bytes, facts: PageFacts) -> Content:
        return read_content(Body(body, "text/html", "utf-8", url), self.recipe, before=facts.fingerprint)


def written(rng: Random, n_paragraphs: int = 12) -> list[str]:
    """Write the content of a page, a string for each paragraph."""
    return [f"<p>{' '.join(rng.choices(WORDS, k=40))}</p>" for _ in range(n_paragraphs)]


def edited(content: list[str], rng: Random) -> None:
    """Change one word."""
    number = rng.randrange(len(content))
    content[number] = content[number].replace(rng.choice(content[number][3:-4].split()), f"new{rng.random()}", 1)


def noisy(content: Sequence[str], rng: Random, fetch: int) -> bytes:
    """Serve content with a token, a counter, an age, headlines, a shuffled list, a clock, a box that moves, a trial.

    The trial shows one of two headings to each visitor; the advertisement is there in every second fetch or so. All
    differs at once, as what differs from day to day only is content.
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
        f'<p class="meta">{1000 + fetch * 7 + rng.randrange(5)} views, {rng.randrange(60)} s ago</p>'
        f'<h3 class="ab">{trial}</h3>'
        f'<ul class="related">{related}</ul><ol>{tags}</ol>{advertisement}'
        f"<footer>Made by {rng.choice(('Ann', 'Bob'))} at {rng.randrange(24)}:{rng.randrange(10, 60)}</footer>"
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
