"""A network between a program and its server that can be slow, be cut, or be cut half."""

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from sqlalchemy import make_url


def _reset(end: socket.socket) -> None:
    """End a connection at once, as a machine does that was restarted."""
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class Proxy:
    """Passes on what a program and its server say to each other, as long as it is told nothing else.

    Parameters
    ----------
    database : str
        The URL of a PostgreSQL database, which names its server's socket in the file system.

    Attributes
    ----------
    url : str
        Where the program finds the database behind it, on 127.0.0.1.
    delay : float
        Seconds for which each piece is kept before it is passed on.
    is_silent : bool
        Whether nothing is passed on, on connections that stay open.
    is_away : bool
        Whether no further connection is taken.
    """

    def __init__(self, database: str) -> None:
        self.delay = 0.0
        self.is_silent = self.is_away = False
        url = make_url(database)
        self._server = f"{url.query['host']}/.s.PGSQL.5432"
        self._ends: dict[str, list[socket.socket]] = {"client": [], "server": []}
        self._awaited: tuple[bytes, bool, Callable[[], None]] | None = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        behind = url.set(host="127.0.0.1", port=self._listening.getsockname()[1], query={})
        self.url = behind.render_as_string(hide_password=False)
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        """Reset all connections; the program may connect again."""
        for ends in self._ends.values():
            while ends:
                _reset(ends.pop())

    def end_towards(self, whom: str) -> None:
        """Half-close all connections: to the "client" or the "server" nothing more is said, and it is told so."""
        for end in self._ends[whom]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_WR)

    def at_next(self, word: bytes, then: Callable[[], None], *, is_passed_on: bool) -> threading.Event:
        """Do something when the program says a word next, after or instead of passing it on.

        Returns
        -------
        threading.Event
            Set when it was done.
        """
        done = threading.Event()

        def act() -> None:
            then()
            done.set()

        self._awaited = (word, is_passed_on, act)
        return done

    def close(self) -> None:
        """End everything."""
        self._listening.close()
        self.drop()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.is_away:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:
                    client.close()
                    continue
                for whom, *ends in (("client", client, server), ("server", server, client)):
                    self._ends[whom].append(ends[0])
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                time.sleep(self.delay)
                awaited = self._awaited
                is_awaited = awaited is not None and source.family == socket.AF_INET and awaited[0] in data
                if is_awaited:
                    self._awaited = None
                try:
                    if not self.is_silent and not (is_awaited and not awaited[1]):
                        target.sendall(data)
                finally:  # also where that end is closed already
                    if is_awaited:
                        time.sleep(0.05)  # the server does what it was told
                        awaited[2]()
        if not self.is_silent:
            with suppress(OSError):
                target.shutdown(socket.SHUT_WR)
