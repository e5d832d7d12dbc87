"""Readings of a frame and the state of a session, as JSON can hold them."""

from typing import Any

import numpy as np

from d3s.camera.align.session import Session, Shown
from d3s.camera.align.steps import next_step, steps_of


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
