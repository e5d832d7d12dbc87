"""Pictures of a result for the screen: colours by a table, JPEG, and the scale of the colours."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from d3s.camera.live.results import LiveDepth
from d3s.camera.live.settings import Filter
from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.plot.flag_colours import FLAG_COLOURS, first_flag
from d3s.estimate.plot.panels import NO_VALUE_COLOUR, VISIBLE_COLOUR
from d3s.files.depth_image import middle_px
from d3s.record import short_repr

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

SMALLEST_PX, LARGEST_PX = 16, 4096
"""Widths that a picture can be asked for in."""

_QUALITY = 88  # of the JPEG: colours within a few levels, a third of the bytes of 97
_PERCENTILES = (1.0, 99.0)
_NEW_SHARE = 0.25  # of the newest frame in the automatic scale
_CUT = 1.5  # change of an end of the scale beyond which it is taken at once
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
        if not isinstance(self.width, int) or not SMALLEST_PX <= self.width <= LARGEST_PX:
            raise InputError(
                f"width={short_repr(self.width)} must be {SMALLEST_PX} to {LARGEST_PX} pixels."
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


class AutoRange:
    """Ends of automatic scales, which follow the scene slowly and jump when it is cut."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[int, ColourScale]] = {}

    def scale(self, result: LiveDepth, shown: DepthMap, kind: str) -> ColourScale:
        """Scale of a panel for this result."""
        serial, before = self._ends.get(kind, (0, None))
        if before is not None and serial == result.serial:
            return before
        found = _percentile_scale(shown, kind)
        if found is None:  # no pixel has a depth
            return before or _EMPTY[kind]
        if before is not None:
            found = replace(
                found, low=_between(before.low, found.low), high=_between(before.high, found.high)
            )
        self._ends[kind] = result.serial, found
        return found


_EMPTY = {
    "depth": ColourScale(low=0.1, high=10.0, unit="m", is_log=True),
    "sigma": ColourScale(low=1e-4, high=1e-1, unit="m", is_log=True),
}
_NARROWEST = 1.05  # ratio of the ends of a scale: noise of a plane is not spread over all colours


def _percentile_scale(shown: DepthMap, kind: str) -> ColourScale | None:
    values = shown.depth_m if kind == "depth" else shown.sigma_m
    step = max(1, int(math.sqrt(values.size / _SAMPLES)))
    sampled = values[::step, ::step]
    known = sampled[np.isfinite(sampled) & (sampled > 0)]
    if not known.size:
        return None
    low, high = (float(one) for one in np.percentile(known, _PERCENTILES))
    if high < _NARROWEST * low:
        middle, room = math.sqrt(low * high), math.sqrt(_NARROWEST)
        low, high = middle / room, middle * room
    return ColourScale(low=low, high=high, unit="m", is_log=True)


def _between(before: float, now: float) -> float:
    if not 1 / _CUT < now / before < _CUT:
        return now
    return float(before * (now / before) ** _NEW_SHARE)


def draw(result: LiveDepth, panel: Panel, limits: Filter, ranges: AutoRange) -> tuple[bytes, Any]:
    """JPEG of a panel, and its scale as values for the header of a message."""
    size = _shown_size(result.shape, panel.width)
    if panel.kind in ("left", "right"):
        picture, legend = _grey(result, panel.kind, size)
    elif panel.kind == "flags":
        picture, legend = _flags(result.shown(limits), size)
    elif panel.kind == "points":
        return _points(result, limits, ranges, size)
    else:
        picture, legend = _numbers(result, panel, limits, ranges, size)
    done, encoded = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise InputError(f"the picture of {panel.kind} could not be encoded.")
    return encoded.tobytes(), {"kind": panel.kind, "width": size[0], "height": size[1], **legend}


def _shown_size(shape: tuple[int, int], width: int) -> tuple[int, int]:
    """Width and height of the picture, in the order of OpenCV."""
    rows, cols = shape
    wide = min(cols, width)
    return wide, max(1, round(rows * wide / cols))


