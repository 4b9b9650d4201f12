"""The process that serves the page about a crawl. The process takes no slot from the crawl, and ends with the crawl."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from crawlsched.settings import Settings

__all__ = ["serve_page"]

logger = logging.getLogger(__name__)


def serve_page(settings: Settings, collection: str, *, niceness: int = 5) -> Callable[[], None]:
    """Start ``crawlsched web`` over the crawl's own database; return a function that ends it.

    The log says where the page is, or why there is no page. The process's command line contains no secrets. The process
    ends when its standard input closes. The system closes that input when the crawl's process ends, even after a crash.
    """
    assert settings.web is not None
    told = {
        "database": settings.database_url,
        "collection": collection,
        "shard": None,  # all shards of a collection that processes share
        "settings": {"CRAWLSCHED_WEB": settings.web.written()},
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "crawlsched", "web", "--from-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # Ctrl-C must reach the crawl only. The crawl ends this process later.
            start_new_session=True,
        )
    except OSError as error:
        logger.error("The page cannot be served: its process cannot be started (%s).", error)
        return lambda: None
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(f"{json.dumps(told)}\n")
    stdin.flush()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
    threading.Thread(target=_log, args=(stdout,), name="crawlsched-web", daemon=True).start()

    def stop() -> None:
        with suppress(OSError):  # the process has ended already
            stdin.close()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    return stop


def _log(lines: IO[str]) -> None:
    with lines:
        for line in lines:
            if line.startswith("http"):
                logger.info("The page about this crawl is at %s", line.rstrip())
            else:
                logger.error("The page about this crawl: %s", line.rstrip())
