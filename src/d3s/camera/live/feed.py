"""Sessions of the live page: frames on request, values of clicks, settings and buttons.

A page asks for the next frame when it can draw one, so nothing queues, and only panels that it
shows are encoded. Several pages that ask for the same picture share its encoding.
"""

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

from d3s.camera.live import results
from d3s.camera.live.channel import Channel
from d3s.camera.live.pictures import PANELS, AutoRange, Panel, bar_colours, draw
from d3s.camera.live.results import LiveDepth
from d3s.camera.live.saved import Show
from d3s.camera.live.server import Page
from d3s.camera.live.settings import FAST, Filter
from d3s.errors import D3SError, InputError
from d3s.record import short_repr

STATE_EVERY_S = 0.5
"""Seconds after which a page that waits for a frame is told the state instead."""

_KEPT = 4  # results beside those on the screen of a page, for clicks on the frame before
_MOST_PICTURES = 64  # encoded pictures kept for other pages
_LATENCIES = 200
_MOST_PANELS = len(PANELS)


class Feed:
    """Everything that all sessions of a page share."""

    def __init__(self, show: Show) -> None:
        self.show = show
        self.latencies_s: deque[float] = deque(maxlen=_LATENCIES)  # from grab to drawn
        self.encode_s: deque[float] = deque(maxlen=_LATENCIES)
        self._ranges = AutoRange()
        self._kept: OrderedDict[int, LiveDepth] = OrderedDict()
        self._pictures: OrderedDict[tuple[Any, ...], asyncio.Future[tuple[bytes, Any]]] = (
            OrderedDict()
        )
        # One thread: encoding must not take the cores from the estimate.
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="d3s-encode")
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        show.results.listeners.append(self._notify)

    async def serve(self, channel: Channel) -> None:
        """Serve one page until it goes."""
        self._loop = asyncio.get_running_loop()
        await _Session(self, channel).run()

    def close(self) -> None:
        """Stop encoding, and stop to listen to the results."""
        if self._notify in self.show.results.listeners:
            self.show.results.listeners.remove(self._notify)
        self._encoder.shutdown(cancel_futures=True)

    def _notify(self) -> None:
        """Wake the sessions; called in any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def wait_for_change(self) -> None:
        """Wait for the next result or change of settings."""
        if self._changed is None:
            self._changed = asyncio.Event()
        await self._changed.wait()

    def keep(self, result: LiveDepth) -> None:
        """Keep a result that is about to be shown, for clicks."""
        self._kept[result.serial] = result
        self._kept.move_to_end(result.serial)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def kept(self, serial: int) -> LiveDepth | None:
        """LiveDepth of this number, if it is still kept."""
        return self._kept.get(serial)

    async def picture(self, result: LiveDepth, panel: Panel, limits: Filter) -> tuple[bytes, Any]:
        """Encoded picture, shared by all sessions that ask for the same."""
        key = (result.serial, panel, limits)
        found = self._pictures.get(key)
        if found is None:
            loop = asyncio.get_running_loop()
            found = asyncio.ensure_future(
                loop.run_in_executor(self._encoder, self._draw, result, panel, limits)
            )
            self._pictures[key] = found
            while len(self._pictures) > _MOST_PICTURES:
                self._pictures.popitem(last=False)
        return await asyncio.shield(found)

    def _draw(self, result: LiveDepth, panel: Panel, limits: Filter) -> tuple[bytes, Any]:
        begun = time.monotonic()
        drawn = draw(result, panel, limits, self._ranges)
        self.encode_s.append(time.monotonic() - begun)
        return drawn

    async def in_thread(self, work: Callable[..., dict[str, Any]], *values: Any) -> dict[str, Any]:
        """Run work that may take a while beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *values)

    def hello(self) -> dict[str, Any]:
        """First message to a page."""
        return {
            "is": "hello",
            "title": self.show.title,
            "live": self.show.is_live,
            "panels": [
                {"kind": kind, "title": title, "colours": bar_colours(kind)}
                for kind, title in PANELS.items()
                if kind in self.show.panels
            ],
            "abilities": self.show.abilities(),
            "fast": FAST,
            **self.state(),
        }

    def state(self) -> dict[str, Any]:
        """State, rates, losses and settings, for every message."""
        settings = self.show.settings
        options = settings.options
        return {
            **self.show.status(),
            "latency_s": _median(self.latencies_s),
            "settings": {
                "version": settings.version,
                "method": settings.method,
                "options": {} if options is None else options.model_dump(exclude_unset=True),
                **vars(settings.shown),
            },
        }


