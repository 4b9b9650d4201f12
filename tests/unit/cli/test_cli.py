"""What commands share: the version, the progress of long runs, the URLs of a file."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils.request import fingerprint

import crawlsched
from crawlsched.cli import parsing
from crawlsched.cli.parsing import shown_progress
from crawlsched.jobs.importing import Requests
from crawlsched.store import host_of
from tests import children


def test_the_package_is_the_command() -> None:
    """`python -m crawlsched` does what `crawlsched` does, under its name; `--version` prints the version."""
    command = (sys.executable, "-m", "crawlsched")
    assert children.output_of(*command, "--version") == f"crawlsched {crawlsched.__version__}\n"
    assert children.output_of(*command, "--help").startswith("usage: crawlsched ")


def test_a_run_that_is_soon_done_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is a line every ten seconds."""
    move = shown_progress("figure")
    for done in range(5):
        move(done, 4)
    assert capsys.readouterr() == ("", "")


def test_lines_say_how_far_a_run_has_come(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """How much is done, and about how long the rest takes; neither at the start nor at the end."""
    monkeypatch.setattr(parsing, "_FIRST", 0.0)
    move = shown_progress("figure")
    for done in range(3):
        move(done, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("figure: 50% done, about ")
    assert err.endswith(" s left\n")
    assert err.count("\n") == 1


REQUESTS = Requests()
PARTS = st.text("abzAZ09-._~%/?&=#+ä ", max_size=12)


ANY = st.builds(
    lambda scheme, host, path, query: f"{scheme}://{host}/{path}?{query}".strip(),
    st.sampled_from(["http", "https", "HTTP"]), st.text("abz09.-AZ", min_size=1, max_size=8), PARTS, PARTS,
)  # fmt: skip
PLAIN = st.from_regex(r"\Ahttps?://[a-z0-9]+(\.[a-z0-9]+){0,2}/[A-Za-z0-9_.,/-]*(\?[a-z]+=[a-z0-9_.-]+)?\Z")


@example("http://example.com/a/./b/..")
@given(ANY | PLAIN)
def test_a_page_is_named_as_scrapy_names_it(url: str) -> None:
    """Whatever the URL, URL, host and fingerprint are those of the request that a spider would make of it."""
    try:
        request = Request(url)
        expected = request.url, host_of(request.url), fingerprint(request)
    except ValueError:
        expected = None
    try:
        page = REQUESTS.page_of(url)
    except ValueError:
        assert expected is None or not expected[1]
    else:
        assert (page.url, page.host, page.request_fingerprint) == expected


@pytest.mark.parametrize("url", ["ftp://example.com/", "/p/3", "http://", "http:///p", "http://[::1/", "example.com"])
def test_what_is_no_url_is_said(url: str) -> None:
    """Another scheme, none, and no host are each refused, with the text that was given."""
    with pytest.raises(ValueError, match="URL"):
        REQUESTS.page_of(url)
