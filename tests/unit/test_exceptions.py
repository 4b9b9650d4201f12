"""The error tree: what is caught by what, and that it is drawn as it is."""

from types import SimpleNamespace

import pytest

import crawlsched.exceptions as exceptions
from crawlsched.exceptions import CrawlschedError


def test_each_error_is_ours_and_the_nearest_builtin() -> None:
    """A caller can catch all of ours, or the builtin that fits."""
    assert issubclass(exceptions.SettingError, ValueError)
    assert issubclass(exceptions.UnknownPage, LookupError)
    assert issubclass(exceptions.StoreError, RuntimeError)
    for error in (exceptions.SchemaOutOfDate, exceptions.CollectionInUse):
        assert issubclass(error, exceptions.StoreError)
    for error in (exceptions.SettingError, exceptions.UnknownPage, exceptions.StoreError):
        assert issubclass(error, CrawlschedError)


def test_on_windows_no_command_no_crawl_and_no_collection_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> None:
    """One sentence before anything is looked at, so that no signal is ever sent there to ask after a process."""
    from scrapy.spiders import Spider
    from scrapy.utils.test import get_crawler

    from crawlsched.addon import Addon
    from crawlsched.cli import main
    from crawlsched.store import Store

    # Not in all of Python, whose paths would be Windows' then.
    monkeypatch.setattr(exceptions, "os", SimpleNamespace(name="nt"))
    said = (
        "crawlsched does not run on Windows; "
        "run it on Linux or another POSIX system, such as the Windows Subsystem for Linux."
    )
    assert main(["status", "--database", "sqlite:///nowhere/crawl.db"]) == 1
    assert capsys.readouterr() == ("", said + "\n")
    crawler = get_crawler(Spider)
    for begin in (lambda: Addon(crawler).update_settings(crawler.settings), lambda: Store.open(sqlite_url, "spider")):
        with pytest.raises(CrawlschedError) as refused:
            begin()
        assert str(refused.value) == said
