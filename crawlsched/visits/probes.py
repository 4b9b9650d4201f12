"""Probes: second fetches by which a visit is judged: of the page, of a sibling, of one beside it that cannot exist."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from crawlsched.content.reading import Content

__all__ = ["Probe", "Probes"]

# So many probes are made of a template's first visits.
_FIRST_PROBES = 3
# Visits that look changed are all probed until so many probes in a row have found nothing that was not known: one in 32
# such runs overlooks noise with two states.
_QUIET_PROBES = 5
# On a site whose last five probes, of any template, have found nothing so few of each kind are enough: noise is mostly
# in what all templates of a site have in common, and pages of small templates would be probed at every visit.
_FIRST_PROBES_OF_QUIET_SITE = 1
_QUIET_PROBES_OF_QUIET_SITE = 2
# This share of the visits that find nothing new is probed where something is ignored, so that it can return.
_SHARE_OF_UNCHANGED = 0.01
# And this one where something is ignored that was seen to differ only once: what a page's author wrote between two
# fetches of a probe is hidden on all pages of the template, until a dozen probes have shown that it stands still.
_SHARE_UNTIL_CONFIRMED = 0.1
_MOST_WAITING = 50
# Siblings are asked for each edit that may be the template's until so many in a row have shown that it was not.
_SIBLINGS_IN_VAIN = 3


@dataclass(slots=True, eq=False)
class Probe:
    """A second fetch, which a first one has asked for.

    Attributes
    ----------
    page : int
        The page; it is in flight until the probe has ended.
    host : int
        The host's row number.
    first : Content
        What the first fetch gave.
    is_held : bool
        Whether the page looked changed, and whether it did is judged by this fetch.
    was_conditional : bool
        Whether the first fetch was.
    asked_at : float
        POSIX seconds.
    impossible_url : str or None
        Of the page that cannot exist, if that is what is fetched.
    sibling : int or None
        Another page of the template, if that is what is fetched: does it show the same edit?
    looked_at : tuple of int
        Pages that were looked at for that before.
    told_nothing : bool
        Whether the last of them had edits of its own, too.
    """

    page: int
    host: int
    first: Content
    is_held: bool
    was_conditional: bool
    asked_at: float
    impossible_url: str | None = None
    sibling: int | None = None
    looked_at: tuple[int, ...] = ()
    told_nothing: bool = False

    @property
    def template(self) -> str:
        """The template whose noise is probed."""
        return self.first.template or ""


class Probes:
    """The probes that wait for a slot, and the choice of what is probed.

    Parameters
    ----------
    rng : random.Random
        Chooses.
    enabled : bool, default True
        False: nothing is ever probed.
    """

    def __init__(self, rng: Random, *, enabled: bool = True) -> None:
        self._rng = rng
        self._enabled = enabled
        self._waiting: deque[Probe] = deque()
        self._of_template: Counter[str] = Counter()
        self._not_again: set[int] = set()
        # By site, how many probes in a row have found nothing that was not known.
        self._quiet_of_site: Counter[str] = Counter()
        # By site, how many siblings in a row have shown that an edit was the page's own.
        self._in_vain_of_site: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def is_wanted(self, page: int, content: Content, changed: bool | None, *, returned: bool = False) -> bool:
        """Decide whether a visit is worth a second fetch.

        Parameters
        ----------
        page : int
        content : Content
            What it found.
        changed : bool or None
            Whether the page looks changed; None where that cannot be told.
        returned : bool, default False
            Whether it looks as it did some changes before.

        Notes
        -----
        Of visits that look changed the share `NoiseMask.doubt` is probed, the probability that noise will be found
        that is not known: 1/12 when ten in a row have found nothing. Until five probes in a row have found nothing all
        of them are; and of first visits three, one after the other: other pages share what they find. Where the site's
        last five have found nothing, whatever the template, two in a row and one are enough. Probed are also all that
        look as they did before: pages are seldom edited back, and a heading that is put to trial, or an advertisement
        that comes and goes, has few states, of which two fetches show the same one often enough to escape. While the
        mask has rules that are not confirmed, which may be an edit's, all visits that look changed are probed, and a
        tenth of those that do not instead of a hundredth: the rules differ again, or are forgotten. A
        page whose probe was given up is judged without one the next time: no host is so slow that its pages are never
        judged.
        """
        mask = content.mask
        if mask is None or content.is_surprised is not None or not self._enabled:
            return False
        if page in self._not_again:
            self._not_again.discard(page)
            return False
        if len(self._waiting) >= _MOST_WAITING:
            return False
        template = str(content.template)
        is_quiet = self._quiet_of_site[_site(template)] >= _QUIET_PROBES
        if changed:
            enough = _QUIET_PROBES_OF_QUIET_SITE if is_quiet else _QUIET_PROBES
            is_open = mask.n_quiet < enough or returned or not mask.is_confirmed
            return is_open or self._rng.random() < mask.doubt
        if changed is None:
            enough = _FIRST_PROBES_OF_QUIET_SITE if is_quiet else _FIRST_PROBES
            return mask.n_probes < enough and not self._of_template[template]
        share = _SHARE_OF_UNCHANGED if mask.is_confirmed else _SHARE_UNTIL_CONFIRMED
        return mask.n_rules > 0 and self._rng.random() < share

    def learned(self, template: str, *, is_surprised: bool) -> None:
        """A probe has found noise that was not known, or has not."""
        site = _site(template)
        self._quiet_of_site[site] = 0 if is_surprised else self._quiet_of_site[site] + 1

    def is_sibling_wanted(self, page: int, content: Content) -> bool:
        """Decide whether another page of the template is looked at before this one is taken for changed.

        Parameters
        ----------
        page : int
        content : Content
            What its visit found.

        Notes
        -----
        It is for each edit that one page has shown and that may be the template's. Another one is looked at only where
        the first has not told: it had changed otherwise, too, or has no such words. It is three at most.
        Where the last n siblings, three or more, have shown that it was the page's own, the share 1/(n + 2) is, which
        is the probability that it will not be if nothing else is known.
        """
        if not content.may_be_template_edit or not self._enabled or len(self._waiting) >= _MOST_WAITING:
            return False
        if page in self._not_again:
            self._not_again.discard(page)
            return False
        in_vain = self._in_vain_of_site[_site(str(content.template))]
        return in_vain < _SIBLINGS_IN_VAIN or self._rng.random() * (in_vain + 2) < 1.0

    def sibling_told(self, template: str, *, is_template_edit: bool) -> None:
        """A sibling has shown the same edit, or has not."""
        site = _site(template)
        self._in_vain_of_site[site] = 0 if is_template_edit else self._in_vain_of_site[site] + 1

    def ask(self, probe: Probe) -> None:
        """Put a probe in line for a slot."""
        self._waiting.append(probe)
        self._of_template[probe.template] += 1

    def next_due(self, is_free: Callable[[int], bool]) -> Probe | None:
        """Take out the probe that has waited longest among those whose host may be asked now."""
        for number, probe in enumerate(self._waiting):
            if is_free(probe.host):
                del self._waiting[number]
                return probe
        return None

    def give_up(self, asked_before: float) -> list[Probe]:
        """Take out the probes that have waited since before this time: seconds apart is what they are about."""
        old = [probe for probe in self._waiting if probe.asked_at < asked_before]
        for probe in old:
            self._waiting.remove(probe)
            self._not_again.add(probe.page)
            self.ended(probe)
        return old

    def ended(self, probe: Probe) -> None:
        """A probe was made, or given up."""
        self._of_template[probe.template] -= 1
        if not self._of_template[probe.template]:
            del self._of_template[probe.template]


def _site(template: str) -> str:
    return template.partition("/")[0]
