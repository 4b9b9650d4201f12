"""Sitemap indexes: their dates spare fetches while they prove true, and only then."""

from crawlsched.crawl.sources import Sources


def test_a_sitemap_is_skipped_while_the_date_in_its_index_proves_true() -> None:
    """Until the index states another; a date that has missed a change is not believed, and without one none is."""
    sources, skipped = Sources(3600.0), []
    index = sources.add("sitemap", "http://a/index.xml", "a", now=0.0).source
    dated, undated = (sources.add("sitemap", f"http://a/{n}.xml", "a", now=0.0, parent=index).source for n in range(2))
    for date, brought in ((100.0, None), *((100.0, n % 2 == 0) for n in range(4)), (200.0, None), (200.0, True)):
        sources.describe(dated, listed_lastmod=date)
        for child in (dated, undated) if brought is not None else ():
            sources.read(child, brought=brought)
        skipped.append(sources.may_skip(dated))
        assert not sources.may_skip(undated)
    assert skipped == [False, True, True, False, False, False, True]
