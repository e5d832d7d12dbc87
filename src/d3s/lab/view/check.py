"""Report of a check as one self-contained HTML page, with its numbers as JSON beside it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.check.check_report import CheckReport, Entry
from d3s.check.drift_quantities import KINDS, DriftKind
from d3s.lab.view.page import figure_block, json_block, render, write_with_numbers
from d3s.lab.view.plots import new_axes
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GRADES = {"steady": "good", "drifted": "bad", "unknown": "usable"}
_TRENDS = ("rows_px", "roll_rad", "scale", "gain", "focus_dpt", "disparity_px")
_CELLS = 9  # of the maps, along the longer side
_FEWEST = 3  # places of a cell that is drawn
_TIMES = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))


def write_check(
    report: CheckReport, path: Path, *, log: Sequence[Entry] = (), overwrite: bool = False
) -> Path:
    """Write the page, and its numbers as JSON beside it; returns the path of the JSON file.

    `log` are checks of the same camera, oldest first and this one last, for the trend. Files that
    exist are replaced only if told to.
    """
    return write_with_numbers(path, check_page(report, log), report.as_json(), overwrite=overwrite)


def check_page(report: CheckReport, log: Sequence[Entry] = ()) -> str:
    """HTML page with all figures embedded."""
    quantities = report.quantities
    return render(
        "check.html",
        report=report,
        grade=_GRADES[report.verdict],
        quantities=[
            (
                _title(one.kind),
                *(one.shown(part) for part in ("value", "sigma", "limit")),
                one.state,
            )
            for one in quantities
        ],
        kinds=[_GRADES[one.state] for one in quantities],
        unknown=[(one.kind.title, one.reason) for one in quantities if one.reason],
        checks=len(log),
        trends=_trends(report, log),
        maps=_maps(report),
        history=_history(report),
        frames=_frames(report),
        numbers=json_block(report.as_json(), "numbers"),
    )


def _title(kind: DriftKind) -> str:
    return f"{kind.title} ({kind.unit})" if kind.unit else kind.title


def _trends(report: CheckReport, log: Sequence[Entry]) -> list[str]:
    """Figures of the quantities that several checks know."""
    limits = {one.name: one.limit for one in report.quantities}
    names = [
        name
        for name in _TRENDS
        if name in limits and sum(one.values.get(name) is not None for one in log) > 1
    ]
    return [
        figure_block(plot_trend(name, limits[name], log), KINDS[name].title.capitalize())
        for name in names
    ]


def plot_trend(name: str, limit: float, log: Sequence[Entry]) -> "Figure":
    """Change of one quantity over the time of the checks."""
    kind = KINDS[name]
    known = [one for one in log if one.values.get(name) is not None]
    times = [datetime.fromisoformat(one.made) for one in known]
    values = kind.factor * np.array([one.values[name] for one in known], dtype=float)
    sigmas = kind.factor * np.array([one.sigmas.get(name) or 0.0 for one in known], dtype=float)
    digests = [one.rig_sha256 for one in known]
    figure, axes = new_axes(5, 3)
    seconds = np.array([(one - times[0]).total_seconds() for one in times])
    unit, size_s = next((one for one in _TIMES if seconds.max() >= 2 * one[1]), _TIMES[-1])
    for number, digest in enumerate(dict.fromkeys(digests)):
        own = np.array([one == digest for one in digests])
        style: dict[str, Any] = {"fmt": "o-", "capsize": 3, "color": f"C{number}"}
        axes.errorbar(seconds[own] / size_s, values[own], np.abs(sigmas[own]), **style)
    for side in (-1, 1):
        axes.axhline(side * kind.factor * limit, linestyle="--", linewidth=1, color="0.5")
    axes.axhline(0, linewidth=0.8, color="0.7")
    axes.set_xlabel(f"{unit} since {times[0].isoformat(sep=' ', timespec='minutes')[:16]}")
    axes.set_ylabel(_title(kind))
    return figure


def _maps(report: CheckReport) -> list[str]:
    """Figures of rows and light over the view."""
    found = report.map
    if found is None or found.x_px.size < _FEWEST:
        return []
    rows = plot_map(report.shape, (found.x_px, found.y_px, found.rows_px), "rows (px)")
    light = plot_map(report.shape, (found.x_px, found.y_px, 100 * found.light), "light (%)")
    return [
        figure_block(rows, "Rows by which the right view lies lower"),
        figure_block(light, "Light of the right view, above that of the left one"),
    ]


def plot_map(
    shape: tuple[int, int], places: tuple[FloatArray, FloatArray, FloatArray], label: str
) -> "Figure":
    """Medians of a value over the cells of a view."""
    x, y, values = places
    side = max(shape) / _CELLS
    down, across = (max(round(size / side), 1) for size in shape)
    row = np.clip(((y / shape[0] + 0.5) * down).astype(int), 0, down - 1)
    col = np.clip(((x / shape[1] + 0.5) * across).astype(int), 0, across - 1)
    table = np.full((down, across), np.nan)
    for i, j in np.ndindex(down, across):
        own = values[(row == i) & (col == j)]
        if own.size >= _FEWEST:
            table[i, j] = np.median(own)
    known = np.abs(table[np.isfinite(table)])
    reach = max(float(known.max()) if known.size else 0.0, 1e-6)
    figure, axes = new_axes(5, 3.6)
    extent = (-shape[1] / 2, shape[1] / 2, shape[0] / 2, -shape[0] / 2)
    image = axes.imshow(table, extent=extent, cmap="RdBu_r", vmin=-reach, vmax=reach)
    figure.colorbar(image, ax=axes, label=label)
    axes.set_xlabel("x from the middle (px)")
    axes.set_ylabel("y (px)")
    return figure


def _history(report: CheckReport) -> list[tuple[str, str, str]]:
    """Rows of what the rig was made and mended by: when, what, and what was taken out."""
    calibration = report.rig.calibration
    if calibration is None:
        return []
    rows = [(calibration.provenance.created, "calibrated", "")]
    for one in calibration.history or ():
        drift = ", ".join(_shown_drift(name, value) for name, value in one.drift.items())
        rows.append((one.made, one.reason, drift))
    return rows


def _shown_drift(name: str, value: float) -> str:
    kind = KINDS.get(name)
    if kind is None:
        return f"{name} {value:g}"
    return f"{kind.title} {kind.factor * value:+.{kind.digits}f} {kind.unit}".rstrip()


def _frames(report: CheckReport) -> list[tuple[str, ...]]:
    """Rows of the frames: name, distance, places, pixels with a depth, rows and light."""
    return [
        (
            one.name,
            "" if one.distance_m is None else f"{one.distance_m:g}",
            f"{one.blocks}",
            f"{100 * one.density:.0f}",
            f"{one.rows_px:+.3f}" if np.isfinite(one.rows_px) else "",
            f"{100 * one.light:+.2f}" if np.isfinite(one.light) else "",
        )
        for one in report.frames
    ]