def _grey(
    result: LiveDepth, side: str, size: tuple[int, int]
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """View as screens show it: by a square root, near the sRGB curve."""
    view = result.left if side == "left" else result.right
    if view is None:
        blank = np.full((size[1], size[0], 3), _bgr(NO_VALUE_COLOUR), dtype=np.uint8)
        return blank, {"low": 0.0, "high": 1.0, "unit": "", "absent": True}
    step = max(1, view.shape[1] // (2 * size[0]))  # averages of every other pixel are as good
    small = cv2.resize(view[::step, ::step], size, interpolation=cv2.INTER_AREA)
    levels = np.sqrt(np.clip(np.nan_to_num(small), 0, 1))
    return (255 * levels).astype(np.uint8), {"low": 0.0, "high": 1.0, "unit": "of full scale"}


def _flags(shown: DepthMap, size: tuple[int, int]) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    small = cv2.resize(shown.flags, size, interpolation=cv2.INTER_NEAREST)
    number = _first_flags()[small]
    colours = flag_colours()
    names = ["none", *(str(flag.name).lower().replace("_", " ") for flag in Flag)]
    counts = np.bincount(number.ravel(), minlength=len(names))
    legend = [
        {"name": name, "colour": _hex(colours[index]), "share": float(counts[index] / number.size)}
        for index, name in enumerate(names)
        if counts[index]
    ]
    return colours[number], {"flags": legend}


def _points(
    result: LiveDepth, limits: Filter, ranges: AutoRange, size: tuple[int, int]
) -> tuple[bytes, Any]:
    """PNG for `space.js`: depth and sigma above, without loss, and the left view below."""
    shown = result.shown(limits)
    layers = (shown.depth_m, shown.sigma_m)
    small = [cv2.resize(one, size, interpolation=cv2.INTER_NEAREST) for one in layers]
    depth_m, sigma_m = (one.astype(np.float32, copy=False) for one in small)
    known = depth_m[np.isfinite(depth_m)]
    near, far = (float(known.min()), float(known.max())) if known.size else (1.0, 2.0)
    far = max(far, 1.001 * near)
    with np.errstate(invalid="ignore"):
        code = np.rint(np.log(depth_m / near) * (65534 / math.log(far / near))) + 1
    code = np.nan_to_num(code).astype(np.uint16)
    scale = ranges.scale(result, shown, "sigma")
    numbers = cv2.merge(
        [_levels(sigma_m, scale), (code & 255).astype(np.uint8), (code >> 8).astype(np.uint8)]
    )
    grey, _ = _grey(result, "left", size)
    view = grey if grey.ndim == 3 else cv2.merge([grey] * 3)
    picture = np.vstack([numbers, view])
    done, encoded = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    if not done:
        raise InputError("the picture of points could not be encoded.")
    factor = size[0] / shown.depth_m.shape[1]
    x, y = shown.rig.principal_point_px or middle_px(shown.depth_m.shape)
    return encoded.tobytes(), {
        "kind": "points",
        "width": size[0],
        "height": size[1],
        "focal": factor * shown.rig.optics.focal_length_px,
        "centre": [factor * (x + 0.5) - 0.5, factor * (y + 0.5) - 0.5],
        "near": near,
        "far": far,
        "middle": float(np.median(known)) if known.size else 1.0,
        "low": scale.low,
        "high": scale.high,
    }


def _numbers(
    result: LiveDepth, panel: Panel, limits: Filter, ranges: AutoRange, size: tuple[int, int]
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    shown = result.shown(limits)
    if panel.kind == "confidence":
        scale, values = ColourScale(low=0.0, high=1.0), shown.confidence
    else:
        scale = ranges.scale(result, shown, panel.kind)
        values = shown.depth_m if panel.kind == "depth" else shown.sigma_m
    scale = _with_ends(scale, panel)
    small = cv2.resize(values, size, interpolation=cv2.INTER_NEAREST)
    levels = _levels(small.astype(np.float32, copy=False), scale)
    picture = cv2.LUT(cv2.merge([levels] * 3), _table(panel.kind))
    return picture.astype(np.uint8, copy=False), vars(scale)


def _with_ends(scale: ColourScale, panel: Panel) -> ColourScale:
    """Scale with the ends that the page asks for; never empty."""
    low = scale.low if panel.low is None else panel.low
    high = scale.high if panel.high is None else panel.high
    least = 1e-6 if scale.is_log else 0.0
    low = max(low, least)
    if high <= low:
        high = low * 1.01 if scale.is_log else low + 0.01
    return replace(scale, low=low, high=high)


def _levels(values: NDArray[np.float32], scale: ColourScale) -> NDArray[np.uint8]:
    """Index into the colour table: 1 to 255 from low to high, 0 where there is no value."""
    change: Callable[[float], float] = math.log if scale.is_log else float
    low, high = change(scale.low), change(scale.high)
    with np.errstate(divide="ignore", invalid="ignore"):
        work = np.log(values) if scale.is_log else values.astype(np.float32, copy=True)
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


def _hex(bgr: NDArray[np.uint8]) -> str:
    return "#" + bytes(bgr[::-1]).hex()
