"""Places: where a page stands in the frontier, as one number: its level if it sleeps in a ladder, or one of these."""

__all__ = [
    "AFTER_ALL_PAGES",
    "AWAKE",
    "BARRED",
    "BEHIND",
    "FRESH",
    "IN_FLIGHT",
    "LOWEST",
    "OUT",
    "OWN_LADDER",
    "RUNNING",
]

#: Not in the frontier.
OUT = -(2**31)
#: Picked, and not yet back.
IN_FLIGHT = OUT + 1
#: Not allowed before some time.
BARRED = OUT + 2
#: Just crawled, and worth next to nothing until the tick ends, when it is put where it belongs.
FRESH = OUT + 3
#: Among the pages that are compared at each pick.
AWAKE = OUT + 4
#: From here to `RUNNING`: behind another page, in the queue of that number.
BEHIND = OUT + 5
#: Added to the level of a page that sleeps in its host's own ladder.
OWN_LADDER = 2**28
#: Levels begin here: what stands above `RUNNING` sleeps.
LOWEST = -(2**30)
#: In a run: one of pages that are sorted by crawl values which do not grow.
RUNNING = LOWEST - 1
#: Stands for a page in keys (-value, page) that come after those of all pages of that value.
AFTER_ALL_PAGES = 2**62