class _Session:
    """One page in one browser."""

    def __init__(self, feed: Feed, channel: Channel) -> None:
        self._feed = feed
        self._channel = channel
        self._on_screen: LiveDepth | None = None
        self._drawn = 0  # serial number of the newest result that was drawn
        self._asked: dict[str, Any] | None = None
        self._ask = asyncio.Event()

    async def run(self) -> None:
        """Send frames in one task, answer messages in this one, until the page goes."""
        await self._channel.send(self._feed.hello())
        frames = asyncio.create_task(self._send_frames())
        try:
            async for message in self._channel:
                await self._answer(message)
        finally:
            frames.cancel()
            await asyncio.gather(frames, return_exceptions=True)

    # Frames ---------------------------------------------------------------------------------------

    async def _send_frames(self) -> None:
        while self._channel.is_open:
            await self._ask.wait()
            self._ask.clear()
            asked, self._asked = self._asked, None
            try:
                await self._send_frame(asked or {})
            except D3SError as error:
                await self._channel.send({"is": "problem", "text": str(error)})

    async def _send_frame(self, asked: dict[str, Any]) -> None:
        """Send the next frame that the page has not drawn, and the state while there is none."""
        panels = _panels(asked.get("panels"))
        drawn = asked.get("after"), asked.get("version")
        results, feed = self._feed.show.results, self._feed
        told_s = time.monotonic()
        while True:
            newest, settings = results.peek(), feed.show.settings
            if newest is not None and (newest.serial, settings.version) != drawn:
                break
            if self._ask.is_set():  # the page has changed its mind
                return
            left_s = max(told_s + STATE_EVERY_S - time.monotonic(), 0.0)
            if not await _first_of(left_s, feed.wait_for_change(), self._ask.wait()):
                await self._channel.send({"is": "state", **feed.state()})
                told_s = time.monotonic()
        result = results.read() or newest
        feed.keep(result)
        self._on_screen = result
        drawings = [await feed.picture(result, panel, settings.shown) for panel in panels]
        header = {
            "is": "frame",
            **_frame_header(result),
            "version": settings.version,
            "pictures": [legend for _, legend in drawings],
            **feed.state(),
        }
        await self._channel.send(header, [picture for picture, _ in drawings])

    # Answers --------------------------------------------------------------------------------------

    async def _answer(self, message: dict[str, Any]) -> None:
        ask = message.get("ask")
        if ask == "frame":
            self._asked = message
            self._ask.set()
            return
        if ask == "drawn":
            self._note_drawn(message.get("serial"))
            return
        try:
            answer = await self._answer_to(ask, message)
        except D3SError as error:
            answer = {"error": str(error)}
        await self._channel.send({"is": "answer", "id": message.get("id"), **answer})

    async def _answer_to(self, ask: Any, message: dict[str, Any]) -> dict[str, Any]:
        feed = self._feed
        limits = feed.show.settings.shown
        if ask == "pixel":
            result = self._result(message)
            return await feed.in_thread(results.pixel, result, limits, message.get("place"))
        if ask in ("distance", "profile"):
            work = results.distance if ask == "distance" else results.profile
            ends = message.get("a"), message.get("b")
            return await feed.in_thread(work, self._result(message), limits, *ends)
        if ask == "set":
            changes = message.get("changes")
            if not isinstance(changes, dict):
                raise InputError(f"changes={short_repr(changes)} must be a table of settings.")
            return await feed.in_thread(self._change, changes)
        if ask == "snapshot":
            return await feed.in_thread(feed.show.save, self._result(message))
        if ask in ("record", "seek"):
            return await feed.in_thread(feed.show.act, ask, message)
        raise InputError(f"ask={short_repr(ask)} is not known.")

    def _change(self, changes: dict[str, Any]) -> dict[str, Any]:
        self._feed.show.change(changes)
        return {"settings": self._feed.state()["settings"]}

    def _result(self, message: dict[str, Any]) -> LiveDepth:
        """LiveDepth that the page shows, which a click is about."""
        serial = message.get("serial")
        found = self._find(serial)
        if found is None:
            raise InputError(f"frame {short_repr(serial)} is no longer kept. Click again.")
        return found

    def _find(self, serial: Any) -> LiveDepth | None:
        if self._on_screen is not None and self._on_screen.serial == serial:
            return self._on_screen
        return self._feed.kept(serial) if isinstance(serial, int) else None

    def _note_drawn(self, serial: Any) -> None:
        """Note the latency of a result that is drawn for the first time."""
        result = self._find(serial)
        if result is not None and result.serial > self._drawn:
            self._drawn = result.serial
            self._feed.latencies_s.append(time.monotonic() - result.grabbed_s)


async def _first_of(timeout_s: float, *waits: Coroutine[Any, Any, Any]) -> bool:
    """Wait until one of several is over, or for a time; tells whether one is."""
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    return bool(done)


def _panels(asked: Any) -> list[Panel]:
    if not isinstance(asked, list) or len(asked) > _MOST_PANELS:
        raise InputError(f"panels={short_repr(asked)} must be a list of up to {_MOST_PANELS}.")
    known = Panel.__dataclass_fields__
    if not all(isinstance(one, dict) and set(one) <= set(known) for one in asked):
        raise InputError(f"a panel has the fields {', '.join(known)}.")
    try:
        return [Panel(**one) for one in asked]
    except TypeError as error:
        raise InputError("a panel needs kind and width.") from error


def _frame_header(result: LiveDepth) -> dict[str, Any]:
    """Numbers of a result beside its pictures."""
    light = result.light
    return {
        "serial": result.serial,
        "number": result.number,
        "name": result.name,
        "position": result.position,
        "time_s": result.time_s,
        "shape": list(result.shape),
        "density": result.depth_map.density,
        "light": None if light is None else vars(light),
        "warnings": [*result.depth_map.warnings, *result.remarks],
        "times_s": {
            "wait": result.waited_s,
            "split": result.split_s,
            "estimate": result.estimate_s,
        },
    }


def _median(values: deque[float]) -> float | None:
    if not values:
        return None
    middle = sorted(values)[len(values) // 2]
    return middle if math.isfinite(middle) else None


def live_page(feed: Feed) -> Page:
    """Page that shows a feed: a pipeline, or saved files."""
    folder = files("d3s.camera.live") / "pages" / "live"
    return Page(name="live", title=feed.show.title, files=folder, serve=feed.serve)
