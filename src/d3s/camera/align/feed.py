"""Sessions of the alignment page: readings, picture and captures in a browser."""

import asyncio
from importlib.resources import files
from typing import Any

import cv2
import numpy as np
from aiohttp import web

from d3s.camera.align.filing import parsed_distances
from d3s.camera.align.quantities import next_step, steps_of
from d3s.camera.align.session import Session, Shown
from d3s.camera.live.channel import Visit
from d3s.camera.live.pictures import grey_levels, jpeg
from d3s.camera.live.server import Page
from d3s.errors import InputError
from d3s.record import short_repr

PICTURE_COLS_PX = 960


def state_json(session: Session) -> dict[str, Any]:
    """State of a session for the page: source, captures, calibration."""
    values: dict[str, Any] = {
        "state": session.state,
        "problem": session.problem,
        "typed_m": session.watch.distance_m,
        "captures": None,
        "percent": session.percent,
        "calibrated": None,
    }
    captures, found = session.captures, session.calibrated
    if captures is not None:
        filed = [one._asdict() for one in captures.filed]
        values["captures"] = {
            "folder": str(captures.folder),
            "filed": filed,
            "missing": captures.missing,
        }
    if found is not None:
        values["calibrated"] = {
            **found.values,
            "problem": found.problem,
            "rig": None if found.rig_path is None else str(found.rig_path),
            "report": str(found.page_path),
        }
    return values


def frame_json(shown: Shown) -> dict[str, Any]:
    """Readings of a frame for the page, and what it draws over the picture."""
    found = shown.alignment
    steps = steps_of(found.readings)
    following = next_step(steps)
    light, sharpness = found.light, found.sharpness
    outlines = []
    if light.fields is not None:
        outlines = [light.fields.left_outline_px, light.fields.right_outline_px]
    table = np.column_stack([sharpness.places_px, sharpness.left, sharpness.right])
    return {
        "number": shown.number,
        "name": shown.name,
        "seconds": round(shown.seconds, 3),
        "rows": found.shape[0],
        "cols": found.shape[1],
        "distance_m": found.distance_m,
        "texture": found.problem,
        "matches": found.matched.size,
        "steps": [step.as_json() for step in steps],
        "next": None if following is None else following.name,
        "outlines": [np.round(one, 1).tolist() for one in outlines],
        "shadow": None if light.shadow is None else light.shadow._asdict(),
        "sharpness": table.tolist(),  # of blocks: x, y, left, right
    }


def align_pages(session: Session) -> list[Page]:
    """Pages of a session: the alignment, and the report of its calibration."""
    folder = files("d3s.camera.align") / "page"

    async def serve(socket: web.WebSocketResponse) -> None:
        await _Visit(session, socket).run()

    def report() -> str | None:
        return None if session.calibrated is None else session.calibrated.page

    return [
        Page(name="align", title="Alignment", files=folder, serve=serve),
        Page(name="report", title="Report of the calibration", answer=report),
    ]


class _Visit(Visit):
    """One page in a browser."""

    def __init__(self, session: Session, socket: web.WebSocketResponse) -> None:
        super().__init__(socket, session.newest)
        self._session = session
        self._sent: Shown | None = None

    def state(self) -> dict[str, Any]:
        """State of the session."""
        return state_json(self._session)

    async def frame(self, asked: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]] | None:
        """Newest readings, unless they were sent."""
        shown = self._session.newest.peek()
        if shown is None or shown is self._sent:
            return None
        self._sent = self._session.newest.read() or shown
        picture = await asyncio.to_thread(_picture, self._sent)
        return {"is": "frame", **frame_json(self._sent), **self.state()}, [picture]

    async def answer(self, ask: Any, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a message asks for."""
        return {**await asyncio.to_thread(_done, self._session, message), **self.state()}


def _done(session: Session, message: dict[str, Any]) -> dict[str, Any]:
    """Do what a message of the page asks for; returns what it is told beside the state."""
    asked = message.get("ask")
    if asked == "distance":
        is_known = message.get("distance_m") is not None
        session.set_distance(_number(message, "distance_m") if is_known else None)
    elif asked == "forget":
        session.forget()
    elif asked == "capture":
        found = session.capture(_number(message, "distance_m"))
        filed = None if found.filed is None else found.filed._asdict()
        return {**found._asdict(), "filed": filed}
    elif asked == "take_back":
        session.take_back(str(message.get("name")))
    elif asked == "plan":
        text = str(message.get("text"))
        return {"planned": parsed_distances(text) if text.strip() else ()}
    elif asked == "calibrate":
        session.run_calibration()
    else:
        raise InputError(
            f"ask={short_repr(asked)} must be distance, forget, plan, capture, take_back or "
            "calibrate."
        )
    return {}


def _number(message: dict[str, Any], name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={short_repr(value)} must be a number of metres.")
    return float(value)


def _picture(shown: Shown) -> bytes:
    """Small JPEG of the raw frame, brightened as screens show light."""
    rows, cols = shown.image.shape
    width = min(cols, PICTURE_COLS_PX)
    size = width, max(round(rows * width / cols), 1)
    return jpeg(grey_levels(cv2.resize(shown.image, size, interpolation=cv2.INTER_AREA)))
