"""Aside: work in another thread, consequences on this one."""

import threading

import pytest

from crawlsched.crawl.side_thread import Aside
from tests import parts


def test_what_follows_happens_on_the_thread_that_collects() -> None:
    """Only the function itself runs in the other thread."""
    threads = []
    aside = Aside(parts.guard())
    aside.run(
        "asking",
        lambda: threads.append(threading.current_thread()),
        lambda _: threads.append(threading.current_thread()),
    )
    aside.close()
    assert threads[0] is not threading.current_thread()
    assert threads[1] is threading.current_thread()


def test_one_of_each_name_at_a_time() -> None:
    """A second one of the name is refused until the first has been collected."""
    gate = threading.Event()
    aside = Aside(parts.guard())
    assert aside.run("waiting", gate.wait)
    assert not aside.run("waiting", gate.wait)
    gate.set()
    aside.close()
    assert list(aside._running) == []


def test_a_failure_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The next one runs as if nothing had happened."""
    done: list[int] = []
    aside = Aside(parts.guard())
    aside.run("dividing", lambda: 1 // 0, done.append)
    aside.run("adding", lambda: 1 + 1, done.append)
    aside.close()
    assert done == [2]
    assert "Dividing failed: ZeroDivisionError (" in caplog.text
