"""Sessions of the alignment page: readings, picture and captures in a browser."""

import asyncio
from importlib.resources import files
from typing import Any

import numpy as np

from d3s.camera.align.quantities import next_step, steps_of
from d3s.camera.align.session import Session, Shown
from d3s.camera.live.channel import Channel, Visit
from d3s.camera.live.server import Page
from d3s.errors import InputError
from d3s.record import short_repr


def state_json(session: Session) -> dict[str, Any]:
    """State of a session for the page: source, captures, calibration."""
    captures, found = session.captures, session.calibrated
    return {
        "state": session.state,
        "problem": session.problem,
        "typed_m": session.watch.distance_m,
        "captures": None
        if captures is None
        else {
            "folder": str(captures.folder),
            "filed": [one._asdict() for one in captures.filed],
            "missing": captures.missing,
        },
        "percent": session.percent,
        "calibrated": None
        if found is None
        else {
            **found.values,
            "problem": found.problem,
            "rig": None if found.rig_path is None else str(found.rig_path),
            "report": str(found.page_path),
        },
    }


def frame_json(shown: Shown) -> dict[str, Any]:
    """Readings of a frame for the page, and what it draws over the picture."""
    found = shown.alignment
    steps = steps_of(found.readings)
    following = next_step(steps)
    light, sharpness = found.light, found.sharpness
    outlines = []
    if light.fields is not None:
        outlines = [light.fields.left_outline_px, light.fields.right_outline_px]
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
        "sharpness": [
            {"x": x, "y": y, "left": left, "right": right}
            for (x, y), left, right in zip(
                sharpness.places_px.tolist(),
                sharpness.left.tolist(),
                sharpness.right.tolist(),
                strict=True,
            )
        ],
    }


PICTURE_COLS_PX = 960
_QUALITY = 80  # of the JPEG


def align_pages(session: Session) -> list[Page]:
    """Pages of a session: the alignment, and the report of its calibration."""
    folder = files("d3s.camera.align") / "page"

    async def serve(channel: Channel) -> None:
        await _Visit(session, channel).run()

    def report() -> str | None:
        return None if session.calibrated is None else session.calibrated.page

    return [
        Page(name="align", title="Alignment", files=folder, serve=serve),
        Page(name="report", title="Report of the calibration", answer=report),
    ]


class _Visit(Visit):
    """One page in a browser."""

    def __init__(self, session: Session, channel: Channel) -> None:
        super().__init__(channel, session.newest)
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
        picture = await asyncio.to_thread(picture_of, self._sent)
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
        return {
            "problems": list(found.checked.problems),
            "motion_px": found.checked.motion_px,
            "filed": None if found.filed is None else found.filed._asdict(),
        }
    elif asked == "take_back":
        if session.captures is None:
            raise InputError("there is no folder for captures. Start with --captures FOLDER.")
        return {"taken_back": session.captures.take_back(str(message.get("name")))._asdict()}
    elif asked == "calibrate":
        session.run_calibration()
    else:
        raise InputError(
            f"ask={short_repr(asked)} must be distance, forget, capture, take_back or calibrate."
        )
    return {}


def _number(message: dict[str, Any], name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={short_repr(value)} must be a number of metres.")
    return float(value)


def picture_of(shown: Shown) -> bytes:
    """Small JPEG of the raw frame, brightened as screens show light."""
    import cv2

    rows, cols = shown.image.shape
    width = min(cols, PICTURE_COLS_PX)
    size = width, max(round(rows * width / cols), 1)
    small = cv2.resize(shown.image, size, interpolation=cv2.INTER_AREA)
    levels = np.rint(255 * np.sqrt(np.clip(np.nan_to_num(small), 0, 1))).astype(np.uint8)
    done, encoded = cv2.imencode(".jpg", levels, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise InputError("the picture of the frame could not be encoded.")
    return bytes(encoded)
