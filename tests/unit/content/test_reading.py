"""How a response is read, and where."""

import gzip

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.trace import Trace, differences
from crawlsched.content.reading import Body, is_quick, read_content


def test_what_may_take_long_is_not_read_on_the_crawls_own_thread() -> None:
    """However short: what holds more than it shows, and what is looked at again and again."""

    def is_read(data: bytes, **options: object) -> bool:
        return is_quick(Body(data, "text/html", None, "http://a/"), Recipe(**options))  # type: ignore[arg-type]

    page = b"<p>Tea</p>" * 1_000
    assert is_read(page)
    assert is_read(page, keep=["main > p"])
    assert not is_read(gzip.compress(page))
    assert not is_read(page, keep=["main > p ~ p"])
    assert not is_read(page * 2)
    assert not is_read(b"<td>1" * 3_000)


def test_where_a_page_is_read_it_is_compared_for_who_judges_it() -> None:
    """To what its reader got, and to the first of two fetches: judging compares nothing anew on the crawl's thread."""
    old, first = (read_content(Body(data, "text/html", None, "http://a/"), Recipe()) for data in (b"<p>a", b"<p>b"))
    assert old.seen is not None
    assert first.seen is not None
    given = old.seen.trace.packed()
    second = read_content(Body(b"<p>c", "text/html", None, "http://a/"), Recipe(), given=given, first=first)
    assert second.seen is not None
    before = differences.cache_info().misses
    assert [differences(trace, second.seen.trace)[0].new for trace in (Trace.unpacked(given), first.seen.trace)] == [
        "c",
        "c",
    ]
    assert differences.cache_info().misses == before
