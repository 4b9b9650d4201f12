"""The change feed: what was delivered, vanished, failed and came back, for command line, HTTP, Atom and webhook.

A change enters the feed in the same transaction that writes its page's fingerprint as delivered. A follower that keeps
its cursor therefore sees each delivered change once or more, and misses none, whichever side is killed.
"""

from crawlsched.feed.feed import Change, Cursor, Feed

__all__ = ["Change", "Cursor", "Feed"]
