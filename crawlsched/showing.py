"""Showing: makes texts of sites, and texts with secrets, safe for a terminal, a log or a message."""

from __future__ import annotations

import logging
import re

from crawlsched.exceptions import CrawlschedError

__all__ = ["escape_logs", "in_words", "shown", "without_secrets"]

# Characters that control a terminal: control characters (except newline and tab), marks that change the direction of
# writing, separators of lines, and characters without width. Surrogates are included, since they cannot be printed.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SECRET = "***"
# The part "user:password@" of any form of URL. A password may contain an @ or a slash, so it ends at a word's last @.
_USER = re.compile(r"(?P<before>//[^\s:/@'\"]*:|\b[A-Za-z][\w+.-]*:[^\s:/@'\"]+:)[^\s'\"]*@")
_NAMED = re.compile(
    r"(?P<name>\b(?:[\w-]*(?:password|passwd|passphrase|secret|token|authorization|apikey|api_key)|pwd|key|receiver_key)"
    r"\s*[=:]\s*)(?P<value>(?:(?:bearer|basic)\s+)?[^\s&;,'\"]+)",
    re.IGNORECASE,
)


def shown(text: str) -> str:
    r"""Return a text with escapes in place of characters that control a terminal; newlines and tabs stay.

    >>> shown("a\x1b[2Jb\u202ec\nd")
    'a\\x1b[2Jb\\u202ec\nd'
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def without_secrets(text: str, *secrets: str | None) -> str:
    """Return a text without known `secrets`, and without passwords and keys in any form of URL.

    >>> without_secrets("postgresql://me:se/cr@t@db:x/crawl?password=abc&sslmode=require")
    'postgresql://me:***@db:x/crawl?password=***&sslmode=require'
    >>> without_secrets("postgresql:me:secret@db/crawl and http://host/a:b")
    'postgresql:me:***@db/crawl and http://host/a:b'
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, _SECRET)
    text = _USER.sub(lambda found: f"{found['before']}{_SECRET}@", text)
    return _NAMED.sub(lambda found: f"{found['name']}{_SECRET}", text)


def in_words(error: BaseException) -> str:
    """Describe an error in a few words.

    >>> in_words(MemoryError()), in_words(ValueError("no such class"))
    ('MemoryError', 'ValueError (no such class)')
    """
    text = " ".join(str(error).split())
    return text if isinstance(error, CrawlschedError) else f"{type(error).__name__}{f' ({text})' if text else ''}"


def _escape(record: logging.LogRecord) -> bool:
    """Make a record and its exception safe for a terminal; no record is dropped."""
    record.msg, record.args = shown(record.getMessage()), None
    if record.exc_info and not record.exc_text:
        record.exc_text = shown(logging.Formatter().formatException(record.exc_info))
    return True


def escape_logs() -> None:
    """Make the records of all present loggers of crawlsched safe for a terminal."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "crawlsched":
            logging.getLogger(name).addFilter(_escape)
