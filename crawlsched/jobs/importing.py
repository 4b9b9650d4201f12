"""Importing: pages, their importance, and the visits of other crawlers, from which the planner learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import inf
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.project import get_project_settings

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.fingerprints import fingerprints
from crawlsched.crawl.refresher import Refresher
from crawlsched.estimators import Posterior
from crawlsched.exceptions import StoreError
from crawlsched.jobs.crawl_jobs import plan_now
from crawlsched.pages import LIVE, NEW
from crawlsched.planner.knowledge import RENEWAL
from crawlsched.settings import Settings
from crawlsched.store import Lease, Outcome, host_of

__all__ = ["Import", "PastVisit", "Requests"]

#: A visit of another crawler. In this order: the index of the page, POSIX seconds, whether the page had changed since
#: the previous visit (1: changed; 0: unchanged; -1: not known), and the digest of its content (0: not known).
PastVisit = tuple[int, float, int, int]


class Requests:
    """Makes requests for URLs by a project's settings; by default, the project is that of the working directory."""

    def __init__(self, project_settings: Mapping[str, Any] | None = None, ignored: Sequence[str] = ()) -> None:
        settings: Any = get_project_settings() if project_settings is None else project_settings
        made = build_from_crawler(load_object(settings["REQUEST_FINGERPRINTER_CLASS"]), Crawler(Spider, settings))
        self.fingerprinter, self._fingerprint = fingerprints(made, ignored)
        #: Whether crawlsched has to request robots.txt, since Scrapy does not.
        self.asks_robots = not settings.getbool("ROBOTSTXT_OBEY")

    def fingerprint(self, url: str) -> bytes:
        """Return the fingerprint that identifies a URL's page."""
        return self._fingerprint(Request(url))

    def page_of(self, url: str, importance: float | None = None) -> FoundPage:
        """Return the page of a URL; ValueError names the fault of a wrong URL."""
        if not url[:8].lower().startswith(("http://", "https://")):
            raise ValueError(f"a URL must begin with http:// or https://, got {url!r:.100}")
        try:
            request = Request(url)
            host = host_of(request.url)
            if not host:
                raise ValueError("it has no host")
            return FoundPage(request.url, self._fingerprint(request), host, importance)
        except ValueError as error:
            raise ValueError(f"{url!r:.100} is no URL ({error})") from None


class Import:
    """Fill a collection while no process crawls it; the import acts as a crawl that sends nothing.

    `counts` has the number of ``pages`` in the file. It also has how many are ``new``, ``forgotten`` or ``weighed``
    (their importance was set). ``visits`` were learned from. A crawl has visited the pages with
    ``visits_of_their_own``, so the file's visits of these pages are left out.
    """

    learns = True

    def __init__(self, settings: Settings, requests: Requests, now: float) -> None:
        self._oldest, self._now = now - settings.observation_retention, now
        self._crawl = Refresher(
            settings,
            "crawlsched import",
            count=lambda name, n=1: None,
            request_fingerprint=requests.fingerprint,
            clock=lambda: now,
            rng=Random(),
            fingerprinter=requests.fingerprinter,
            obeys_robots=not requests.asks_robots,
        )
        self._collection = self._crawl.collection
        self._crawl.shard_pages.open(now)
        names = ("pages", "new", "forgotten", "too_many", "weighed", "visits", "visits_of_their_own")
        self.counts = dict.fromkeys(names, 0)
        self._visited: list[NDArray[np.intp]] = []

    @property
    def lease(self) -> Lease:
        """The collection's lease, which this process has."""
        return self._collection.lease

    def close(self) -> None:
        """Give the collection back."""
        self._collection.close(self._now)

    def take(self, named: Sequence[FoundPage], visits: Iterable[PastVisit] = ()) -> None:
        """Take in some thousands of distinct pages, set the importance of known pages, and learn from all visits.

        `visits` are ordered by page, then by time. The content of a page's last visit counts as the page's copy.
        """
        self.counts["pages"] += len(named)
        for name, n in self._crawl.admission.named(named, self._now).items():
            self.counts[name] += n
        self._learn(named, visits)
        self._write()

    def finish(self) -> None:
        """Make the first plan from the visits, and write the plan and the estimates for the next crawl."""
        if self._visited:
            plan_now(self._crawl, self._now)
        for pages in self._visited:
            self._collection.unsaved.pages(pages, self._now)
            self._write()

    def _write(self) -> None:
        self._collection.flush(self._now)
        writer = self._collection.write_behind
        if not writer.drain():
            raise StoreError(writer.lost or writer.failure or "the database does not answer.")

    def _learn(self, named: Sequence[FoundPage], visits: Iterable[PastVisit]) -> None:
        """Learn from the visits of pages that no crawl has visited, in the same way as a crawl learns."""
        planner, index = self._crawl.planner, self._collection.index
        posterior = Posterior(len(named), planner.posterior.rates, dtype=np.uint8, renewal=RENEWAL)
        learned: dict[int, int] = {}
        for place, of_page in groupby(visits, lambda visit: visit[0]):
            page = index.page(named[place].request_fingerprint)
            if page >= 0 and planner.pages.state.item(page) != NEW:
                self.counts["visits_of_their_own"] += 1
            elif page >= 0:
                learned[page] = place
                self._learn_of(page, of_page, partial(posterior.update_one, place))
        if not learned:
            return
        pages = np.array(list(learned), np.intp)
        planner.posterior.unpack(pages, posterior.packed(np.array(list(learned.values()), np.intp)))
        self._collection.unsaved.pages(pages, self._now)
        self._visited.append(pages)

    def _learn_of(self, page: int, visits: Iterable[PastVisit], learn: Callable[..., object]) -> None:
        """Learn from the visits of one page, in their order; of several visits at the same time only the first counts.

        If the file does not state whether the page had changed, the digests of two visits are compared.
        """
        columns, unsaved, learned = self._crawl.planner.pages, self._collection.unsaved, self._crawl.planner.learned
        last, last_digest, changed_at = -inf, 0, None
        columns.state[page] = LIVE
        for _, time, said, digest in visits:
            if time == last:
                continue
            changed = None if said < 0 else said == 1
            if changed is None and digest and last_digest:
                changed = digest != last_digest
            elapsed = None if last == -inf else time - last
            if elapsed is None:  # there is no visit before the first
                changed = None
            elif changed is not None:
                learn(elapsed, changed, n_updates=columns.n_crawls.item(page))
                if learned is not None:
                    learned.observe(page, elapsed, changed)
            columns.n_crawls[page] += 1
            self.counts["visits"] += 1
            if changed:
                columns.n_changes[page] += 1
                changed_at = time
            if time >= self._oldest:  # recent enough to be stored
                outcome = Outcome.UNCHANGED if changed is False else Outcome.CHANGED
                unsaved.observation(
                    time, page, source=-1, elapsed=elapsed, n_signals=0, changed=changed, outcome=outcome
                )
            last, last_digest = time, digest
        columns.crawled_at[page] = last
        if changed_at is not None:
            unsaved.content(page, self._now, changed_at=changed_at)
