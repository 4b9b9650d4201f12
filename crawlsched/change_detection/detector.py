"""The detector: it decides whether a page has changed, and which of the differences are noise or belong to the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.limits import FEW, LEAST_SHARED, LONGEST_NAME, OF_A_PAGE
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import Evidence, TemplateNoise
from crawlsched.change_detection.trace import Difference, Trace, differences, shape

__all__ = ["Detector", "Finding"]


class Finding(NamedTuple):
    """The detector's result for one visit of a page."""

    is_news: bool  # whether the page has something other than noise that is new to its reader
    is_change: bool  # whether the news is a change of the page, and not of its template
    kind: str  # "first", "page", "template", "data", or "" without news
    ignored: tuple[str, ...] = ()  # the differences that are left out, and why
    reason: str = ""  # why a difference is no news: "noise" or "template"; "" otherwise
    is_suspect: bool = False  # whether an immediate second fetch has to confirm the finding
    changed_share: float | None = 0.0  # new and removed blocks, as a share of the old and new blocks together


class Detector(NamedTuple):
    """Judges the pages of one template.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> detector = Detector(TemplateNoise(), SharedTexts())
    >>> pages = [page_blocks(f"<p>Tea<p class=now>12:0{minute}", url="http://a/1") for minute in range(4)]
    >>> detector.judge(pages[0], None, 0.0).kind, detector.judge(pages[1], pages[0].trace, 60.0).kind
    ('first', 'page')
    """

    noise: TemplateNoise
    shared: SharedTexts

    def judge(
        self, seen: PageBlocks, given: Trace | None, now: float, *, asked_at: float | None = None, learns: bool = True
    ) -> Finding:
        """Judge a visit by comparison with `given`, the content that was delivered last (None at the first visit).

        `asked_at` is the time of the request, by default `now`; it matters if answers arrive in another order than that
        of their requests. Pass False for `learns` at the second fetch of a visit, which must not be counted again.
        """
        if given is None:
            return Finding(True, False, "first")
        found = differences(given, seen.trace)
        is_one_page = not found or _are_comparable(given, seen.trace)
        is_evidence = learns and is_one_page
        if is_evidence:
            self.noise.learn_from_visit(seen.page, found, seen.trace, given)
        self.shared.seen_again(seen, found, now if asked_at is None else asked_at, is_evidence=is_evidence)
        if not found:
            return Finding(False, False, "")
        n_blocks = len({(one.place, one.number, one.kind) for one in found})
        share = min(2.0 * n_blocks / max(len(given) + len(seen.trace), 1), 1.0)
        proved = self.noise.hidden(seen.page, found)
        if all(one.is_whole for one in found) and not {*given.digests} & {*seen.trace.digests}:
            proved = {}  # if all texts of a page are new, they do not count as noise
        left = [one for number, one in enumerate(found) if number not in proved]
        told = tuple(dict.fromkeys(f"noise: {why.name} {why.say()}" for why in proved.values()))
        if not left:
            needs_look = self._needs_look(seen.page, found, proved)
            return Finding(False, False, "", told, "noise", is_suspect=needs_look, changed_share=share)
        finding = self._judged(seen, left, told, now, is_again=not learns)
        # The page was cut short, or another page was served.
        is_suspect = finding.is_suspect or (not is_one_page and len(given) > FEW)
        return finding._replace(changed_share=share, is_suspect=is_suspect)

    def _needs_look(self, page: str, found: Sequence[Difference], proved: Mapping[int, Evidence]) -> bool:
        """Whether a second fetch has to decide if the noise of the template is noise on this page, too.

        A second fetch is needed if two fetches of this page never differed at the place of the noise. It is also needed
        if ever new texts were shown there, but this visit found the same text as the last visit.
        """
        needs_look = False
        for number, why in proved.items():
            stands_still = why.leave_out(page, found[number].new or found[number].old)
            is_restless = why.agreed < 2 * why.differed and not why.has_few_states
            needs_look = needs_look or (stands_still and is_restless) or not why.has_shown(page)
        return needs_look

    def _judged(
        self, seen: PageBlocks, left: Sequence[Difference], told: tuple[str, ...], now: float, *, is_again: bool
    ) -> Finding:
        of_site = self.shared.of_site(seen, left, now)
        own = [one for one, is_of_site in zip(left, of_site, strict=True) if is_of_site is False]
        if not own:
            # This page is the first to show the edit, or this is the second fetch of its visit.
            if None in of_site or is_again:
                self._note(seen, left)
                return Finding(True, False, "template", told)
            return Finding(False, False, "", (*told, "template: delivered with another page"), "template")
        if len(own) < len(left):
            told = (*told, "template: beside its own")
        is_data = all(one.place in seen.data for one in own)
        self._note(seen, own)
        return Finding(True, True, "data" if is_data else "page", told, is_suspect=all(map(self.noise.is_suspect, own)))

    @staticmethod
    def _note(seen: PageBlocks, told: Sequence[Difference]) -> None:
        """Write the delivered differences into the page's trace, for `why`."""
        seen.trace.changes = [
            [seen.trace.names.get(one.place, one.kind), _shown(one.was, one.old), _shown(one.says, one.new)]
            for one in told[:OF_A_PAGE]
        ]

    def tells_apart(self, first: PageBlocks, second: PageBlocks) -> bool:
        """Whether two fetches of a page differ by more than noise."""
        found = differences(first.trace, second.trace)
        return len(self.noise.hidden(second.page, found)) < len(found)

    def learn_at_once(
        self, first: PageBlocks, second: PageBlocks, now: float, apart: float = 0.0, *, may_be_old: bool = False
    ) -> bool | None:
        """Learn from a pair of fetches of a page; return whether they differed in something not known to be noise.

        An edit may fall between the two fetches. `apart` is the time between them as a share of the time since the
        previous visit. With `may_be_old` the second fetch may be an old copy, from before an edit. Return None if one
        fetch is cut short, or if the fetches are of different pages.
        """
        between = differences(first.trace, second.trace)
        if any(one.kind == "order" for one in between):  # if two blocks are exchanged, either of them may have moved
            moved = {one.place: one for one in differences(second.trace, first.trace) if one.kind == "order"}
            between = [*between, *(moved[place] for place in moved.keys() - {one.place for one in between})]
        if between and not _are_comparable(first.trace, second.trace):
            return None
        return self.noise.learn_at_once(first.page, between, second.trace, now, apart, may_be_old=may_be_old)


