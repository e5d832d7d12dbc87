"""Headless Chromium, driven by the DevTools protocol over a WebSocket of aiohttp.

`CHROMIUM` is the program: the environment variable D3S_CHROMIUM, or a usual name on the path; None
if there is none, and tests that need it are skipped.
"""

import asyncio
import base64
import os
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = os.environ.get("D3S_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
_START_S = 30.0
_LONGEST_MESSAGE = 64 * 2**20


class Tab:
    """One page in the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.errors: list[str] = []

    async def call(self, method: str, **values: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": values})
        while True:
            found = await self._socket.receive_json(timeout=30)
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(found["error"])
                return found["result"]
            if found.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(found["params"]["exceptionDetails"]))

    async def js(self, expression: str) -> Any:
        """Value of an expression, which may be a promise."""
        found = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    async def until(self, expression: str, timeout_s: float = 30.0) -> Any:
        """Wait until an expression is true; return its value."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not (value := await self.js(expression)):
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"never true: {expression}; errors {self.errors}")
            await asyncio.sleep(0.1)
        return value

    async def resize(self, width: int, height: int, *, scale: float = 1.0) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    async def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def drag(self, x: float, y: float, by: float) -> None:
        for kind, at in (("mousePressed", x), ("mouseMoved", x + by), ("mouseReleased", x + by)):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, x=at, y=y, button="left", clickCount=1
            )

    async def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key)

    async def screenshot(self, path: Path) -> None:
        found = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    async def open(self, address: str) -> None:
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete'")


@asynccontextmanager
async def tab(*options: str):
    """Start a browser with a profile of its own; give its one page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                str(CHROMIUM),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-unsafe-swiftshader",  # WebGL without a graphics card
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                *options,
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [one for one in await answer.json() if one["type"] == "page"]
                address = pages[0]["webSocketDebuggerUrl"]
                async with session.ws_connect(address, max_msg_size=_LONGEST_MESSAGE) as socket:
                    page = Tab(socket)
                    await page.call("Runtime.enable")
                    await page.call("Page.enable")
                    yield page
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _port(path: Path) -> int:
    """Port of the protocol, which the browser writes to a file once it listens."""
    deadline = asyncio.get_running_loop().time() + _START_S
    while asyncio.get_running_loop().time() < deadline:
        if path.exists() and (lines := path.read_text().splitlines()):
            return int(lines[0])
        await asyncio.sleep(0.1)
    raise TimeoutError("the browser did not start")
