"""The webhook: a thread posts changes to an address in batches, and repeats each batch until it has arrived."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from crawlsched.exceptions import CollectionInUse, CrawlschedError
from crawlsched.feed.feed import Change, Cursor, Feed
from crawlsched.showing import in_words, without_secrets
from crawlsched.store import Store
from crawlsched.store.records import position_of, put_position

__all__ = ["SIGNATURE", "Webhook", "signature"]

logger = logging.getLogger(__name__)

#: The header with the signature of the body.
SIGNATURE = "X-Crawlsched-Signature"

# The most changes of one post.
_AT_ONCE = 200
# Seconds until the feed is read again, or until a failed post is repeated. Each further failure in a row doubles this
# pause, up to the longest pause.
_PAUSE, _LONGEST_PAUSE = 1.0, 300.0


def signature(body: bytes, key: str) -> str:
    """Return the value of the header `SIGNATURE`: the HMAC-SHA256 of the body (RFC 2104).

    >>> signature(b"{}", "secret-key")
    'sha256=99922a0dbb1fe95624c93c7204445c2eff8a014b0c9b585ddf2da0c21083a34e'
    """
    return f"sha256={hmac.new(key.encode(), body, hashlib.sha256).hexdigest()}"


class Webhook:
    """Post the changes of the feed to an address.

    A batch is posted again until the answer is 2xx. Only then is the position after the batch written. So after a crash
    of either side, the last batch may be posted twice, but no batch is lost. Batches are posted one after another, in
    the order of the feed.
    """

    def __init__(
        self, store: Store, url: str, key: str | None, clock: Callable[[], float], count: Callable[..., None]
    ) -> None:
        self._store, self._url, self._key, self._clock = store, url, key, clock
        self._count = count  # called in the webhook's thread
        # Each address is a follower of its own. Its name is a digest of the address, which hides a password.
        self.name = f"webhook {hashlib.sha256(url.encode()).hexdigest()[:16]}"
        self._ending = threading.Event()
        self._opener = _opener()
        self._feed = Feed(store, own_shard=True)
        self._thread = threading.Thread(target=self._run, name="crawlsched-webhook", daemon=True)

    def start(self) -> None:
        """Begin at the stored position. A new address only gets changes that are delivered from now on."""
        if position_of(self._store, self.name) is None:
            put_position(self._store, self.name, self._feed.end()[self._store.key[0]])
        self._thread.start()

    def stop(self) -> None:
        """Post the remaining changes if the other side answers, and end; the next start posts all others."""
        self._ending.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        is_failing, pause = False, _PAUSE
        while True:
            is_last = self._ending.is_set()
            try:
                more = self._post_next()
                if is_failing:
                    logger.warning("The webhook answers again; nothing was left out.")
                is_failing, pause = False, _PAUSE
            except CollectionInUse:
                return
            except (CrawlschedError, OSError, HTTPException, ValueError) as error:
                if not is_failing:
                    said = without_secrets(in_words(error), self._key, self._url)
                    logger.error("The webhook does not take the changes, which are kept and posted again: %s.", said)
                pause = min(2 * pause, _LONGEST_PAUSE) if is_failing else _PAUSE
                is_failing, more = True, False
                self._count("crawlsched/webhook/failed")
            if is_last and not more:
                return
            if not more:
                self._ending.wait(pause)

    def _post_next(self) -> bool:
        """Post the next batch, if there is one; return whether there may be more."""
        shard = self._store.key[0]
        position, oldest = position_of(self._store, self.name) or 0, self._feed.start()[shard]
        if position < oldest:
            logger.error(
                "%d changes are no longer kept (CRAWLSCHED_OBSERVATION_RETENTION) and never reached the webhook.",
                oldest - position,
            )
            position = oldest
        changes = self._feed.after(Cursor({shard: position}), _AT_ONCE)
        if not changes:
            return False
        self._post(changes)
        put_position(self._store, self.name, changes[-1].id)
        self._count("crawlsched/webhook/posts")
        self._count("crawlsched/webhook/changes", len(changes))
        return True

    def _post(self, changes: list[Change]) -> None:
        body = json.dumps(
            {
                "collection": self._store.name,
                "cursor": f"{changes[-1].shard}:{changes[-1].id}",
                "sent_at": self._clock(),
                "changes": [change.to_dict() for change in changes],
            }
        ).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "crawlsched"}
        if self._key is not None:
            headers[SIGNATURE] = signature(body, self._key)
        try:
            with self._opener.open(Request(self._url, body, headers, method="POST"), timeout=15.0) as answer:
                answer.read(1_000)
        except HTTPError as error:
            error.close()
            raise OSError(f"it answered {error.code}") from None


def _opener() -> OpenerDirector:
    opener = OpenerDirector()
    # A redirect counts as a failure, since it would turn the POST into a GET without the changes.
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(handler())
    return opener
