"""One frame with its views, depth map, light and times; what a click on it asks for."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.camera.live.settings import Filter, Settings
from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.estimate.methods import estimate_quietly
from d3s.frames import Frame
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import Image

BINS = 64
"""Bins of the histogram, from 0 to full scale."""

_MOST_SAMPLES = 50_000  # of an image: enough for a share of 0.02 %, and taken in 1 ms
_DARK, _BRIGHT = 0.0, 1.0


@dataclass(frozen=True, kw_only=True)
class LightHistogram:
    """Light on the sensor: histogram and clipped pixels of a frame, from a grid of its pixels."""

    histogram: tuple[float, ...]  # share of the pixels in each of BINS bins
    black: float  # share of the pixels at 0
    white: float  # share of the pixels at full scale


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveDepth:
    """Depth of one frame, with the views and times that a page shows."""

    serial: int  # from 1, always increasing; pages name a result by it
    number: int  # of the frame in its source
    name: str
    left: Image | None  # rectified, full scale 1; None if only a depth map was saved
    right: Image | None
    depth_map: DepthMap  # of the left view, unfiltered
    light: LightHistogram | None  # None without views
    grabbed_s: float  # by `time.monotonic`
    time_s: float | None = None  # time stamp of the frame, if its source has one
    split_s: float = 0.0
    estimate_s: float = 0.0
    waited_s: float = 0.0  # for both steps
    remarks: tuple[str, ...] = ()  # and warnings of the source
    position: int | None = None  # on the time line of saved frames; None for live ones
    _filtered: dict[Filter, DepthMap] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the depth map."""
        rows, cols = self.depth_map.depth_m.shape
        return rows, cols

    def shown(self, limits: Filter) -> DepthMap:
        """Depth map without the depths beyond the limits; kept until other limits are asked for."""
        found = self._filtered.get(limits)
        if found is None:
            found = limits.apply(self.depth_map)
            self._filtered.clear()
            self._filtered[limits] = found
        return found


def compute(
    frame: Frame, rig: Rig, settings: Settings, *, serial: int, grabbed_s: float
) -> LiveDepth:
    """Split a frame, estimate its depth, and measure its light."""
    begun = time.monotonic()
    left, right = frame.pair(rig)
    split = time.monotonic()
    depth_map = estimate_quietly(left, right, rig, method=settings.method, options=settings.options)
    ended = time.monotonic()
    return LiveDepth(
        serial=serial,
        number=frame.number,
        name=frame.name,
        left=left,
        right=right,
        depth_map=depth_map,
        light=measure_light(frame),
        grabbed_s=grabbed_s,
        time_s=frame.time_s,
        split_s=split - begun,
        estimate_s=ended - split,
        waited_s=begun - grabbed_s,
        remarks=(*frame.remarks, *frame.warnings),
    )


def measure_light(frame: Frame) -> LightHistogram:
    """Histogram and clipped pixels of a frame: of the raw frame if there is one, else of views."""
    if frame.counts is not None:
        levels = _sampled(frame.counts)
        return _light(levels.astype(np.float32) / np.float32(frame.full_scale))
    if frame.raw is not None:
        return _light(_sampled(frame.raw))
    return _light(np.concatenate([_sampled(one).ravel() for one in frame.views or ()]))


def _sampled(image: NDArray[Any]) -> NDArray[Any]:
    step = max(1, int(np.sqrt(image.size / _MOST_SAMPLES)))
    return image[::step, ::step]


def _light(levels: NDArray[Any]) -> LightHistogram:
    known = levels[np.isfinite(levels)].astype(np.float32, copy=False)
    if not known.size:
        return LightHistogram(histogram=(0.0,) * BINS, black=0.0, white=0.0)
    inside = np.clip(known, 0, 1)
    counts = np.bincount(np.minimum(inside * BINS, BINS - 1).astype(np.intp), minlength=BINS)
    return LightHistogram(
        histogram=tuple((counts / known.size).tolist()),
        black=float(np.mean(known <= _DARK)),
        white=float(np.mean(known >= _BRIGHT)),
    )


MOST_POINTS = 800
"""Points of a profile at most."""


def place_of(value: Any, name: str) -> tuple[int, int]:
    """Row and column of a message."""
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not is_pair or not all(type(one) is int for one in value):
        raise InputError(f"{name}={short_repr(value)} must be two whole numbers: row and column.")
    return value[0], value[1]


def pixel(result: LiveDepth, limits: Filter, place: Any) -> dict[str, Any]:
    """Depth, sigma, confidence, flags and grey values of a pixel."""
    row, col = place_of(place, "place")
    found = result.shown(limits).at(row, col)
    return {
        "text": str(found),
        "depth_m": found.depth_m,
        "sigma_m": found.sigma_m,
        "confidence": found.confidence,
        "flags": [str(flag.name) for flag in found.flags],
        "reasons": list(found.reasons),
        "point_m": list(found.point_m),
        "left": None if result.left is None else float(result.left[row, col]),
        "right": None if result.right is None else float(result.right[row, col]),
    }


def distance(result: LiveDepth, limits: Filter, a: Any, b: Any) -> dict[str, Any]:
    """Distance in space between two pixels, with its sigma."""
    shown = result.shown(limits)
    found = shown.distance(place_of(a, "a"), place_of(b, "b"))
    return {"text": str(found), **found._asdict()}


def profile(result: LiveDepth, limits: Filter, a: Any, b: Any) -> dict[str, Any]:
    """Depth and sigma along the line between two pixels; NaN where there is no depth."""
    shown = result.shown(limits)
    ends = [place_of(one, name) for one, name in ((a, "a"), (b, "b"))]
    for row, col in ends:
        shown.at(row, col)  # refuses what is outside
    return _samples(shown, *ends)


def _samples(shown: DepthMap, a: tuple[int, int], b: tuple[int, int]) -> dict[str, Any]:
    """Nearest pixels at even steps along a line."""
    steps = max(abs(b[0] - a[0]), abs(b[1] - a[1]))
    count = min(steps + 1, MOST_POINTS)
    rows, cols = (np.rint(np.linspace(a[i], b[i], count)).astype(np.intp) for i in (0, 1))
    return {
        "length_px": math.dist(a, b),
        "depth_m": shown.depth_m[rows, cols].tolist(),
        "sigma_m": shown.sigma_m[rows, cols].tolist(),
    }
