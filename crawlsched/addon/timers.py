"""Timers: what Twisted keeps of those that were cancelled."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from scrapy.utils.reactor import is_reactor_installed

__all__ = ["clear_cancelled_timers"]


def clear_cancelled_timers() -> None:
    """Let the reactor throw away timers that were cancelled.

    It does so when one of its own timers is due, and with asyncio Scrapy makes hardly any of those: the time-outs of
    all requests of three minutes would lie in memory, 70 MB of them at 500 requests a second.
    """
    if is_reactor_installed():
        reactor: Any = import_module("twisted.internet.reactor")
        reactor.callLater(0.0, bool)
