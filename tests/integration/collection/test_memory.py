"""What a crawl needed once it does not keep: its threads share one heap, and timers that were cancelled go."""

import sys

import pytest

from tests import children

# Threads allocate what is too large for Python's own small blocks; glibc puts a heap of their own at a multiple of
# 64 MB. In the map of the process it is followed by memory that is reserved for it, up to the next multiple.
THREADS = """
import sys, threading
from crawlsched.crawl.side_thread import give_memory_back, share_one_heap
if sys.argv[1] == "one":
    share_one_heap()
kept = []
threads = [threading.Thread(target=lambda: kept.append([bytes(5_000) for _ in range(200)])) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
kept.clear()
give_memory_back()
maps = [line.replace("-", " ", 1).split() for line in open("/proc/self/maps")]
pairs = [(int(heap[0], 16), int(rest[1], 16)) for heap, rest in zip(maps, maps[1:]) if rest[2] == "---p"]
print(sum(start % (64 << 20) == 0 and end - start == 64 << 20 for start, end in pairs))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Only Linux shows the map of a process so.")
def test_threads_that_begin_afterwards_have_no_heap_of_their_own():
    """By default glibc makes one for each of them."""
    heaps = {how: int(children.output_of(sys.executable, "-c", THREADS, how)) for how in ("one", "each")}
    if not heaps["each"]:
        pytest.skip("This C library has one heap anyway.")
    assert heaps["one"] == 0


TIMERS = """
import asyncio, gc
from twisted.internet import asyncioreactor
asyncioreactor.install()
from twisted.internet import reactor
from twisted.internet.base import DelayedCall
from crawlsched.addon.extensions import clear_cancelled_timers

async def lying_about():
    await asyncio.sleep(0.1)
    return sum(isinstance(found, DelayedCall) for found in gc.get_objects())

async def main():
    for _ in range(1_000):
        reactor.callLater(180.0, print).cancel()
    before = await lying_about()
    clear_cancelled_timers()
    print(before, await lying_about())
    reactor.stop()

reactor.callWhenRunning(lambda: asyncio.ensure_future(main()))
reactor.run()
"""


def test_cancelled_timers_are_thrown_away():
    """Twisted alone keeps them until the first would have been due; asked from time to time, it keeps none."""
    before, after = children.output_of(sys.executable, "-c", TIMERS, timeout=30).split()
    assert int(before) >= 900
    assert int(after) <= 51
