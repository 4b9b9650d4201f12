"""The error tree: what is caught by what, and that it is drawn as it is."""

from types import SimpleNamespace

import pytest

import crawlsched.exceptions as exceptions
from crawlsched.exceptions import (
    CollectionInUse,
    CrawlschedError,
    SchemaOutOfDate,
    SettingError,
    StoreError,
    UnknownPage,
    UnsupportedPlatform,
)


@pytest.mark.parametrize(
    ("error", "caught_as"),
    [
        (SettingError, ValueError),
        (UnknownPage, LookupError),
        (UnsupportedPlatform, OSError),
        (StoreError, RuntimeError),
        (SchemaOutOfDate, StoreError),
        (CollectionInUse, StoreError),
    ],
)
def test_each_error_is_ours_and_the_nearest_builtin(error: type[Exception], caught_as: type[Exception]) -> None:
    """A caller can catch all of ours, or the builtin that fits."""
    assert issubclass(error, CrawlschedError)
    assert issubclass(error, caught_as)


def test_an_unknown_page_says_where_it_was_looked_for() -> None:
    """The sentence has the URL, the collection, and what to do."""
    assert str(UnknownPage("http://127.0.0.1/a", "news")) == (
        "No page with the URL 'http://127.0.0.1/a' is in the collection 'news'; "
        "check its spelling, or name another collection with --collection."
    )


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the system call itself Windows where it is asked; give the sentence in which it is refused."""
    # Not in all of Python, whose paths would be Windows' then.
    monkeypatch.setattr(exceptions, "os", SimpleNamespace(name="nt"))
    return (
        "crawlsched does not run on Windows; "
        "run it on Linux or another POSIX system, such as the Windows Subsystem for Linux."
    )


def test_on_windows_every_command_says_that_it_is_not_supported(
    on_windows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 1, before anything is looked at."""
    from crawlsched.cli import main

    assert main(["status", "--database", "sqlite:///nowhere/crawl.db"]) == 1
    assert capsys.readouterr() == ("", on_windows + "\n")


def test_on_windows_no_crawl_begins(on_windows: str) -> None:
    """The add-on refuses when it is asked for its settings."""
    from scrapy.spiders import Spider
    from scrapy.utils.test import get_crawler

    from crawlsched.addon import Addon

    crawler = get_crawler(Spider)
    with pytest.raises(UnsupportedPlatform) as refused:
        Addon(crawler).update_settings(crawler.settings)
    assert str(refused.value) == on_windows


def test_on_windows_no_collection_is_opened(on_windows: str, sqlite_url: str) -> None:
    """So no signal is ever sent there, to ask after a process; `require_posix` itself allows this system."""
    from crawlsched.store import Store

    with pytest.raises(UnsupportedPlatform, match="does not run on Windows"):
        Store.open(sqlite_url, "spider")
