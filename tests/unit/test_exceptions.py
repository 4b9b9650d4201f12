"""The error tree: what is caught by what, and that it is drawn as it is."""

import re

import pytest

import crawlsched.exceptions as exceptions
from crawlsched.exceptions import (
    CollectionInUse,
    CrawlschedError,
    SchemaOutOfDate,
    SettingError,
    StoreError,
    UnknownPage,
)


@pytest.mark.parametrize(
    ("error", "caught_as"),
    [
        (SettingError, ValueError),
        (UnknownPage, LookupError),
        (StoreError, RuntimeError),
        (SchemaOutOfDate, StoreError),
        (CollectionInUse, StoreError),
    ],
)
def test_each_error_is_ours_and_the_nearest_builtin(error: type[Exception], caught_as: type[Exception]) -> None:
    """A caller can catch all of ours, or the builtin that fits."""
    assert issubclass(error, CrawlschedError)
    assert issubclass(error, caught_as)


def test_the_tree_in_the_docstring_names_every_error() -> None:
    """What is drawn at the top of the module is what the module has."""
    drawn = set(re.findall(r"^ +\+? *([A-Z]\w+)", exceptions.__doc__ or "", re.MULTILINE))
    defined = {n for n, v in vars(exceptions).items() if isinstance(v, type) and issubclass(v, Exception)}
    assert drawn == defined == set(exceptions.__all__)


def test_an_unknown_page_says_where_it_was_looked_for() -> None:
    """The sentence has the URL, the collection, and what to do."""
    assert str(UnknownPage("http://127.0.0.1/a", "news")) == (
        "No page with the URL 'http://127.0.0.1/a' is in the collection 'news'; "
        "check its spelling, or name another collection with --collection."
    )
