"""Timers that were cancelled: a crawl does not keep the time-outs of all its requests of the last minutes."""

from __future__ import annotations

import json
import sys

from tests import children

SCRIPT = """
import asyncio, gc, json
from twisted.internet import asyncioreactor
asyncioreactor.install()
from twisted.internet import reactor
from twisted.internet.base import DelayedCall
from crawlsched.addon.extensions import clear_cancelled_timers

def cancel(n):
    for _ in range(n):
        reactor.callLater(180.0, print).cancel()

def lying_about():
    return sum(isinstance(found, DelayedCall) for found in gc.get_objects())

async def main():
    found = []
    cancel(1_000)
    await asyncio.sleep(0.1)
    found.append(lying_about())
    clear_cancelled_timers()
    await asyncio.sleep(0.1)
    found.append(lying_about())
    print(json.dumps(found))

async def run():
    try:
        await main()
    finally:
        reactor.stop()

reactor.callWhenRunning(lambda: asyncio.ensure_future(run()))
reactor.run()
"""


def test_cancelled_timers_are_thrown_away() -> None:
    """Twisted alone keeps them until the first would have been due; asked from time to time, it keeps none."""
    before, after = json.loads(children.output_of(sys.executable, "-c", SCRIPT, timeout=30))
    assert before >= 900
    assert after <= 51
