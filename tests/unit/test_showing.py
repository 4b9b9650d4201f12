"""Showing: nothing that a site has chosen is obeyed by a terminal, and no secret is in a message."""

import logging
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.exceptions import StoreError
from crawlsched.showing import escape_logs, shown, without_secrets
from crawlsched.store.database import Database, database_url


@given(st.text(alphabet=st.characters(), max_size=40))
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    """Whatever stands in it: no control, format, surrogate or line separating character but newline and tab."""
    said = shown(text)
    said.encode()
    left = {unicodedata.category(sign) for sign in said if sign not in "\n\t"}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]", said)


def test_logs_are_escaped_with_their_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    """Once, whatever logger of ours it comes from."""
    logger = logging.getLogger("crawlsched.test_showing")
    escape_logs()
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        logger.exception("%s says %s", "a.example", "\x1b]0;title\x07\u202e")
    record = caplog.records[-1]
    assert record.getMessage() == "a.example says \\x1b]0;title\\x07\\u202e"
    assert record.exc_text is not None
    assert "\x1b" not in record.exc_text


FORMS = (Path(__file__).parent / "database_urls.txt").read_text().splitlines()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", ["hunter22", "s@cr/t:x", "p%40ss%2Fw"])
def test_no_error_says_the_password_of_a_database(form: str, secret: str) -> None:
    """Neither the sentence, nor what it came from, nor the name of the database."""
    url = form.format(secret=secret)
    try:
        said = Database(url).name
        database_url(url)
    except StoreError as error:
        said = f"{error} {error.__cause__}"
    assert secret not in said
    assert "hunter" not in said


@pytest.mark.parametrize(
    "text", ["crawlsched status", "https://a.example/key?page=3", "12:30:45 a@b", "http://[::1]:80/"]
)
def test_what_is_no_secret_stays(text: str) -> None:
    """URLs with ports, times and names are left alone."""
    assert without_secrets(text) == text
