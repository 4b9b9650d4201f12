"""Where large bodies are read: in a thread, or in a process of its own where that takes much of the crawl's time."""

from __future__ import annotations

import logging
import os
import time
from functools import partial
from threading import Lock

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from crawlsched.content.reader_process import ReaderProcess, can_be_sent
from crawlsched.content.reading import Content
from crawlsched.scrapy_versions import run_in_thread

__all__ = ["BodyReader"]

logger = logging.getLogger(__name__)

# So many bodies are on their way, so that the process need not wait for the next one.
_AT_ONCE = 8
# A process is worth its memory when threads have read for these seconds more than this share of the time.
_WORTH_IT, _SHARE = 1.0, 0.05


class BodyReader:
    """Reads bodies one at a time: it takes some fifteen times the memory of what is read."""

    def __init__(self) -> None:
        self._turns, self._reading_here = DeferredSemaphore(_AT_ONCE), Lock()
        self._process, self._has_process = ReaderProcess(), False
        # Seconds for which threads have read beyond their share, until when.
        self._read_for, self._until = 0.0, time.monotonic()

    async def content(self, read: partial[Content]) -> Content:
        """Return what a call of `read_content` gives, without holding the event loop up."""
        await maybe_deferred_to_future(self._turns.acquire())
        try:
            return await run_in_thread(self._content, read)
        finally:
            self._turns.release()

    def stop(self) -> None:
        """Let the process end."""
        self._process.stop()

    def _content(self, read: partial[Content]) -> Content:
        _, recipe = read.args
        if self._has_process and can_be_sent(recipe):
            return self._process.read(read)
        with self._reading_here:
            begun = time.thread_time()
            content = read()
            self._count(time.thread_time() - begun)
        return content

    def _count(self, seconds: float) -> None:
        now = time.monotonic()
        self._read_for = max(self._read_for - _SHARE * (now - self._until), 0.0) + seconds
        self._until = now
        if self._read_for > _WORTH_IT and not self._has_process and (os.cpu_count() or 1) > 1:
            self._has_process = True
            logger.info("To read large pages takes a twentieth of the time and more: a process of its own does it now.")
