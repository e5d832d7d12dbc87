"""Crowd of clients of a live page, as a program: most watch, some stall, many vanish.

    python crowd.py ADDRESS ORIGIN SECONDS

Prints the number of frames that each watcher got, as JSON.
"""

import asyncio
import base64
import json
import os
import sys
import time

import aiohttp

from d3s.camera.live.channel import unpacked

CLIENTS, STALLED, VANISHING = 20, 5, 100
PANELS = [{"kind": kind, "width": 192} for kind in ("left", "depth", "sigma", "flags")]


async def watch(session, address, origin, until):
    """Client that draws every frame; returns how many it got."""
    frames = 0
    async with session.ws_connect(address, origin=origin) as socket:
        after = version = None
        while time.monotonic() < until:
            await socket.send_json(
                {"ask": "frame", "after": after, "version": version, "panels": PANELS}
            )
            while (message := await socket.receive(timeout=20)).type is aiohttp.WSMsgType.TEXT:
                pass
            header, pictures = unpacked(message.data)
            assert len(pictures) == len(PANELS)
            assert after is None or header["serial"] > after
            after, version = header["serial"], header["version"]
            frames += 1
    return frames


async def handshake(address, origin):
    """WebSocket by hand, whose bytes nobody reads."""
    host, port = origin.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=4096)
    path = "/" + address.split("/", 3)[3]
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        "".encode()
    )
    assert b"101" in await reader.readline()
    return writer


def text_message(text: str) -> bytes:
    """WebSocket message of a client, masked by zeros."""
    content = text.encode()
    return b"\x81" + bytes([0x80 | 126]) + len(content).to_bytes(2, "big") + bytes(4) + content


ASK = text_message(
    '{"ask": "frame", "after": -1, "panels": [{"kind": "left", "width": 4000}, '
    '{"kind": "depth", "width": 4000}, {"kind": "sigma", "width": 4000}, '
    '{"kind": "flags", "width": 4000}]}'
)


async def stall(address, origin, until):
    """Client that asks on and on, and never reads."""
    writer = await handshake(address, origin)
    while time.monotonic() < until:
        writer.write(ASK)
        await asyncio.sleep(0.02)
    writer.transport.abort()


async def vanish(address, origin, pause_s):
    """Client that asks for a frame and resets the connection."""
    writer = await handshake(address, origin)
    writer.write(ASK)
    await asyncio.sleep(pause_s)
    writer.transport.abort()


async def crowd(address, origin, seconds):
    until = time.monotonic() + seconds
    async with aiohttp.ClientSession() as session:
        watching = [watch(session, address, origin, until) for _ in range(CLIENTS - STALLED)]
        stalled = [stall(address, origin, until) for _ in range(STALLED)]
        gone = [_later(vanish, address, origin, seconds, n) for n in range(VANISHING)]
        found = await asyncio.gather(*watching, *stalled, *gone)
    return found[: len(watching)]


async def _later(work, address, origin, seconds, number):
    await asyncio.sleep(0.8 * seconds * number / VANISHING)
    await work(address, origin, 0.01 * (number % 5))


if __name__ == "__main__":
    address, origin, seconds = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(crowd(address, origin, float(seconds)))))
