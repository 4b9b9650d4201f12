"""The cache of page facts has all that is not written yet, so that nobody asks the store for it."""

from crawlsched.crawl.page_facts import FactsCache
from crawlsched.store import PageFacts


def _facts(page: int) -> PageFacts:
    return PageFacts(page, f"http://a/{page}", None, None, None, None, None, None, None, 0, None, 1)


def test_what_is_not_written_stays() -> None:
    """Pinned facts stay whatever the limit, until their batch is in the store."""
    cache = FactsCache(limit=2)
    for page in range(4):
        cache.put(_facts(page), batch=1)
    cache.add([_facts(9), None])
    assert all(page in cache for page in range(4))
    cache.written(1)
    assert len(cache) == 2


def test_newer_facts_are_not_overwritten_by_those_of_the_store() -> None:
    """What was read ahead arrives late and must not undo what a visit taught."""
    cache = FactsCache()
    cache.put(_facts(1)._replace(etag="new"), batch=1)
    cache.add([_facts(1)])
    facts = cache.get(1)
    assert facts.etag == "new"
