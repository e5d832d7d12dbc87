"""Pictures of a result for the screen: colours by a table, JPEG, and the scale of the colours."""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from d3s.camera.live.results import Filter, LiveDepth
from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.plot.flag_colours import FLAG_COLOURS, first_flag
from d3s.estimate.plot.panels import NO_VALUE_COLOUR, VISIBLE_COLOUR
from d3s.files.depth_image import middle_px
from d3s.record import short_repr
from d3s.types import Image

PANELS = {
    "left": "Left view",
    "right": "Right view",
    "depth": "Depth",
    "sigma": "Sigma",
    "confidence": "Confidence",
    "flags": "Flags",
    "points": "3D",
}
"""Panels of the page, by name, with their titles."""

COLOUR_TABLES = {"depth": "viridis_r", "sigma": "magma", "confidence": "cividis"}
"""Matplotlib's colour table of each panel of numbers."""

_SMALLEST_PX, _LARGEST_PX = 16, 4096  # widths that a picture can be asked for in
_QUALITY = 88  # of the JPEG: colours within a few levels, a third of the bytes of 97
_PERCENTILES = (1.0, 99.0)
_NEW_SHARE = 0.25  # of the newest frame in the automatic scale
_CUT = 1.5  # change of an end of the scale beyond which it is taken at once
_NARROWEST = 1.05  # ratio of the ends of a scale: noise of a plane is not spread over all colours
_SAMPLES = 40_000


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Picture that a page asks for."""

    kind: str  # key of `PANELS`
    width: int  # largest, in pixels; a picture is never enlarged
    low: float | None = None  # ends of the colour scale, in metres; automatic if None
    high: float | None = None

    def __post_init__(self) -> None:
        """Check what came from the network."""
        if self.kind not in PANELS:
            raise InputError(f"kind={short_repr(self.kind)} must be one of {', '.join(PANELS)}.")
        if not isinstance(self.width, int) or not _SMALLEST_PX <= self.width <= _LARGEST_PX:
            raise InputError(
                f"width={short_repr(self.width)} must be {_SMALLEST_PX} to {_LARGEST_PX} pixels."
            )
        for name, end in (("low", self.low), ("high", self.high)):
            is_number = isinstance(end, int | float) and not isinstance(end, bool)
            if end is not None and not (is_number and math.isfinite(end) and end >= 0):
                raise InputError(f"{name}={short_repr(end)} must be a number of at least 0.")


@dataclass(frozen=True, kw_only=True)
class ColourScale:
    """Colour scale of a picture."""

    low: float  # value of the first colour
    high: float
    unit: str = ""  # empty for pure numbers
    is_log: bool = False  # whether colours are even in the logarithm


_EMPTY = {
    "depth": ColourScale(low=0.1, high=10.0, unit="m", is_log=True),
    "sigma": ColourScale(low=1e-4, high=1e-1, unit="m", is_log=True),
}


class AutoRange:
    """Ends of automatic scales, which follow the scene slowly and jump when it is cut."""

    def __init__(self) -> None:
        self._scales = dict(_EMPTY)
        self._serials: dict[str, int] = {}

    def scale(self, result: LiveDepth, shown: DepthMap, kind: str) -> ColourScale:
        """Scale of a panel for this result."""
        before = self._scales[kind]
        if self._serials.get(kind) == result.serial:
            return before
        values = shown.depth_m if kind == "depth" else shown.sigma_m
        step = max(1, int(math.sqrt(values.size / _SAMPLES)))
        sampled = values[::step, ::step]
        known = sampled[np.isfinite(sampled) & (sampled > 0)]
        if not known.size:
            return before
        low, high = (float(one) for one in np.percentile(known, _PERCENTILES))
        if high < _NARROWEST * low:
            middle, room = math.sqrt(low * high), math.sqrt(_NARROWEST)
            low, high = middle / room, middle * room
        if kind in self._serials:
            low, high = _between(before.low, low), _between(before.high, high)
        self._serials[kind] = result.serial
        self._scales[kind] = replace(before, low=low, high=high)
        return self._scales[kind]


def _between(before: float, now: float) -> float:
    if not 1 / _CUT < now / before < _CUT:
        return now
    return float(before * (now / before) ** _NEW_SHARE)


_Picture = tuple[NDArray[np.uint8], dict[str, Any]]


def draw(result: LiveDepth, panel: Panel, limits: Filter, ranges: AutoRange) -> tuple[bytes, Any]:
    """JPEG of a panel, or PNG of the points, and its scale for the header of a message."""
    rows, cols = result.shape
    width = min(cols, panel.width)
    size = width, max(1, round(rows * width / cols))  # in the order of OpenCV
    if panel.kind in ("left", "right"):
        picture, legend = _view(result, panel.kind, size)
    elif panel.kind == "flags":
        picture, legend = _flags(result.shown(limits), size)
    elif panel.kind == "points":
        picture, legend = _points(result, limits, ranges, size)
    else:
        picture, legend = _numbers(result, panel, limits, ranges, size)
    encoded = png(picture) if panel.kind == "points" else jpeg(picture)
    return encoded, {"kind": panel.kind, "width": size[0], "height": size[1], **legend}


def jpeg(picture: NDArray[np.uint8]) -> bytes:
    """Picture for people."""
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1].tobytes()


def png(picture: NDArray[np.uint8]) -> bytes:
    """Picture whose values are numbers."""
    return cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes()


def grey_levels(light: NDArray[Any]) -> NDArray[np.uint8]:
    """Light as screens show it: by a square root, near the sRGB curve."""
    levels = np.sqrt(np.clip(np.nan_to_num(light), 0, 1))
    found: NDArray[np.uint8] = (255 * levels).astype(np.uint8)
    return found


def _view(result: LiveDepth, side: str, size: tuple[int, int]) -> _Picture:
    view = result.left if side == "left" else result.right
    if view is None:
        blank = np.full((size[1], size[0]), _bgr(NO_VALUE_COLOUR)[0], dtype=np.uint8)
        return blank, {"low": 0.0, "high": 1.0, "unit": "", "absent": True}
    step = max(1, view.shape[1] // (2 * size[0]))  # averages of every other pixel are as good
    small = cv2.resize(view[::step, ::step], size, interpolation=cv2.INTER_AREA)
    return grey_levels(small), {"low": 0.0, "high": 1.0, "unit": "of full scale"}


def _flags(shown: DepthMap, size: tuple[int, int]) -> _Picture:
    small = cv2.resize(shown.flags, size, interpolation=cv2.INTER_NEAREST)
    number = _first_flags()[small]
    colours = flag_colours()
    names = ["none", *(str(flag.name).lower().replace("_", " ") for flag in Flag)]
    counts = np.bincount(number.ravel(), minlength=len(names))
    legend = [
        {
            "name": name,
            "colour": "#" + bytes(colours[index][::-1]).hex(),
            "share": float(counts[index] / number.size),
        }
        for index, name in enumerate(names)
        if counts[index]
    ]
    return colours[number], {"flags": legend}


def _points(
    result: LiveDepth, limits: Filter, ranges: AutoRange, size: tuple[int, int]
) -> _Picture:
    """Picture for `space.js`: depth and sigma above, without loss, and the left view below."""
    shown = result.shown(limits)
    depth_m, sigma_m = (_small(one, size) for one in (shown.depth_m, shown.sigma_m))
    known = depth_m[np.isfinite(depth_m)]
    near, far = (float(known.min()), float(known.max())) if known.size else (1.0, 2.0)
    far = max(far, 1.001 * near)
    with np.errstate(invalid="ignore"):
        code = np.rint(np.log(depth_m / near) * (65534 / math.log(far / near))) + 1
    code = np.nan_to_num(code).astype(np.uint16)
    scale = ranges.scale(result, shown, "sigma")
    numbers = [_levels(sigma_m, scale), (code & 255).astype(np.uint8), (code >> 8).astype(np.uint8)]
    grey, _ = _view(result, "left", size)
    factor = size[0] / shown.depth_m.shape[1]
    x, y = shown.rig.principal_point_px or middle_px(shown.depth_m.shape)
    return np.vstack([cv2.merge(numbers), cv2.merge([grey] * 3)]), {
        "focal": factor * shown.rig.optics.focal_length_px,
        "centre": [factor * (x + 0.5) - 0.5, factor * (y + 0.5) - 0.5],
        "near": near,
        "far": far,
        "middle": float(np.median(known)) if known.size else 1.0,
        "low": scale.low,
        "high": scale.high,
    }


def _small(values: Image, size: tuple[int, int]) -> NDArray[np.float32]:
    """Numbers of a smaller grid."""
    small = cv2.resize(values, size, interpolation=cv2.INTER_NEAREST)
    return small.astype(np.float32, copy=False)


def _numbers(
    result: LiveDepth, panel: Panel, limits: Filter, ranges: AutoRange, size: tuple[int, int]
) -> _Picture:
    shown = result.shown(limits)
    if panel.kind == "confidence":
        scale, values = ColourScale(low=0.0, high=1.0), shown.confidence
    else:
        scale = ranges.scale(result, shown, panel.kind)
        values = shown.depth_m if panel.kind == "depth" else shown.sigma_m
    low = max(scale.low if panel.low is None else panel.low, 1e-6 if scale.is_log else 0.0)
    high = scale.high if panel.high is None else panel.high
    if high <= low:  # as a page may ask
        high = low * 1.01 if scale.is_log else low + 0.01
    scale = replace(scale, low=low, high=high)
    levels = _levels(_small(values, size), scale)
    picture = cv2.LUT(cv2.merge([levels] * 3), _table(panel.kind))
    return picture.astype(np.uint8, copy=False), vars(scale)


def _levels(values: NDArray[np.float32], scale: ColourScale) -> NDArray[np.uint8]:
    """Index into the colour table: 1 to 255 from low to high, 0 where there is no value."""
    low, high = (math.log(one) if scale.is_log else one for one in (scale.low, scale.high))
    with np.errstate(divide="ignore", invalid="ignore"):
        work = np.log(values) if scale.is_log else values.copy()
    work -= np.float32(low)
    work *= np.float32(254 / (high - low))
    np.clip(work, 0, 254, out=work)
    work += np.float32(1)
    np.nan_to_num(work, copy=False, nan=0.0)
    return work.astype(np.uint8)


@cache
def _table(kind: str) -> NDArray[np.uint8]:
    """Table of `cv2.LUT`: 256 colours in the order blue, green, red."""
    table = np.empty((1, 256, 3), dtype=np.uint8)
    table[0, 0] = _bgr(NO_VALUE_COLOUR)
    table[0, 1:] = _colours(kind, 255)[:, ::-1]
    return table


def _colours(kind: str, count: int) -> NDArray[np.uint8]:
    import matplotlib as mpl

    places = np.linspace(0, 1, count)
    colours = np.asarray(mpl.colormaps[COLOUR_TABLES[kind]](places))[:, :3]
    levels: NDArray[np.uint8] = np.rint(255 * colours).astype(np.uint8)
    return levels


def bar_colours(kind: str) -> list[str]:
    """Colours of a colour bar from low to high, as `#rrggbb`; none for flags."""
    if kind in ("flags", "points"):  # which have a legend, and the colours of others
        return []
    if kind in ("left", "right"):
        levels = (round(255 * math.sqrt(step / 31)) for step in range(32))
        return [f"#{level:02x}{level:02x}{level:02x}" for level in levels]
    return ["#" + bytes(one).hex() for one in _colours(kind, 32)]


@cache
def _first_flags() -> NDArray[np.uint8]:
    """Number of the first flag, for every combination of flags."""
    return first_flag(np.arange(2 * max(Flag), dtype=np.uint16)).astype(np.uint8)


@cache
def flag_colours() -> NDArray[np.uint8]:
    """Colours of no flag and of each flag, in the order blue, green, red."""
    return np.array([_bgr(VISIBLE_COLOUR), *map(_bgr, FLAG_COLOURS.values())], dtype=np.uint8)


def _bgr(colour: str) -> tuple[int, int, int]:
    from matplotlib.colors import to_rgb

    red, green, blue = (round(255 * one) for one in to_rgb(colour))
    return blue, green, red
