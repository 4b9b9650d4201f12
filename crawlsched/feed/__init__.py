"""The change feed: pages that changed, vanished, failed or returned, for the command line, HTTP, Atom and the webhook.

The transaction that writes the fingerprint of a page as delivered also adds the change to the feed. So a follower that
stores its cursor gets each delivered change at least once, even if either side is killed.
"""

from crawlsched.feed.feed import Change, Cursor, Feed

__all__ = ["Change", "Cursor", "Feed"]
