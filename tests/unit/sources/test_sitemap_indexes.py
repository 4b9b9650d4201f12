"""Sitemap indexes: their dates spare fetches while they prove true, and only then."""

from crawlsched.crawl.sources import SitemapIndexes, Sources


def _index_with_child() -> tuple[Sources, SitemapIndexes, int, int]:
    sources = Sources(3600.0)
    index = sources.add("sitemap", "http://a/index.xml", "a", now=0.0)
    child = sources.add("sitemap", "http://a/1.xml", "a", now=0.0, parent=index.source)
    return sources, SitemapIndexes(sources), index.source, child.source


def test_a_sitemap_whose_date_has_not_moved_is_skipped() -> None:
    """Read at the date that its index states, it is left alone until the index states another."""
    _, indexes, _, child = _index_with_child()
    assert indexes.listed(child, 100.0)
    assert not indexes.may_skip(child)
    indexes.read(child, brought=True)
    assert indexes.may_skip(child)
    assert not indexes.listed(child, 100.0)
    assert indexes.listed(child, 200.0)
    assert not indexes.may_skip(child)


def test_a_sitemap_without_a_date_in_its_index_is_never_skipped() -> None:
    """Nothing is invented for it."""
    _, indexes, _, child = _index_with_child()
    assert not indexes.listed(child, None)
    indexes.read(child, brought=False)
    assert not indexes.may_skip(child)


def test_an_index_that_misses_changes_is_not_believed_until_it_has_held_often_enough() -> None:
    """One miss that the next reading of the index confirms ends the skipping; some thirty true looks bring it back."""
    _, indexes, index, child = _index_with_child()
    indexes.listed(child, 100.0)
    indexes.read(child, brought=True)
    indexes.read(child, brought=True)
    indexes.listed(child, 100.0)
    indexes.listed_again(index)
    assert not indexes.may_skip(child)
    looks = 0
    while not indexes.may_skip(child):
        indexes.read(child, brought=False)
        looks += 1
    assert 5 <= looks <= 30


def test_a_change_newer_than_the_reading_of_the_index_is_no_lie() -> None:
    """The index states the new date at its next reading, so it has missed nothing."""
    _, indexes, index, child = _index_with_child()
    indexes.listed(child, 100.0)
    indexes.read(child, brought=True)
    indexes.read(child, brought=True)
    indexes.listed(child, 200.0)
    indexes.listed_again(index)
    indexes.read(child, brought=True)
    assert indexes.may_skip(child)
