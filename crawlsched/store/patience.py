"""Patience: how long a connection to PostgreSQL waits for a server that says nothing.

A server that is stopped, or a machine behind a broken network, keeps connections open and answers nothing. The driver
would wait for ever, and so would whoever wants to end the crawl.
"""

import time
from collections.abc import Callable, Generator
from selectors import DefaultSelector
from typing import Any

__all__ = ["patient_connection"]

# The limit is looked at this often: it becomes shorter while somebody waits, when the crawl is to end.
_LOOK_EVERY = 0.5


def patient_connection(within: Callable[[], float | None]) -> Any:
    """Return a class of psycopg's connections that give up a server after `within()` silent seconds; None: never."""
    import psycopg
    from psycopg.waiting import Ready

    class PatientConnection(psycopg.Connection[Any]):
        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
            """Drive the driver's generator as its own `wait` does, with an end."""
            try:
                wanted = next(gen)
                with DefaultSelector() as selector:
                    while True:
                        selector.register(self.fileno(), wanted)
                        silent_since = time.monotonic()
                        while not (found := selector.select(timeout=_LOOK_EVERY)):
                            longest = within()
                            if longest is not None and time.monotonic() - silent_since > longest:
                                # What the server may still say belongs to a question that nobody asks any more.
                                self.pgconn.finish()
                                raise psycopg.OperationalError(f"the server did not answer within {longest:g} s")
                        selector.unregister(self.fileno())
                        wanted = gen.send(Ready(found[0][1]))
            except StopIteration as end:
                return end.value

    return PatientConnection
