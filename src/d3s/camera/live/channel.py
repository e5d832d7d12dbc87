"""Messages between a page and the server: JSON in, JSON with pictures out."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import WSMsgType, web

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


class Channel:
    """WebSocket of one page in a browser.

    `async for message in channel` gives the JSON objects that the page sends; anything else ends
    the connection. `send` waits until the network has taken the message: a client that has stalled
    makes only its own task wait.
    """

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._sending = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return not self._socket.closed

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Yield messages of the page."""
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                await self._socket.close(code=1003, message=b"messages are JSON")
                return
            try:
                found = json.loads(message.data)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                await self._socket.close(code=1007, message=b"messages are JSON objects")
                return
            yield found

    async def send(self, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
        """Send JSON, with pictures after it if there are any; nothing once the page has gone."""
        async with self._sending:
            if self._socket.closed:
                return
            try:
                if blobs:
                    await self._socket.send_bytes(packed(header, blobs))
                else:
                    await self._socket.send_str(_json(header))
            except ConnectionError:  # the page has gone
                return


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
