"""How a response is read, and where."""

import gzip

from crawlsched.change_detection import Recipe
from crawlsched.content.reading import Body, is_quick


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
