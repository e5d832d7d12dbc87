"""Settings of an estimate; one frame with its depth map and light; what a click on it asks for."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from d3s.errors import InputError
from d3s.estimate import DepthMap, Options
from d3s.estimate.depth_map import check_limits
from d3s.estimate.methods import checked_options, estimate_quietly
from d3s.frames import Frame
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import Image

FAST = {"finest_scale": 2, "search_scale": 4}
"""Options of "joint" for more frames a second; docs/estimator.md has what they cost."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Depths that are shown, as in `DepthMap.filter`."""

    min_confidence: float | None = None
    max_sigma_m: float | None = None
    carried: bool = True  # whether depths that rest on texture elsewhere in the window are shown

    def __post_init__(self) -> None:
        """Check the limits."""
        check_limits(min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m)
        if not isinstance(self.carried, bool):
            raise InputError(f"carried={short_repr(self.carried)} must be true or false.")

    def apply(self, depth_map: DepthMap) -> DepthMap:
        """Depth map without the depths beyond the limits."""
        if self == Filter():
            return depth_map
        return depth_map.filter(
            min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m, carried=self.carried
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Method and options of the estimate, and the filter of what is shown.

    Parameters
    ----------
    method
        Name of a method of `d3s.estimate`.
    options
        Options of the method; the default of every field if None.
    shown
        Filter of the depths that are shown.
    version
        Number of changes until now: a page that has drawn another version draws again.
    """

    method: str = "joint"
    options: Options | None = None
    shown: Filter = Filter()
    version: int = 0

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Settings with some values replaced, checked."""
        filters = {name: changes[name] for name in Filter.__dataclass_fields__ if name in changes}
        unknown = set(changes) - set(filters) - {"options"}
        if unknown:
            known = ", ".join(("options", *Filter.__dataclass_fields__))
            raise InputError(f"{short_repr(min(unknown))} is no setting. There are {known}.")
        options, given = self.options, changes.get("options", {})
        if not isinstance(given, Mapping):
            raise InputError(f"options={short_repr(given)} must be a table of fields and values.")
        if given:
            before = {} if options is None else options.model_dump(exclude_unset=True)
            merged = {**before, **given}
            kept = {name: value for name, value in merged.items() if value is not None}
            options = checked_options(self.method, kept)
        return replace(
            self,
            options=options,
            shown=replace(self.shown, **filters),
            version=self.version + 1,
        )


_BINS = 64  # of the histogram, from 0 to full scale
_MOST_SAMPLES = 50_000  # of an image: enough for a share of 0.02 %, and taken in 1 ms
_MOST_POINTS = 800  # of a profile


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveDepth:
    """Depth of one frame, with the views and times that a page shows."""

    serial: int  # from 1, always increasing; pages name a result by it
    number: int  # of the frame in its source
    name: str
    left: Image | None  # rectified, full scale 1; None if only a depth map was saved
    right: Image | None
    depth_map: DepthMap  # of the left view, unfiltered
    light: dict[str, Any] | None  # of `measure_light`; None without views
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


def measure_light(frame: Frame) -> dict[str, Any]:
    """Light on the sensor, from a grid of the pixels of the raw frame, or of both views.

    `histogram` is the share of the pixels in each of even bins up to full scale, `black` the share
    at 0, `white` that at full scale.
    """
    images = [one for one in (frame.counts, frame.raw, *(frame.views or ())) if one is not None]
    steps = [max(1, int(np.sqrt(one.size / _MOST_SAMPLES))) for one in images]
    sampled = [one[::step, ::step].ravel() for one, step in zip(images, steps, strict=True)]
    levels = np.concatenate(sampled).astype(np.float32)
    if frame.counts is not None:
        levels /= np.float32(frame.full_scale)
    known = levels[np.isfinite(levels)]
    size = max(known.size, 1)
    places = np.minimum(np.clip(known, 0, 1) * _BINS, _BINS - 1).astype(np.intp)
    return {
        "histogram": (np.bincount(places, minlength=_BINS) / size).tolist(),
        "black": float(np.sum(known <= 0) / size),
        "white": float(np.sum(known >= 1) / size),
    }


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
        "depth_m": found.depth_m,
        "sigma_m": found.sigma_m,
        "confidence": found.confidence,
        "flags": [str(flag.name) for flag in found.flags],
        "reasons": list(found.reasons),
        "left": None if result.left is None else float(result.left[row, col]),
        "right": None if result.right is None else float(result.right[row, col]),
    }


def distance(result: LiveDepth, limits: Filter, a: Any, b: Any) -> dict[str, Any]:
    """Distance in space between two pixels, with its sigma."""
    found = result.shown(limits).distance(place_of(a, "a"), place_of(b, "b"))
    return {"text": str(found), **found._asdict()}


def profile(result: LiveDepth, limits: Filter, a: Any, b: Any) -> dict[str, Any]:
    """Depth and sigma of the nearest pixels at even steps along a line; NaN where there is none."""
    shown = result.shown(limits)
    ends = np.array([place_of(a, "a"), place_of(b, "b")])
    for row, col in ends.tolist():
        shown.at(row, col)  # refuses what is outside
    count = min(int(np.abs(ends[1] - ends[0]).max()) + 1, _MOST_POINTS)
    rows, cols = np.rint(np.linspace(ends[0], ends[1], count)).astype(np.intp).T
    return {
        "length_px": float(np.hypot(*(ends[1] - ends[0]))),
        "depth_m": shown.depth_m[rows, cols].tolist(),
        "sigma_m": shown.sigma_m[rows, cols].tolist(),
    }
