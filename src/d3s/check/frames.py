"""Frames of a check: raw frames that a rig splits, or views that are rectified already."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from d3s.check.mend import mended
from d3s.errors import InputError
from d3s.frames import Frame
from d3s.rig import Rig
from d3s.rig.bayer import MONO
from d3s.rig.split import checked_frame
from d3s.types import Image


def as_frames(frames: Iterable[Any]) -> list[Frame]:
    """Return frames of any of the forms that `check` takes: arrays, pairs, or `Frame`."""
    if isinstance(frames, np.ndarray) and frames.ndim == 2:
        frames = [frames]
    found = [_as_frame(number, one) for number, one in enumerate(frames)]
    if not found:
        raise InputError("there are no frames. Give one or more, best ten of different scenes.")
    return found


def _as_frame(number: int, one: Any) -> Frame:
    if isinstance(one, Frame):
        return one
    name = f"frame {number}"
    is_array = isinstance(one, np.ndarray)
    if not is_array and hasattr(one, "left") and hasattr(one, "right"):
        one = one.left, one.right
    if not is_array and isinstance(one, tuple | list) and len(one) == 2:
        left, right = (_image(view, f"a view of {name}") for view in one)
        if left.shape != right.shape:
            raise InputError(f"{name} has views of {left.shape} and {right.shape}: give one size.")
        return Frame(number=number, name=name, views=(left, right))
    return Frame(number=number, name=name, raw=_image(one, name))


def _image(values: Any, name: str) -> Image:
    scaled = checked_frame(values, name)
    return np.asarray(scaled.values * np.float64(scaled.unit), dtype=np.float32)


def mended_views(frame: Frame, rig: Rig, drift: Mapping[str, float]) -> tuple[Image, Image]:
    """Left and right view of a frame, as the mended rig would make them.

    The drift has the names of `d3s.check.quantities.KINDS`; the rig is that before it was mended.
    """
    if frame.views is None:
        own = None if rig.calibration is None else rig.calibration.bayer
        return mended(rig, drift).split(frame.raw, bayer=own or MONO)  # a note warns of others
    left, right = frame.views
    return left, _moved(right, drift) if drift else right


def _moved(view: Image, drift: Mapping[str, float]) -> Image:
    """Right view, resampled where it has drifted to, and divided by the change of its light."""
    import cv2  # imported here: slow to load

    rows, cols = view.shape
    middle = np.array([cols - 1, rows - 1]) / 2
    size, roll = 1 + drift.get("scale", 0.0), drift.get("roll_rad", 0.0)
    linear = size * np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    start = middle - linear @ middle + np.array([0.0, drift.get("rows_px", 0.0)])
    flags = cv2.INTER_LANCZOS4 | cv2.WARP_INVERSE_MAP
    moved = cv2.warpAffine(
        view,
        np.column_stack([linear, start]),
        (cols, rows),
        flags=flags,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=float("nan"),
    )
    x, y = (np.arange(cols) - middle[0])[np.newaxis], (np.arange(rows) - middle[1])[:, np.newaxis]
    half = max(rows, cols) / 2
    light = 1 + drift.get("gain", 0.0) + drift.get("shading_x", 0.0) * x / half
    light = light + drift.get("shading_y", 0.0) * y / half
    light = light + drift.get("shading_r", 0.0) * (x * x + y * y) / half**2
    return np.asarray(moved / light, dtype=np.float32)
