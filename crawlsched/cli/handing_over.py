"""Handing over: what a file names, given to the crawl that runs, some pages at a time."""

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from crawlsched.crawl.importing import ImportedPage
    from crawlsched.store import Store

__all__ = ["RunningImport"]

# Pages in one word to the crawl, and words that may wait for it: it reads them twice a second.
_PAGES_AT_ONCE = 250
_MOST_WAITING = 16
_ANSWER_WITHIN = 60.0


class RunningImport:
    """Gives pages to a running crawl, as `crawlsched.crawl.importing.Import` takes them where none runs."""

    learns = False

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._sent: deque[int] = deque()
        names = ("pages", "new", "forgotten", "too_many", "weighed", "visits", "visits_of_their_own")
        self.counts = dict.fromkeys(names, 0)

    def take(self, named: "Sequence[ImportedPage]", histories: Any = None) -> None:
        """Hand pages over; waits where the crawl has many of them before it."""
        for start in range(0, len(named), _PAGES_AT_ONCE):
            some = named[start : start + _PAGES_AT_ONCE]
            asked = {"pages": {page.url: page.importance for page in some}}
            self._sent.append(self._store.commands.send("import", asked, time.time()))
            self.counts["pages"] += len(some)
            if len(self._sent) > _MOST_WAITING:
                self._collect()

    def finish(self) -> None:
        """Wait until all of them are taken over."""
        while self._sent:
            self._collect()

    def _collect(self) -> None:
        answer = self._store.commands.wait_for(self._sent.popleft(), _ANSWER_WITHIN)
        if answer is None:
            raise CrawlschedError(
                f"The crawl of the collection {self._store.name!r} did not answer within {_ANSWER_WITHIN:g} s; it "
                "takes what was handed over when it does. Look at its log."
            )
        if "error" in answer.result:
            raise CrawlschedError(str(answer.result["error"]))
        for name, n in answer.result.items():
            self.counts[name] += n
