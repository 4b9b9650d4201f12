"""The detector: did a page change, for whom, and what of the difference is noise? One door in, one verdict out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.change_detection.trace import Difference, differences, place_of, trace_of, without_wrapped

__all__ = ["Detector", "Finding", "Seen", "are_comparable", "is_cut", "packed_trace", "page_number", "unpacked_trace"]

# Two fetches with less than this share of their places in common are not of one page.
_LEAST_SHARED = 0.3
_FEW = 6
_VERSION = 2


def packed_trace(trace: Sequence[int]) -> bytes:
    """Return a trace as bytes, 8 for each block.

    Examples
    --------
    >>> list(unpacked_trace(packed_trace([1, 2]))), unpacked_trace(b"")
    ([1, 2], None)
    """
    return struct.pack(f">B{len(trace)}Q", _VERSION, *trace)


def unpacked_trace(data: bytes) -> Sequence[int] | None:
    """Return the trace that `packed_trace` gave; None where it is none."""
    n, rest = divmod(len(data) - 1, 8)
    if not data or rest or data[0] != _VERSION:
        return None
    return struct.unpack_from(f">{n}Q", data, 1)


class Seen:
    """A page as it was just read.

    Parameters
    ----------
    url : str
    blocks : PageBlocks
        What it says.

    Attributes
    ----------
    page : int
        Tells pages of a site apart; see `page_number`.
    """

    __slots__ = ("_keys", "_trace", "blocks", "page")

    def __init__(self, url: str, blocks: PageBlocks) -> None:
        self.page = page_number(url)
        self.blocks = blocks
        self._trace: Sequence[int] | None = None
        self._keys: Sequence[int | None] = ()

    @property
    def trace(self) -> Sequence[int]:
        """Its trace; made when it is asked for."""
        if self._trace is None:
            self._trace, self._keys = trace_of(self.blocks)
        return self._trace

    @property
    def keys(self) -> Sequence[int | None]:
        """Of the blocks that the entries of the trace are of."""
        trace = self.trace
        return self._keys or [None] * len(trace)

    def is_as(self, given: Sequence[int]) -> None:
        """It says what it said before, whose trace this is."""
        self._trace = given


class Finding(NamedTuple):
    """What the detector says of one page.

    Attributes
    ----------
    is_news : bool
        Whether it says something that its reader was not given, and that is no noise.
    is_change : bool
        Whether that is a change of the page, and not of its template.
    kind : str
        "first", "page", "template", "data", or "" where there is nothing to tell.
    ignored : tuple of str
        What is left out, and why.
    reason : str
        Why nothing is told although something differs: "noise", "template"; "" otherwise.
    is_suspect : bool
        Whether a second fetch at once is needed to tell.
    left : tuple of Difference
        What differs and is no noise.
    changed_share : float
        Share of the blocks, then and now, that are new or gone.
    given : sequence of int or None
        The trace of what the reader was given last; None where nothing is left that differs.
    """

    is_news: bool
    is_change: bool
    kind: str
    ignored: tuple[str, ...] = ()
    reason: str = ""
    is_suspect: bool = False
    left: tuple[Difference, ...] = ()
    changed_share: float = 0.0
    given: Sequence[int] | None = None


class Detector:
    """Judge the pages of one template.

    Parameters
    ----------
    noise : TemplateNoise
        What is known of the template.
    shared : SharedTexts
        What is known of its site.
    tells_template_edits : bool, default False
        Whether an edit of the template is told of each page that shows it, and not once.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> detector = Detector(TemplateNoise(), SharedTexts())
    >>> pages = [Seen("http://a/1", page_blocks(f"<p>Tea<p class=now>12:0{minute}")) for minute in range(4)]
    >>> detector.judge(pages[0], None, 0.0).kind, detector.judge(pages[1], pages[0].trace, 60.0).kind
    ('first', 'page')
    """

    def __init__(self, noise: TemplateNoise, shared: SharedTexts, *, tells_template_edits: bool = False) -> None:
        self.noise = noise
        self.shared = shared
        self._tells_template_edits = tells_template_edits

    def judge(
        self,
        seen: Seen,
        given: Sequence[int] | None,
        now: float,
        *,
        asked_at: float | None = None,
        learns: bool = True,
        announced: bool = False,
    ) -> Finding:
        """Judge a visit.

        Parameters
        ----------
        seen : Seen
        given : sequence of int or None
            The trace of what the reader of the page was given last; None at the first visit.
        now : float
            POSIX seconds.
        asked_at : float, optional
            When the page was asked for; None: now. Answers need not come in the order in which they were asked for.
        learns : bool, default True
            Whether what the visit shows counts: not for the second fetch of one that has been counted.
        announced : bool, default False
            Whether some source has announced a change since the visit before: what differs is no sign of noise then.
        """
        if given is None:
            if learns:
                self.shared.saw(seen.page, seen.trace, seen.blocks)
            return Finding(True, False, "first")
        found = without_wrapped(differences(given, seen.trace, seen.keys), seen.blocks)
        if learns and (not found or are_comparable(given, seen.trace)):
            self.noise.learn_from_visit(seen.page, found, seen.trace, seen.blocks, now, announced=announced)
            self.shared.seen_again(seen.page, seen.trace, found, now if asked_at is None else asked_at)
        if not found:
            return Finding(False, False, "")
        share = min(2.0 * len(found) / (len(given) + len(seen.trace)), 1.0)
        ignored = self.noise.ignored(seen.page, found)
        if len(found) >= len(seen.trace) > 1 and len(ignored) == len(found):
            ignored = {}  # no rule may leave a page without any text of its own
        left = tuple([one for number, one in enumerate(found) if number not in ignored])
        told = tuple(dict.fromkeys(f"noise: {why}" for why in ignored.values()))
        if not left:
            return Finding(False, False, "", told, "noise", changed_share=share)
        return self._judged(seen, left, told, now)._replace(left=left, changed_share=share, given=given)

    def accept(self, seen: Seen, finding: Finding) -> None:
        """What was found is what the page says from now on."""
        if finding.given is not None:
            self.shared.changed(seen.page, finding.given, seen.trace, seen.blocks)

    def _judged(self, seen: Seen, left: Sequence[Difference], told: tuple[str, ...], now: float) -> Finding:
        own_ways = self.shared.own_ways(seen.trace)
        self.shared.look_at(seen.blocks, seen.trace, left)
        own: list[Difference] = []
        is_first = False
        for one in left:
            text = seen.blocks.texts.get(one.key, "") if one.key is not None else ""
            of_template = self.shared.of_template(seen.page, one, own_ways, text, now)
            if of_template is False:
                own.append(one)
            is_first = is_first or of_template is None
        if not own:
            if is_first or self._tells_template_edits:
                return Finding(True, self._tells_template_edits, "template", told)
            return Finding(False, False, "", (*told, "template: told of another page"), "template")
        if len(own) < len(left):
            told = (*told, "template: beside its own")
        is_data = all(one.key is not None and seen.blocks.path_of[one.key] in seen.blocks.data for one in own)
        is_suspect = self.noise.are_suspects(seen.page, own) or (
            not self.noise.is_known and all(one.place in self.shared.restless for one in own)
        )
        return Finding(True, True, "data" if is_data else "page", told, is_suspect=is_suspect)

    def learn_at_once(self, first: Seen, second: Seen, given: Sequence[int] | None, now: float) -> bool | None:
        """Learn from two fetches of a page, made at once.

        Returns
        -------
        bool or None
            Whether they differed where that was not known; None where they teach nothing: one of them is cut, the
            second is what was given before, or they are not of one page.
        """
        between = differences(first.trace, second.trace, second.keys)
        if between and not are_comparable(first.trace, second.trace):
            return None
        changed = [] if given is None else differences(given, first.trace, first.keys)
        if changed and between and given is not None and not differences(given, second.trace, second.keys):
            return None
        elsewhere = self.shared.differed_at_once(first.page, {one.place for one in between})
        return self.noise.learn_at_once(first.page, between, changed, second.trace, second.blocks, now, elsewhere)


def are_comparable(one: Sequence[int], two: Sequence[int]) -> bool:
    """Whether two fetches are of one page, and none of them ends where the other goes on.

    Examples
    --------
    >>> are_comparable([1, 2, 3, 4], [1, 2, 3, 5]), are_comparable([1, 2, 3, 4], [1, 2, 9])
    (True, False)
    >>> are_comparable([1 << 40, 2 << 40, 3 << 40], [7 << 40, 8 << 40, 9 << 40])
    False
    """
    if is_cut(one, two) or is_cut(two, one):
        return False
    places = [{*map(place_of, trace)} for trace in (one, two)]
    if len(places[0] & places[1]) < _LEAST_SHARED * max(len(places[0] | places[1]), 1):
        return False
    # Where there are but a few blocks all of them may be noise; of many something stays.
    return max(len(one), len(two)) <= _FEW or not {*one}.isdisjoint(two)


def is_cut(page: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a page is another one up to some block, but for the last that it has, and nothing follows.

    Examples
    --------
    >>> is_cut([1, 2, 9], [1, 2, 3, 4]), is_cut([1, 2], [1, 2, 3]), is_cut([1, 9, 2], [1, 2, 3, 4]), is_cut([1], [1])
    (True, True, False, False)
    """
    n = len(page)
    if n >= len(whole) or n < 2:
        return False
    return list(page[: n - 1]) == list(whole[: n - 1])


def page_number(url: str) -> int:
    """Return a number that tells the pages of a site apart."""
    return crc32(url.encode("utf-8", "surrogatepass"))
