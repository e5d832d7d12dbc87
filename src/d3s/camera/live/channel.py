"""Visits of pages: JSON in, JSON with pictures out, over a WebSocket."""

import asyncio
import json
import struct
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from aiohttp import WSMsgType, web

from d3s.camera.live.slot import Newest
from d3s.errors import D3SError

STATE_EVERY_S = 0.5
"""Seconds after which a page that waits for a frame is told the state again."""
_ANSWERS_AT_ONCE = 8
_LENGTH = struct.Struct("<I")


def packed(header: dict[str, Any], blobs: Sequence[bytes]) -> bytes:
    """Message of a header and pictures: length of the header, header, pictures one by one.

    The header gets `blobs`, the lengths of the pictures.
    """
    text = _json({**header, "blobs": [len(one) for one in blobs]}).encode()
    return b"".join((_LENGTH.pack(len(text)), text, *blobs))


def unpacked(message: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Header and pictures of a message of `packed`."""
    (length,) = _LENGTH.unpack_from(message)
    place = _LENGTH.size + length
    header = json.loads(message[_LENGTH.size : place])
    blobs = []
    for size in header["blobs"]:
        blobs.append(message[place : place + size])
        place += size
    return header, blobs


def _json(values: Any) -> str:
    try:
        return json.dumps(values, allow_nan=False)
    except ValueError:
        return json.dumps(_without_nan(values), allow_nan=False)


def _without_nan(values: Any) -> Any:
    """Values with None for numbers that JSON does not know."""
    if isinstance(values, dict):
        return {name: _without_nan(one) for name, one in values.items()}
    if isinstance(values, list | tuple):
        return [_without_nan(one) for one in values]
    if isinstance(values, float) and not -float("inf") < values < float("inf"):
        return None
    return values


class Visit:
    """One page in a browser: frames as it asks for them, and answers to what else it asks.

    A page asks for the next frame when it can draw one, so nothing queues; while there is none, it
    is told the state. Pages of a kind say what a frame, the state and an answer are. A client that
    has stalled makes only its own task wait.
    """

    def __init__(self, socket: web.WebSocketResponse, results: Newest[Any]) -> None:
        self._socket = socket
        self._sending = asyncio.Lock()
        self._results = results
        self._asked: dict[str, Any] = {}
        self._wake = asyncio.Event()

    async def frame(self, asked: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]] | None:
        """Header and pictures of a frame that the page has not drawn; None while there is none."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """State in words, and all that changes without frames."""
        raise NotImplementedError

    async def answer(self, ask: Any, message: dict[str, Any]) -> dict[str, Any] | None:
        """Answer to a question of the page; None if it expects none."""
        raise NotImplementedError

    async def send(self, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
        """Send JSON, with pictures after it if there are any; nothing once the page has gone."""
        async with self._sending:
            with suppress(ConnectionError):  # the page has gone
                if blobs and not self._socket.closed:
                    await self._socket.send_bytes(packed(header, blobs))
                elif not self._socket.closed:
                    await self._socket.send_str(_json(header))

    async def run(self) -> None:
        """Send frames in one task, answer messages in others, until the page goes."""
        loop = asyncio.get_running_loop()

        def notify() -> None:  # called in any thread
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._wake.set)

        self._results.listeners.append(notify)
        sender = asyncio.create_task(self._send_frames())
        answers: set[asyncio.Task[None]] = set()
        try:
            async for message in self._messages():
                if message.get("ask") == "frame":
                    self._asked = message
                    self._wake.set()
                    continue
                if len(answers) >= _ANSWERS_AT_ONCE:
                    await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self._reply(message))
                answers.add(task)
                task.add_done_callback(answers.discard)
        finally:
            self._results.listeners.remove(notify)
            sender.cancel()
            await asyncio.gather(sender, *answers, return_exceptions=True)

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        """JSON objects that the page sends; anything else ends the connection."""
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                await self._socket.close(code=1003, message=b"messages are JSON")
                return
            found = None
            with suppress(ValueError, RecursionError):
                found = json.loads(message.data)
            if not isinstance(found, dict):
                await self._socket.close(code=1007, message=b"messages are JSON objects")
                return
            yield found

    async def _send_frames(self) -> None:
        told_s = 0.0
        while not self._socket.closed:
            found = None
            asked = self._asked
            try:
                found = await self.frame(asked) if asked else None
            except D3SError as error:
                found = {"is": "problem", "text": str(error)}, []
            if found is not None:
                if self._asked is asked:
                    self._asked = {}
                await self.send(*found)
                continue
            left_s = told_s + STATE_EVERY_S - time.monotonic() if asked else None
            if left_s is not None and left_s <= 0:
                await self.send({"is": "state", **self.state()})
                told_s = time.monotonic()
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), left_s)
            self._wake.clear()

    async def _reply(self, message: dict[str, Any]) -> None:
        found: dict[str, Any] | None
        try:
            found = await self.answer(message.get("ask"), message)
        except D3SError as error:
            found = {"error": str(error)}
        if found is not None:
            await self.send({"is": "answer", "id": message.get("id"), **found})
