"""Probes: second fetches that judge a visit, or teach what changes by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from random import Random

from crawlsched.change_detection.detector import Finding
from crawlsched.change_detection.limits import FEW, SHARE_AGAIN
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.content.reading import Content

__all__ = ["APART", "Probe", "Probes"]

#: Seconds between two fetches that teach. Clocks with seconds then differ in 19 of 20 cases, and edits hardly ever fall
#: between the fetches. With a whole second the second fetch missed a slot, and on fast sites one edit more in six fell
#: between.
APART = 0.95

# Visits that look changed are all probed until this number of probes in a row brought nothing new.
_QUIET_PROBES = 5
# This share of the visits that find nothing but noise is probed, so that a place which is noise no more is noticed.
_SHARE_OF_NOISE = 0.02
_SHARE_UNTIL_CONFIRMED = 0.1
_CONFIRMED = 12
_RETURNS = 5.0
_MOST_WAITING = 50
# Second fetches of judged visits: at most this share of the visits that could find a change, and this number more.
_SHARE, _AT_LEAST = 0.04, 6
# An announcement is evidence of a change. A visit after an announcement, of an unknown template, is put off only while
# fewer than this share of visits were. Just after first copies all visits are of that kind, and each slot finds a
# change.
_SHARE_IF_ANNOUNCED = 1 / 6
# Limits of all second fetches, with those of visits that are put off. Beyond them, an apparent change is delivered
# without a second fetch if each page is a template of its own. A template that pages share gets twice as many until it
# is confirmed, since what it teaches serves all these pages.
_AT_LEAST_OF_ALL, _TIMES_IF_SHARED = 30, 2
# Until this number of visits, second fetches take slots from first copies only in step with visits to known pages, and
# at most this many. Without any, each visit would deliver content that differs every time.
_ENOUGH_VISITS, _BESIDE_FIRST_COPIES = 1_000, 12


@dataclass(slots=True, eq=False)
class Probe:
    """A second fetch, which a first one has asked for."""

    page: int  # the page; it is in flight until the probe has ended
    host: int  # the host's row number
    first: Content  # what the first fetch gave
    is_held: bool  # whether the visit is judged by this fetch
    was_conditional: bool  # whether the first fetch was
    asked_at: float  # POSIX seconds
    elapsed: float = inf  # seconds since the visit before the first fetch; infinite if there was none
    is_urgent: bool = False  # whether it goes out as soon as there is a slot, and not a second after the first
    impossible_url: str | None = None  # of the page that cannot exist, if that is what is fetched


@dataclass(eq=False)
class Probes:
    """The probes that wait for a slot, and the choice of what is probed.

    Notes
    -----
    A visit is put off if `verdict` needs a second fetch to decide. It is also put off if its page looks changed and its
    template was probed fewer than three times. After an announcement this holds only while there was less than one
    second fetch for six visits. All other visits are judged at once, and some of them are probed nevertheless. Visits
    that look changed are all probed until five in a row have shown nothing new, and ever fewer after that. These probes
    are at most 4 in a hundred visits, and 6 more. All second fetches together are at most 5 in a hundred visits, and 30
    more. They are twice as many where pages share a template that was probed fewer than twelve times. At most half of
    them only confirm noise. Only visits of pages that were seen before are counted.
    """

    rng: Random
    makes_first_copies: Callable[[], bool]
    enabled: bool = True
    has_room: Callable[[int], bool] = lambda host: True

    def __post_init__(self) -> None:
        self._waiting: deque[Probe] = deque()
        self._not_again: set[int] = set()
        self._n_visits = self._n_again = self.n_asked = 0

    def __iter__(self) -> Iterator[Probe]:
        """The probes that wait, the oldest first."""
        return iter(tuple(self._waiting))

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def visited(self, *, is_again: bool) -> None:
        """Count a visit; `is_again`: its page was seen before, and so may look changed."""
        self._n_visits += 1
        self._n_again += is_again

    @property
    def _have_turn(self) -> bool:
        """Whether second fetches have room, and are worth as much as what goes out now."""
        if not self.enabled or len(self._waiting) >= _MOST_WAITING:
            return False
        if self._n_visits >= _ENOUGH_VISITS or not self.makes_first_copies():
            return True
        return self.n_asked < min(self._n_again, _BESIDE_FIRST_COPIES)

    def may_ask(self, page: int, host: int, noise: TemplateNoise | None) -> bool:
        """Whether a visit of a page of a host may be put off; `noise` is what is known of its template.

        A page whose probe was given up is judged without one the next time, so that pages of slow hosts are judged,
        too.
        """
        most = _AT_LEAST_OF_ALL + SHARE_AGAIN * self._n_again
        if noise is not None and noise.n_probes < _CONFIRMED and noise.is_shared:
            most *= _TIMES_IF_SHARED
        if not self._have_turn or self.n_asked >= most:
            return False
        if page in self._not_again:
            self._not_again.discard(page)
            return False
        return self.has_room(host)

    def confirms_return(self, noise: TemplateNoise | None) -> bool:
        """Decide whether a page that shows former content again needs a second fetch.

        After n confirmed pages of a template in a row (five or more), only the share 5/(n + 1) is asked.
        """
        n = 0 if noise is None else noise.n_returns
        return self.rng.random() * (n + 1) < _RETURNS

    def knows(self, noise: TemplateNoise | None, *, announced: bool = False) -> bool:
        """Whether a change needs no second fetch: by what is known of a template, or after an announcement."""
        if noise is None or noise.n_probes >= FEW:
            return True
        return announced and self.n_asked >= _SHARE_IF_ANNOUNCED * self._n_again

    def is_wanted(self, host: int, finding: Finding, noise: TemplateNoise) -> bool:
        """Decide whether a visit that has been judged is worth a second fetch."""
        if not self._have_turn or not self.has_room(host):
            return False
        if finding.reason == "noise" and finding.is_suspect:
            return 2 * self.n_asked < _AT_LEAST_OF_ALL + SHARE_AGAIN * self._n_again
        if self.n_asked >= _AT_LEAST + _SHARE * self._n_again:
            return False
        if finding.is_news:
            return noise.n_quiet < _QUIET_PROBES or self.rng.random() * (noise.n_quiet + 2) < 1.0
        if finding.reason == "noise":
            share = _SHARE_OF_NOISE if noise.n_probes >= _CONFIRMED else _SHARE_UNTIL_CONFIRMED
            return self.rng.random() < share
        return False

    def ask(self, probe: Probe) -> None:
        """Put a probe in line for a slot."""
        self._waiting.append(probe)
        self.n_asked += 1

    def next_due(self, now: float, is_free: Callable[[int], bool]) -> Probe | None:
        """Take out the longest waiting probe whose host may be asked now; unless urgent, it has waited for `APART`."""
        for number, probe in enumerate(self._waiting):
            is_time = probe.is_urgent or now - probe.asked_at >= APART
            if is_time and is_free(probe.host) and self._may_go(probe):
                del self._waiting[number]
                return probe
        return None

    def leave(self, is_meant: Callable[[Probe], bool]) -> list[Probe]:
        """Take out some probes, whether or not their pages will be probed again."""
        left = [probe for probe in self._waiting if is_meant(probe)]
        self._waiting = deque(probe for probe in self._waiting if probe not in left)
        return left

    def give_up(self, asked_before: float) -> list[Probe]:
        """Take out the probes that have waited since before this time, or whose slots pages need more."""
        old = self.leave(lambda probe: probe.asked_at < asked_before or not self._may_go(probe))
        self._not_again.update(probe.page for probe in old)
        return old

    def _may_go(self, probe: Probe) -> bool:
        return probe.is_held or self.has_room(probe.host)
