"""Aside: work in another thread, consequences on this one."""

import threading

import pytest

from crawlsched.crawl.side_thread import Aside
from tests import parts


def test_what_runs_aside_is_followed_here_and_ends_nothing_by_failing(caplog: pytest.LogCaptureFixture) -> None:
    """Only the function itself runs in the other thread; nothing asked for is lost, and failures end nothing."""
    gate, threads, done = threading.Event(), [], []
    aside = Aside(parts.guard())

    def wait() -> threading.Thread:
        gate.wait()
        return threading.current_thread()

    aside.run("waiting", wait, lambda other: threads.extend((other, threading.current_thread())))
    aside.run("waiting", lambda: "again", done.append)
    assert aside.is_busy_with("waiting")
    aside.run("dividing", lambda: 1 // 0, done.append)
    aside.run("adding", lambda: 1 + 1, done.append)
    gate.set()
    aside.close()
    assert [thread is threading.current_thread() for thread in threads] == [False, True]
    assert done == ["again", 2]
    assert not aside.is_busy_with("waiting")
    assert "Dividing failed and is tried again: ZeroDivisionError (" in caplog.text
