"""Preview of a depth map: a plain picture in colours, or a figure with a colour bar."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from d3s.atomic import write_bytes
from d3s.errors import InputError
from d3s.estimate.plot.panels import Values, colour_map, need_matplotlib, set_depth_ticks, set_title
from d3s.estimate.plot.save import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

ENDING = "preview.png"
"""Ending of the name of a preview file on the command line."""

# The scale covers these percentiles, so that a few outliers do not set it. The colour bar then has
# a pointed end.
_SCALE_PERCENTILES = (0.5, 99.5)
_STEPS = 256  # colours of the map
_NO_DEPTH = np.full(3, 0xBB, dtype=np.uint8)  # NO_VALUE_COLOUR
_STRIP_PX, _TEXT_ROW, _TEXT_SCALE = 18, 13, 0.45  # of the scale below a plain preview
_WIDTH_IN, _TALLEST_IN, _LOWEST_IN = 8.0, 6.5, 1.0
_EDGE_IN, _TITLE_IN, _BAR_IN, _BAR_ROOM_IN = 0.1, 0.3, 0.18, 1.1


def plot_preview(depth_m: Values, title: str = "") -> "Figure":
    """Figure of depth (rows, cols) in metres: near yellow, far violet, grey for NaN and 0.

    The colour scale is logarithmic.

    Raises
    ------
    InputError
        When `depth_m` is not an image.
    """
    if depth_m.ndim != 2 or not depth_m.size:
        raise InputError(f"depth has shape {depth_m.shape}: it must be (rows, cols).")
    need_matplotlib()
    known = depth_m[np.isfinite(depth_m) & (depth_m > 0)]
    figure, axes, bar_axes = _new_figure(depth_m.shape[0] / depth_m.shape[1])
    shown = axes.imshow(
        np.where(depth_m > 0, depth_m, np.nan),
        cmap=colour_map("viridis_r"),
        norm=preview_norm(depth_m),
        interpolation="nearest",
    )
    set_title(axes, title.replace("$", r"\$"))  # not a formula
    if known.size:
        _add_bar(shown, bar_axes, known)
    else:
        bar_axes.set_axis_off()
        axes.text(0.5, 0.5, "no depth", transform=axes.transAxes, ha="center", va="center")
    return figure


def plain_preview(depth_m: Values) -> NDArray[np.uint8]:
    """Colours (rows, cols, 3) of depth in metres, one pixel each: the colours of `plot_preview`.

    Raises
    ------
    InputError
        When `depth_m` is not an image.
    """
    if depth_m.ndim != 2 or not depth_m.size:
        raise InputError(f"depth has shape {depth_m.shape}: it must be (rows, cols).")
    known = np.isfinite(depth_m) & (depth_m > 0)
    low, high = scale_m(depth_m[known])
    steps = np.log(np.where(known, depth_m, low) / low) * (_STEPS / np.log(high / low))
    places = np.where(known, steps.clip(0, _STEPS - 1), _STEPS).astype(np.intp)
    return np.asarray(_colours()[places])


def write_plain_preview(path: Path, depth_m: Values, *, overwrite: bool = False) -> None:
    """Write the colours of `plain_preview` to a PNG file, in a tenth of the time of a figure.

    Below the picture is the scale, with its nearest and farthest depth in metres.

    Parameters
    ----------
    path
        File to write.
    depth_m
        Depth (rows, cols) in metres; NaN and 0 are no depth.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        When `depth_m` is not an image.
    OutputError
        When the file cannot be written, or exists and `overwrite` is not set.
    """
    import cv2

    colours = np.vstack([plain_preview(depth_m), _scale_strip(depth_m)])
    picture = np.ascontiguousarray(colours[..., ::-1])
    _, encoded = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    write_bytes(path, encoded.tobytes(), overwrite=overwrite)


def _scale_strip(depth_m: Values) -> NDArray[np.uint8]:
    """Strip (rows, cols, 3) of colours from near to far, with its ends if there is room."""
    import cv2

    ends_m = scale_m(depth_m[np.isfinite(depth_m) & (depth_m > 0)])
    places = np.linspace(0, _STEPS - 1, depth_m.shape[1]).astype(np.intp)
    strip = np.repeat(_colours()[places][np.newaxis], _STRIP_PX, axis=0)
    font, low, high = cv2.FONT_HERSHEY_SIMPLEX, f"{ends_m[0]:.3g} m", f"{ends_m[1]:.3g} m"
    (width, _), _ = cv2.getTextSize(high, font, _TEXT_SCALE, 1)
    if depth_m.shape[1] > 3 * width:
        cv2.putText(strip, low, (3, _TEXT_ROW), font, _TEXT_SCALE, (0, 0, 0), 1, cv2.LINE_AA)
        at = depth_m.shape[1] - width - 3, _TEXT_ROW
        cv2.putText(strip, high, at, font, _TEXT_SCALE, (255, 255, 255), 1, cv2.LINE_AA)
    return strip


@cache
def _colours() -> NDArray[np.uint8]:
    """Table of colours from near to far, and the colour of no depth after them."""
    import cv2

    steps = np.arange(_STEPS, dtype=np.uint8)[::-1, np.newaxis]
    levels = cv2.applyColorMap(steps, cv2.COLORMAP_VIRIDIS)[:, 0, ::-1]
    return np.vstack([levels, _NO_DEPTH])


def write_preview(path: Path, depth_m: Values, *, title: str = "", overwrite: bool = False) -> None:
    """Write the figure of `plot_preview` to a file.

    Parameters
    ----------
    path
        File to write; its suffix (.png, .pdf, .svg) chooses the format.
    depth_m
        Depth (rows, cols) in metres; NaN and 0 are no depth.
    title
        Title above the image.
    overwrite
        Whether an existing file may be replaced.

    Raises
    ------
    InputError
        When `depth_m` is not an image, or the suffix is unknown.
    OutputError
        When the file cannot be written, or exists and `overwrite` is not set.
    """
    save_figure(plot_preview(depth_m, title), path, overwrite=overwrite)


def _new_figure(aspect: float) -> "tuple[Figure, Axes, Axes]":
    """Figure with axes for an image of this height over width, and axes for its colour bar."""
    from matplotlib.figure import Figure

    width = min(_WIDTH_IN, _TALLEST_IN / aspect)
    height = max(width * aspect, _LOWEST_IN)
    whole = width + _EDGE_IN + _BAR_ROOM_IN, height + _EDGE_IN + _TITLE_IN
    figure = Figure(figsize=whole)
    axes, bar_axes = (
        figure.add_axes((x / whole[0], _EDGE_IN / whole[1], wide / whole[0], height / whole[1]))
        for x, wide in ((_EDGE_IN, width), (_EDGE_IN + width + _BAR_IN, _BAR_IN))
    )
    return figure, axes, bar_axes


def _add_bar(shown: "AxesImage", axes: "Axes", known: Values) -> None:
    """Draw the colour bar, with a pointed end where depths exceed the scale."""
    ends = known.min() < (shown.norm.vmin or 0), known.max() > (shown.norm.vmax or np.inf)
    extend = ("neither", "max", "min", "both")[2 * int(ends[0]) + int(ends[1])]
    bar = axes.figure.colorbar(shown, cax=axes, extend=extend, extendfrac=0.03)
    bar.set_label("depth (m)")
    set_depth_ticks(bar)


def preview_norm(depth_m: Values) -> "Normalize":
    """Logarithmic colour scale of the depths that are known, without outliers."""
    from matplotlib.colors import LogNorm

    return LogNorm(*scale_m(depth_m[np.isfinite(depth_m) & (depth_m > 0)]))


def scale_m(known_m: Values) -> tuple[float, float]:
    """Nearest and farthest depth of the colour scale, of the depths that are known."""
    if not known_m.size:
        return 1.0, 2.0
    low, high = np.percentile(known_m, _SCALE_PERCENTILES)
    if high < 1.02 * low:  # a plane: do not stretch its noise over all colours
        middle = float(np.sqrt(low * high))
        low, high = middle / 1.01, middle * 1.01
    return float(low), float(high)
