"""Small live pages for tests: frames that alternate between two depths, and their server."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple, Self

import aiohttp

import d3s
from d3s.camera.live.channel import unpacked
from d3s.camera.live.feed import Feed
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.server import Server
from d3s.frames import Frame, Refused
from d3s.rig import Rig

RIG = Rig.paper_prototype()
SHAPE = (100, 200)
DEPTHS_M = (0.7, 0.9)  # of even and odd frames


@cache
def views(index: int):
    scene = d3s.Plane(depth_m=DEPTHS_M[index])
    pair = d3s.simulate(scene, RIG, noise=0.01, shape=SHAPE)
    return pair.left, pair.right


def depth_of(number: int) -> float:
    return DEPTHS_M[number % 2]


class FakeCamera:
    """Frames at a rate, or a given list of outcomes; `hold` keeps it silent."""

    frame_count = None

    def __init__(self, outcomes=None, *, rate_hz: float = 50.0) -> None:
        self._outcomes = outcomes
        self._period_s = 1 / rate_hz
        self._closed = threading.Event()
        self.hold = threading.Event()

    def __iter__(self) -> Iterator[Frame | Refused]:
        if self._outcomes is not None:
            yield from self._outcomes
            self._closed.wait()
            return
        number = 0
        while not self._closed.wait(self._period_s):
            if not self.hold.is_set():
                yield Frame(number=number, views=views(number % 2), time_s=time.monotonic())
            number += 1

    def close(self) -> None:
        self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Running(NamedTuple):
    address: str
    server: Server
    feed: Feed
    pipeline: Pipeline
    camera: FakeCamera

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server.gate.port}"

    @property
    def socket(self) -> str:
        return f"{self.address}live/socket"


@contextmanager
def running_live(folder=None, *, rate_hz: float = 50.0, new_recorder=None) -> Iterator[Running]:
    camera = FakeCamera(rate_hz=rate_hz)
    with Pipeline(camera, RIG, new_recorder=new_recorder) as pipeline:
        feed = Feed(pipeline, title="Test", folder=folder)
        server = Server([feed.page()])
        with server.running() as address:
            yield Running(address, server, feed, pipeline, camera)
        feed.close()


def talk(address, work, name="live"):
    """Run work(socket) on a connection of its own to a page."""

    async def run():
        origin = address.rsplit("/", 2)[0]
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{address}{name}/socket", origin=origin) as socket,
        ):
            return await work(socket)

    return asyncio.run(run())


async def message_of(socket, kind):
    """Next message of a kind, with its pictures; others are passed over."""
    while True:
        message = await socket.receive(timeout=60)
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
        is_text = message.type is aiohttp.WSMsgType.TEXT
        header, pictures = (json.loads(message.data), []) if is_text else unpacked(message.data)
        if header["is"] == kind:
            return header, pictures


async def next_frame(socket, **asked):
    await socket.send_json({"ask": "frame", **asked})
    return await message_of(socket, "frame")


async def answer_to(socket, **question):
    await socket.send_json({**question, "id": 7})
    header, _ = await message_of(socket, "answer")
    assert header["id"] == 7
    return header
