"""Sitemap indexes: their dates spare fetches while they prove true, and only then."""

from crawlsched.crawl.sources import Sources


def _sources_with_child(listed: float | None) -> tuple[Sources, int]:
    """Sources with a sitemap for which an index states this date."""
    sources = Sources(3600.0)
    index = sources.add("sitemap", "http://a/index.xml", "a", now=0.0)
    child = sources.add("sitemap", "http://a/1.xml", "a", now=0.0, parent=index.source)
    sources.describe(child.source, listed_lastmod=listed)
    return sources, child.source


def test_a_sitemap_whose_date_has_not_moved_is_skipped() -> None:
    """Read at the date that its index states, it is left alone until the index states another."""
    sources, child = _sources_with_child(100.0)
    assert not sources.may_skip(child)
    sources.read(child, brought=True)
    assert sources.may_skip(child)
    sources.read(child, brought=False)
    assert sources.may_skip(child)
    sources.describe(child, listed_lastmod=200.0)
    assert not sources.may_skip(child)


def test_a_sitemap_without_a_date_in_its_index_is_never_skipped() -> None:
    """Nothing is invented for it."""
    sources, child = _sources_with_child(None)
    for brought in (False, True):
        sources.read(child, brought=brought)
        assert not sources.may_skip(child)


def test_a_date_that_has_missed_a_change_is_not_believed() -> None:
    """However often the sitemap brings nothing at it; the next date is believed again."""
    sources, child = _sources_with_child(100.0)
    for brought in (True, True, False, False):
        sources.read(child, brought=brought)
    assert not sources.may_skip(child)
    sources.describe(child, listed_lastmod=200.0)
    sources.read(child, brought=True)
    assert sources.may_skip(child)
