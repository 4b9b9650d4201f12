"""Page facts in memory: the URLs, validators and fingerprints of the pages that are likely to be needed next."""

from __future__ import annotations

from collections.abc import Iterable

from crawlsched.store import PageFacts

__all__ = ["FactsCache"]


class FactsCache:
    """Facts of at most `limit` pages, and of every page whose facts are not yet written; all methods are O(1).

    A page that is newer than the store is pinned until its batch has been written. The others are dropped oldest first.
    """

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        self._facts: dict[int, PageFacts] = {}
        self._pinned: dict[int, int] = {}  # page to the number of the batch that carries it

    def __contains__(self, page: int) -> bool:
        return page in self._facts

    def __len__(self) -> int:
        return len(self._facts)

    def get(self, page: int) -> PageFacts | None:
        """Return a page's facts if they are here."""
        return self._facts.get(page)

    def put(self, facts: PageFacts, batch: int) -> None:
        """Keep facts which are newer than the store, until that batch is written."""
        # Taken out first, so that the page becomes the youngest.
        self._facts.pop(facts.page, None)
        self._facts[facts.page] = facts
        self._pinned[facts.page] = batch

    def add(self, facts: Iterable[PageFacts | None]) -> None:
        """Keep facts as the store has them; what is here already is newer or the same."""
        for fact in facts:
            if fact is not None:
                self._facts.setdefault(fact.page, fact)
        self._shrink()

    def discard(self, page: int) -> None:
        """Forget a page's facts."""
        self._facts.pop(page, None)
        self._pinned.pop(page, None)

    def written(self, batch: int) -> None:
        """All batches up to this one are in the store."""
        self._pinned = {page: carrier for page, carrier in self._pinned.items() if carrier > batch}
        self._shrink()

    def _shrink(self) -> None:
        excess = len(self._facts) - self._limit
        if excess <= 0:
            return
        oldest = [page for page, _ in zip(self._facts, range(excess + len(self._pinned)), strict=False)]
        for page in oldest:
            if page not in self._pinned:
                del self._facts[page]
                excess -= 1
                if excess <= 0:
                    return
