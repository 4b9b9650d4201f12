"""The process that serves the page about a crawl. The process takes no slot from the crawl, and ends with the crawl."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress

from crawlsched.settings import Settings

__all__ = ["WebProcess"]

logger = logging.getLogger(__name__)


class WebProcess:
    """``crawlsched web`` over the crawl's own database.

    Its command line contains no secrets. The process ends when its standard input closes. The system closes that input
    when the crawl's process ends, even after a crash.
    """

    def __init__(self, settings: Settings, collection: str) -> None:
        assert settings.web is not None
        self._told = {
            "database": settings.database_url,
            "collection": collection,
            "shard": None,  # all shards of a collection that processes share
            "settings": {"CRAWLSCHED_WEB": settings.web.written()},
        }
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the process; the log says where the page is, or why there is no page."""
        try:
            self._process = subprocess.Popen(
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
            return
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(self._told)}\n")
        self._process.stdin.flush()
        _give_way(self._process.pid)
        threading.Thread(target=self._listen, args=(self._process,), name="crawlsched-web", daemon=True).start()

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with suppress(OSError):  # the process has ended already
            process.stdin.close()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if line.startswith("http"):
                    logger.info("The page about this crawl is at %s", line.rstrip())
                else:
                    logger.error("The page about this crawl: %s", line.rstrip())


def _give_way(pid: int, niceness: int = 5) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