def _shown(text: str, part: str) -> str:
    """Return the text of a block, or of a long block only the surroundings of the difference."""
    said = text if len(text) <= LONGEST_NAME else text[max(text.find(part) - 20, 0) :]
    return said if len(said) <= LONGEST_NAME else f"{said[: LONGEST_NAME - 1]}…"


def _are_comparable(one: Trace, two: Trace) -> bool:
    """Whether two fetches are of the same page, and neither is a truncated copy of the other.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> def compare(*pages):
    ...     return _are_comparable(*(page_blocks(page).trace for page in pages))
    >>> compare("<h1>a<p>b<p>c<p>d", "<h1>a<p>b<p>c<p>e"), compare("<h1>a<p>b<p>c<p>d", "<h1>a<p>b<p>x")
    (True, False)
    >>> compare("<h1>a<p>b", "<div><b class=k>c</b></div>")
    False
    """
    if _is_cut(one, two) or _is_cut(two, one):
        return False
    places = [{*trace.places} for trace in (one, two)]
    if len(places[0] & places[1]) < LEAST_SHARED * max(len(places[0] | places[1]), 1):
        return False
    if max(len(one), len(two)) <= 2 * FEW or not {*one.digests}.isdisjoint(two.digests):
        return True
    # Every block may have a number that differs, such as a time.
    shapes = [{shape(text) for text in trace.texts if text} for trace in (one, two)]
    return not shapes[0].isdisjoint(shapes[1])


def _is_cut(page: Trace, whole: Trace) -> bool:
    """Whether a page looks like a cut copy of another page: all its blocks except the last are the same."""
    n = len(page)
    if n >= len(whole) or n < 2 or page.rest or page.digests[-1] == whole.digests[-1]:
        return False
    return page.digests[: n - 1] == whole.digests[: n - 1]
