"""Validators on trial: do a host's ETag and Last-Modified change whenever its pages do?"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from random import Random
from typing import Any

__all__ = ["Tally", "ValidatorTrials", "standings"]

_HEADERS = {"etag": "ETag", "last_modified": "Last-Modified"}
# Before the first trial, 0.5 of 2.5 trials count as failed: most servers are honest.
_PRIOR_FAILED, _PRIOR_TRIALS = 0.5, 2.5
# A validator is honest below this doubt, so after three trials without a failure. It lies above three times this doubt.
_HONEST_BELOW = 0.1
# After this number of trials, older trials count half.
_REMEMBERED = 60

_Validators = tuple[str | None, str | None]


@dataclass(slots=True)
class Tally:
    """The results of one validator's trials. A trial is a visit without the validator that has content to compare.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.standing, tally.doubt
    ('unknown', 0.2)
    >>> for _ in range(3):
    ...     tally.count(changed=True, moved=True)
    >>> tally.standing, tally.doubt
    ('honest', 0.0)
    """

    moved: int = 0  # page changed, validator changed
    stale: int = 0  # page changed, validator unchanged
    restless: int = 0  # page unchanged, validator changed
    quiet: int = 0  # page unchanged, validator unchanged

    def count(self, *, changed: bool, moved: bool) -> None:
        """Count one trial."""
        self.moved += changed and moved
        self.stale += changed and not moved
        self.restless += moved and not changed
        self.quiet += not moved and not changed
        if self.moved + self.stale > _REMEMBERED:
            self.moved, self.stale = self.moved // 2, self.stale // 2
        if self.restless + self.quiet > _REMEMBERED:
            self.restless, self.quiet = self.restless // 2, self.quiet // 2

    @property
    def doubt(self) -> float:
        """The probability that the validator stays the same although the page has changed; 0 if it is honest."""
        doubt = _doubt(self.stale, self.moved)
        return 0.0 if doubt < _HONEST_BELOW else doubt

    @property
    def standing(self) -> str:
        """The verdict on the validator: "honest", "lying" or "unknown"."""
        if not self.doubt:
            return "honest"
        return "lying" if self.doubt > 3.0 * _HONEST_BELOW and self.stale > 1 else "unknown"

    @property
    def tells_time(self) -> bool:
        """Whether a Last-Modified is the time of the last change: it changes when the page does, and only then."""
        return self.standing == "honest" and _doubt(self.restless, self.quiet) < _HONEST_BELOW


def _doubt(failed: int, passed: int) -> float:
    return (failed + _PRIOR_FAILED) / (failed + passed + _PRIOR_TRIALS)


class ValidatorTrials:
    """The verdict on each host's validators, and which visits put them on trial.

    The `share` of visits to honest hosts is made without validators. So is the share `of_unknown` of visits to unknown
    hosts (none if `share` is 0). This finds changes of their pages sooner.
    """

    def __init__(self, rng: Random, share: float = 0.1, of_unknown: float = 0.5) -> None:
        self._rng = rng
        self._share = share
        self._of_unknown = max(share, of_unknown) if share else 0.0
        self._hosts: dict[int, tuple[Tally, Tally]] = {}

    def of(self, host: int) -> tuple[Tally, Tally]:
        """Return what trials of a host's ETag and Last-Modified found."""
        return self._hosts.get(host) or (Tally(), Tally())

    def to_send(self, host: int, etag: str | None, last_modified: str | None) -> _Validators:
        """Return the validators with which a visit is made conditional; no validator if they are on trial."""
        of_etag, of_date = self.of(host)
        etag = None if of_etag.standing == "lying" else etag
        last_modified = None if of_date.standing == "lying" else last_modified
        doubt = self.doubt(host, etag, last_modified)
        if doubt is None:
            return None, None
        share = self._of_unknown if doubt else self._share
        return (None, None) if self._rng.random() < share else (etag, last_modified)

    def doubt(self, host: int, etag: str | None, last_modified: str | None) -> float | None:
        """Return the probability that a 304 comes although the page has changed; None if a 304 is not believed.

        Where both validators are sent, a server uses the ETag.
        """
        if not etag and not last_modified:
            return None
        decisive = self.of(host)[0 if etag else 1]
        return None if decisive.standing == "lying" else decisive.doubt

    def compared(self, host: int, before: _Validators, now: _Validators, *, changed: bool) -> bool:
        """Compare the content of a visit without validators; return whether something was learned."""
        both = [number for number in (0, 1) if before[number] is not None and now[number] is not None]
        for number in both:
            tallies = self._hosts.setdefault(host, (Tally(), Tally()))
            tallies[number].count(changed=changed, moved=before[number] != now[number])
        return bool(both)

    def to_dict(self, host: int) -> dict[str, Any]:
        """Return what trials of a host found, as plain data for JSON."""
        return dict(zip(_HEADERS, map(list, map(astuple, self._hosts.get(host, ()))), strict=False))

    def load(self, host: int, data: dict[str, Any]) -> None:
        """Take over the data of `to_dict`."""
        if data:
            self._hosts[host] = (Tally(*data["etag"]), Tally(*data["last_modified"]))


def standings(data: dict[str, Any]) -> dict[str, str]:
    """Return the verdict on each of a host's validators, from the data of `ValidatorTrials.to_dict`.

    >>> standings({"etag": [5, 0, 0, 3], "last_modified": [0, 4, 0, 0]})
    {'ETag': 'honest', 'Last-Modified': 'lying'}
    """
    return {_HEADERS[kind]: Tally(*counts).standing for kind, counts in data.items() if any(counts)}
