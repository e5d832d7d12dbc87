"""Result of one frame: both views, the depth map, the light on the sensor, and times."""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.camera.live.settings import Filter, Settings
from d3s.estimate import DepthMap
from d3s.estimate.methods import estimate_quietly
from d3s.frames import Frame
from d3s.rig import Rig
from d3s.types import Image

BINS = 64
"""Bins of the histogram, from 0 to full scale."""

_MOST_SAMPLES = 50_000  # of an image: enough for a share of 0.02 %, and taken in 1 ms
_DARK, _BRIGHT = 0.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Light:
    """Light on the sensor: histogram and clipped pixels of a frame, from a grid of its pixels."""

    histogram: tuple[float, ...]  # share of the pixels in each of BINS bins
    black: float  # share of the pixels at 0
    white: float  # share of the pixels at full scale


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Depth of one frame, with the views and times that a page shows.

    Parameters
    ----------
    serial
        Number of the result, from 1, always increasing; pages name a result by it.
    number, name
        Number and name of the frame in its source.
    left, right
        Rectified views, full scale 1. None if only a depth map was saved.
    depth_map
        Depth of the left view, unfiltered.
    light
        Histogram and clipped pixels; None without views.
    grabbed_s
        Time when the frame came, by `time.monotonic`.
    time_s
        Time stamp of the frame, if its source has one.
    split_s, estimate_s, waited_s
        Time of both steps, and of waiting for them.
    remarks
        Remarks and warnings of the source.
    position
        Place on the time line of saved frames, from 0; None for live frames.
    """

    serial: int
    number: int
    name: str
    left: Image | None
    right: Image | None
    depth_map: DepthMap
    light: Light | None
    grabbed_s: float
    time_s: float | None = None
    split_s: float = 0.0
    estimate_s: float = 0.0
    waited_s: float = 0.0
    remarks: tuple[str, ...] = ()
    position: int | None = None
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


def compute(frame: Frame, rig: Rig, settings: Settings, *, serial: int, grabbed_s: float) -> Result:
    """Split a frame, estimate its depth, and measure its light.

    Parameters
    ----------
    frame
        Frame of a source.
    rig
        Camera that took it.
    settings
        Method and options.
    serial
        Number of the result.
    grabbed_s
        Time when the frame came, by `time.monotonic`.

    Raises
    ------
    InputError
        If the frame does not fit the rig, or the method cannot use the rig.
    """
    begun = time.monotonic()
    left, right = frame.pair(rig)
    split = time.monotonic()
    depth_map = estimate_quietly(left, right, rig, method=settings.method, options=settings.options)
    ended = time.monotonic()
    return Result(
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


def measure_light(frame: Frame) -> Light:
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


def _light(levels: NDArray[Any]) -> Light:
    known = levels[np.isfinite(levels)].astype(np.float32, copy=False)
    if not known.size:
        return Light(histogram=(0.0,) * BINS, black=0.0, white=0.0)
    inside = np.clip(known, 0, 1)
    counts = np.bincount(np.minimum(inside * BINS, BINS - 1).astype(np.intp), minlength=BINS)
    return Light(
        histogram=tuple((counts / known.size).tolist()),
        black=float(np.mean(known <= _DARK)),
        white=float(np.mean(known >= _BRIGHT)),
    )
