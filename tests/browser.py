"""A real browser for tests: Debian's chromium, headless, spoken to by its own protocol (CDP) over aiohttp."""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests import children

#: Where the browser is; None: there is none, and tests that need it say so.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class PageLeftError(Exception):
    """The browser has left the page that was asked about."""


class Tab:
    """A tab of the browser.

    Attributes
    ----------
    requests : list of str
        Every URL that was asked for.
    complaints : list of str
        What the console said: exceptions, and what the Content-Security-Policy has refused.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._socket, self._number, self._answers, self._loaded = socket, 0, {}, asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._answers[said["id"]].set_result(said)
            elif said["method"] == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"])
            elif said["method"] == "Page.loadEventFired":
                self._loaded.set()
            elif said["method"] in ("Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening"):
                self.complaints.append(json.dumps(said["params"])[:500])

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something, and return its answer."""
        self._number += 1
        future = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        answer = await asyncio.wait_for(future, 60)
        if "navigated" in answer.get("error", {}).get("message", ""):
            raise PageLeftError
        assert "error" not in answer, answer
        return answer["result"]

    async def open(self, url: str, width: int, *, dark: bool = False) -> None:
        """Open a page in a window of this width, light or dark, and wait until it is there."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.ask("Emulation.setEmulatedMedia", features=scheme)
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        self._loaded.clear()
        await self.ask("Page.navigate", url=url)
        await asyncio.wait_for(self._loaded.wait(), 60)

    async def value(self, script: str) -> Any:
        """Return what a piece of script comes to."""
        return (await self.ask("Runtime.evaluate", expression=script, returnByValue=True))["result"].get("value")

    async def wait_for(self, script: str, seconds: float = 30.0) -> None:
        """Wait until a piece of script comes to something that is true."""
        async with asyncio.timeout(seconds):
            while True:
                with suppress(PageLeftError):  # a link is being followed
                    if await self.value(script):
                        return
                await asyncio.sleep(0.1)

    async def picture(self, file: Path) -> None:
        """Write what the whole page looks like to a file."""
        shot = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """Start the browser, give its tab, and end it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = children.start(
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"),
            *(f"--user-data-dir={folder}", "about:blank"),
            environment={"HOME": folder},
            stderr=subprocess.DEVNULL,  # it looks for a desktop, and says at length that there is none
        )
        try:
            port_file = Path(folder) / "DevToolsActivePort"
            async with asyncio.timeout(60):
                while not port_file.exists() or not port_file.read_text().strip():
                    await asyncio.sleep(0.05)
            port = port_file.read_text().split()[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tabs = await answer.json(content_type=None)
                address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    for domain in ("Page", "Network", "Log", "Runtime"):
                        await tab.ask(f"{domain}.enable")
                    yield tab
        finally:
            children.end(process)
