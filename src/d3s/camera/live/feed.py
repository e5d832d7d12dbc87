"""Sessions of the live page: frames on request, values of clicks, settings and buttons.

Only panels that a page shows are encoded, and pages that ask for the same picture share it.
"""

import asyncio
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from aiohttp import web

from d3s.atomic import make_folder
from d3s.camera.live import results
from d3s.camera.live.channel import Visit
from d3s.camera.live.pictures import PANELS, AutoRange, Panel, bar_colours, draw
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.results import FAST, Filter, LiveDepth
from d3s.camera.live.saved import SavedShow
from d3s.camera.live.server import Page
from d3s.errors import InputError
from d3s.record import short_repr

_KEPT = 4  # results beside those on the screen of a page, for clicks on the frame before
_MOST_PICTURES = 64  # encoded pictures kept for other pages
_LATENCIES = 200
_TIME = "%Y%m%d_%H%M%S"
_CLICKS: dict[
    str, tuple[Callable[..., dict[str, Any]], tuple[str, ...]]
] = {  # what a click asks for, and the names of the pixels that it is about
    "pixel": (results.pixel, ("place",)),
    "distance": (results.distance, ("a", "b")),
    "profile": (results.profile, ("a", "b")),
}

Show = Pipeline | SavedShow
"""Results that change with time, with settings and actions."""


class Feed:
    """Everything that all sessions of a page share.

    Parameters
    ----------
    show
        What is shown.
    title
        Title of the page.
    folder
        Folder for snapshots; None for no snapshots.
    """

    def __init__(self, show: Show, *, title: str, folder: Path | None = None) -> None:
        self.show = show
        self.title = title
        self.folder = folder
        self.latencies_s: deque[float] = deque(maxlen=_LATENCIES)  # from grab to drawn
        self.encode_s: deque[float] = deque(maxlen=_LATENCIES)
        self._ranges = AutoRange()
        self._kept: OrderedDict[int, LiveDepth] = OrderedDict()
        self._pictures: OrderedDict[tuple[Any, ...], asyncio.Future[tuple[bytes, Any]]] = (
            OrderedDict()
        )
        # One thread: encoding must not take the cores from the estimate.
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="d3s-encode")

    def page(self) -> Page:
        """Page that shows it."""
        folder = files("d3s.camera.live") / "pages" / "live"
        return Page(name="live", title=self.title, files=folder, serve=self._serve)

    async def _serve(self, socket: web.WebSocketResponse) -> None:
        session = _Session(self, socket)
        await session.send(self._hello())
        await session.run()

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
        """Result of this number, if it is still kept."""
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

    def _hello(self) -> dict[str, Any]:
        """First message to a page."""
        abilities = {**self.show.abilities(), "snapshot": self.folder is not None}
        return {
            "is": "hello",
            "title": self.title,
            "live": abilities["positions"] is None,
            "panels": [
                {"kind": kind, "title": PANELS[kind], "colours": bar_colours(kind)}
                for kind in self.show.panels
            ],
            "abilities": abilities,
            "fast": FAST,
            **self.state(),
        }

    def state(self) -> dict[str, Any]:
        """State, rates, losses and settings, for every message."""
        settings = self.show.settings
        options = settings.options
        return {
            **self.show.status(),
            "latency_s": median(self.latencies_s) if self.latencies_s else None,
            "settings": {
                "version": settings.version,
                "method": settings.method,
                "options": {} if options is None else options.model_dump(exclude_unset=True),
                **vars(settings.shown),
            },
        }

    def save(self, result: LiveDepth) -> dict[str, Any]:
        """Write the depth map that a page shows, filtered, as NPZ; return the name of the file."""
        if self.folder is None:
            raise InputError("there is no folder for snapshots. Start with --output FOLDER.")
        make_folder(self.folder)
        stem = f"snapshot_{time.strftime(_TIME)}_{result.number:06d}"
        names = (f"{stem}{f'_{number}' if number > 1 else ''}.npz" for number in count(1))
        path = next(self.folder / name for name in names if not os.path.lexists(self.folder / name))
        result.shown(self.show.settings.shown).save(path)
        return {"text": f"Saved {path.name}.", "file": path.name}


class _Session(Visit):
    """One page in one browser."""

    def __init__(self, feed: Feed, socket: web.WebSocketResponse) -> None:
        super().__init__(socket, feed.show.results)
        self._feed = feed
        self._on_screen: LiveDepth | None = None
        self._drawn = 0  # serial number of the newest result that was drawn

    def state(self) -> dict[str, Any]:
        """State of the show."""
        return self._feed.state()

    async def frame(self, asked: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]] | None:
        """Newest result, unless the page has drawn it with these settings."""
        panels = _panels(asked.get("panels"))
        feed, settings = self._feed, self._feed.show.settings
        newest = feed.show.results.peek()
        drawn = asked.get("after"), asked.get("version")
        if newest is None or (newest.serial, settings.version) == drawn:
            return None
        result = feed.show.results.read() or newest
        feed.keep(result)
        self._on_screen = result
        drawings = [await feed.picture(result, panel, settings.shown) for panel in panels]
        names = ("serial", "number", "name", "position", "time_s", "shape", "light")
        header = {
            "is": "frame",
            **{name: getattr(result, name) for name in names},
            "density": result.depth_map.density,
            "warnings": [*result.depth_map.warnings, *result.remarks],
            "version": settings.version,
            "pictures": [legend for _, legend in drawings],
            **feed.state(),
        }
        return header, [picture for picture, _ in drawings]

    async def answer(self, ask: Any, message: dict[str, Any]) -> dict[str, Any] | None:
        """Value of a click, or the outcome of a control."""
        if ask == "drawn":
            self._note_drawn(message.get("serial"))
            return None
        return await asyncio.to_thread(self._done, ask, message)

    def _done(self, ask: Any, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for, which may take a while."""
        feed, show = self._feed, self._feed.show
        if isinstance(ask, str) and ask in _CLICKS:
            work, names = _CLICKS[ask]
            places = map(message.get, names)
            return work(self._result(message), show.settings.shown, *places)
        if ask == "set":
            changes = message.get("changes")
            if not isinstance(changes, dict):
                raise InputError(f"changes={short_repr(changes)} must be a table of settings.")
            show.change(changes)
            return {"settings": feed.state()["settings"]}
        if ask == "snapshot":
            return feed.save(self._result(message))
        if ask in ("record", "seek"):
            return show.act(ask, message)
        raise InputError(f"ask={short_repr(ask)} is not known.")

    def _result(self, message: dict[str, Any]) -> LiveDepth:
        """Result that the page shows, which a click is about."""
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
    if not isinstance(asked, list) or len(asked) > len(PANELS):
        raise InputError(f"panels={short_repr(asked)} must be a list of up to {len(PANELS)}.")
    known = Panel.__dataclass_fields__
    if not all(isinstance(one, dict) and set(one) <= set(known) for one in asked):
        raise InputError(f"a panel has the fields {', '.join(known)}.")
    try:
        return [Panel(**one) for one in asked]
    except TypeError as error:
        raise InputError("a panel needs kind and width.") from error
