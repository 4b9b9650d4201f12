"""The change feed: pages that changed, vanished, failed or came back, for command line, HTTP, Atom and webhook.

A change enters the feed in the same transaction that writes its page's fingerprint as delivered. So a follower that
keeps its cursor sees each delivered change at least once, whichever side is killed.
"""

from crawlsched.feed.feed import Change, Cursor, Feed

__all__ = ["Change", "Cursor", "Feed"]
