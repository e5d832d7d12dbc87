"""Sessions of the live page: frames on request, values of clicks, settings and buttons.

Only panels that a page shows are encoded, and pages that ask for the same picture share it.
"""

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

from d3s.camera.live import results
from d3s.camera.live.channel import Channel, Visit
from d3s.camera.live.pictures import PANELS, AutoRange, Panel, bar_colours, draw
from d3s.camera.live.results import LiveDepth
from d3s.camera.live.saved import Show
from d3s.camera.live.server import Page
from d3s.camera.live.settings import FAST, Filter
from d3s.errors import InputError
from d3s.record import short_repr

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

    async def serve(self, channel: Channel) -> None:
        """Serve one page until it goes."""
        await channel.send(self.hello())
        await _Session(self, channel).run()

    def close(self) -> None:
        """Stop encoding."""
        self._encoder.shutdown(cancel_futures=True)

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


class _Session(Visit):
    """One page in one browser."""

    def __init__(self, feed: Feed, channel: Channel) -> None:
        super().__init__(channel, feed.show.results)
        self._feed = feed
        self._on_screen: LiveDepth | None = None
        self._drawn = 0  # serial number of the newest result that was drawn

    def state(self) -> dict[str, Any]:
        """State of the show."""
        return self._feed.state()

    async def frame(self, asked: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]] | None:
        """Newest result, unless the page has drawn it with these settings."""
        panels = _panels(asked.get("panels"))
        results, feed = self._feed.show.results, self._feed
        newest, settings = results.peek(), feed.show.settings
        if newest is None or (newest.serial, settings.version) == (
            asked.get("after"),
            asked.get("version"),
        ):
            return None
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
        return header, [picture for picture, _ in drawings]

    async def answer(self, ask: Any, message: dict[str, Any]) -> dict[str, Any] | None:
        """Value of a click, or the outcome of a control."""
        feed = self._feed
        limits = feed.show.settings.shown
        if ask == "drawn":
            self._note_drawn(message.get("serial"))
            return None
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
