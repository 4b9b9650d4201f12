"""Probes: second fetches, which decide about a visit or teach which parts of pages change by themselves."""

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

#: Seconds between a first fetch and its second fetch. At this distance, a clock that shows seconds differs in 19 of 20
#: cases, and few edits fall between the two fetches. At 1.0, the second fetch missed a slot, and on fast sites more
#: edits fell between the fetches.
APART = 0.95

# All visits that look changed are probed until this number of probes in a row has brought nothing new.
_QUIET_PROBES = 5
# This share of the visits that find only noise is probed, to notice places that are no longer noise.
_SHARE_OF_NOISE = 0.02
_SHARE_UNTIL_CONFIRMED = 0.1
_CONFIRMED = 12
_RETURNS = 5.0
_MOST_WAITING = 50
# Second fetches of judged visits are at most `_SHARE` of the visits that could find a change, plus `_AT_LEAST`.
_SHARE, _AT_LEAST = 0.04, 6
# An announcement is evidence of a change. So if a page of an unknown template was announced, its visit is put off only
# while second fetches are below this share of visits. Just after the first copies, all visits are such visits, and each
# slot finds a change.
_SHARE_IF_ANNOUNCED = 1 / 6
# Limits of all second fetches, including those of visits that are put off. Beyond the limits, an apparent change is
# delivered without a second fetch. If several pages share a template, the limits are doubled until the template is
# confirmed, since a second fetch then teaches something about all these pages.
_AT_LEAST_OF_ALL, _TIMES_IF_SHARED = 30, 2
# While first copies are made, and during the first `_ENOUGH_VISITS` visits, second fetches have two limits: the number
# of visits to known pages, and `_BESIDE_FIRST_COPIES`. Without second fetches, content that differs at every fetch
# would be delivered at each visit.
_ENOUGH_VISITS, _BESIDE_FIRST_COPIES = 1_000, 12


@dataclass(slots=True, eq=False)
class Probe:
    """A second fetch, whose content is compared with that of a page's first fetch."""

    page: int  # the page; it is in flight until the probe has ended
    host: int  # the host's row number
    first: Content  # the content of the first fetch
    is_held: bool  # whether the first visit waits for this fetch to be judged
    was_conditional: bool  # whether the first fetch was conditional
    asked_at: float  # POSIX seconds
    elapsed: float = inf  # seconds since the visit before the first fetch; infinite if there was none
    is_urgent: bool = False  # whether it goes out at the next slot, without waiting for `APART`
    impossible_url: str | None = None  # the URL to fetch, if it is that of a page that cannot exist


@dataclass(eq=False)
class Probes:
    """The probes that wait for a slot, and the choice of what is probed.

    Notes
    -----
    A visit is put off if `verdict` needs a second fetch to decide. It is also put off if its page looks changed and its
    template was probed fewer than three times. After an announcement it is put off only while second fetches are fewer
    than one in six visits. All other visits are judged at once, and some of them are probed nevertheless. Visits that
    look changed are all probed until five probes in a row have shown nothing new, and ever fewer after that. These
    probes are at most 4 in a hundred visits, plus 6. All second fetches together are at most 5 in a hundred visits,
    plus 30. This limit is doubled for pages that share a template with fewer than twelve probes. Fetches that only
    confirm noise may use half of the limit. Only visits of pages that were seen before are counted.
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
        """The number of waiting probes."""
        return len(self._waiting)

    def visited(self, *, is_again: bool) -> None:
        """Count a visit; `is_again`: its page was seen before, and so may look changed."""
        self._n_visits += 1
        self._n_again += is_again

    @property
    def _have_turn(self) -> bool:
        """Whether a second fetch may take a slot: not too many wait, and first copies have their share."""
        if not self.enabled or len(self._waiting) >= _MOST_WAITING:
            return False
        if self._n_visits >= _ENOUGH_VISITS or not self.makes_first_copies():
            return True
        return self.n_asked < min(self._n_again, _BESIDE_FIRST_COPIES)

    def may_ask(self, page: int, host: int, noise: TemplateNoise | None) -> bool:
        """Whether the visit of a page may be put off; `noise` is the noise known of the page's template.

        If the probe of a page was given up, the next visit is judged without a probe. So pages of slow hosts are
        judged, too.
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

        After n >= 5 confirmed pages of a template in a row, only the share 5/(n + 1) is fetched again.
        """
        n = 0 if noise is None else noise.n_returns
        return self.rng.random() * (n + 1) < _RETURNS

    def knows(self, noise: TemplateNoise | None, *, announced: bool = False) -> bool:
        """Whether a change needs no second fetch, since its template is known well enough or it was announced."""
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
        """Take out the oldest probe that is urgent or has waited for `APART`, and whose host may be asked now."""
        for number, probe in enumerate(self._waiting):
            is_time = probe.is_urgent or now - probe.asked_at >= APART
            if is_time and is_free(probe.host) and self._may_go(probe):
                del self._waiting[number]
                return probe
        return None

    def leave(self, is_meant: Callable[[Probe], bool]) -> list[Probe]:
        """Take out the probes that `is_meant` selects; return them."""
        left = [probe for probe in self._waiting if is_meant(probe)]
        self._waiting = deque(probe for probe in self._waiting if probe not in left)
        return left

    def give_up(self, asked_before: float) -> list[Probe]:
        """Take out the probes that began to wait before this time, or whose slots are needed for pages."""
        old = self.leave(lambda probe: probe.asked_at < asked_before or not self._may_go(probe))
        self._not_again.update(probe.page for probe in old)
        return old

    def _may_go(self, probe: Probe) -> bool:
        return probe.is_held or self.has_room(probe.host)
