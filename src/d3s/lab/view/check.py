"""Report of a check as one self-contained HTML page, with its numbers as JSON beside it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.check.check_report import CheckReport, Entry
from d3s.check.drift_quantities import KINDS, DriftKind
from d3s.lab.view.page import (
    figure_block,
    grid,
    heading,
    html_page,
    html_table,
    json_block,
    verdict_block,
    words,
    write_with_numbers,
)
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
    return html_page(f"Check of {report.rig.name}", _parts(report, log))


def _parts(report: CheckReport, log: Sequence[Entry]) -> Iterator[str]:
    yield heading(f"Check of {report.rig.name}", 1)
    rows, cols = report.shape
    count = len(report.frames)
    yield words(
        f"{count} frame{'s' if count > 1 else ''}, views of {cols} x {rows} px. Made {report.made} "
        f"by d3s {report.version}.",
        "small",
    )
    grade = _GRADES[report.verdict]
    yield verdict_block(grade, report.summary, report.remarks, report.verdict)
    yield from _quantities_part(report)
    yield from _trend_part(report, log)
    yield from _maps_part(report)
    yield from _history_part(report)
    yield from _frames_part(report)
    yield json_block(report.as_json(), "numbers")


def _title(kind: DriftKind) -> str:
    return f"{kind.title} ({kind.unit})" if kind.unit else kind.title


def _quantities_part(report: CheckReport) -> Iterator[str]:
    rows = [
        (_title(one.kind), one.shown("value"), one.shown("sigma"), one.shown("limit"), one.state)
        for one in report.quantities
    ]
    headings = ("quantity", "change", "sigma", "limit", "")
    kinds = [_GRADES[one.state] for one in report.quantities]
    yield html_table(headings, rows, numbers=(1, 2, 3), kinds=kinds)
    yield words(
        "Change since the calibration, its standard deviation, and the change that matters. A "
        "quantity has drifted if it is beyond its limit and beyond 4 sigma; it is unknown if a "
        "drift of 4 limits could hide.",
        "small",
    )
    reasons = [(one.kind.title, one.reason) for one in report.quantities if one.reason]
    if reasons:
        yield html_table(("unknown", "why"), reasons)


def _trend_part(report: CheckReport, log: Sequence[Entry]) -> Iterator[str]:
    limits = {one.name: one.limit for one in report.quantities}
    names = [
        name
        for name in _TRENDS
        if name in limits and sum(one.values.get(name) is not None for one in log) > 1
    ]
    if not names:
        return
    yield heading("Trend")
    yield words(
        f"{len(log)} checks of this camera. Bars: one sigma. Dashed: the change that "
        "matters. Another colour: another rig file, so the change counts from there."
    )
    yield grid(
        figure_block(plot_trend(name, limits[name], log), KINDS[name].title.capitalize())
        for name in names
    )


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


def _maps_part(report: CheckReport) -> Iterator[str]:
    found = report.map
    if found is None or found.x_px.size < _FEWEST:
        return
    yield heading("Over the view")
    yield words(
        "Medians over all frames, before anything is mended. Rows that grow from side to side are "
        "a roll, from top to bottom a scale."
    )
    rows = plot_map(report.shape, (found.x_px, found.y_px, found.rows_px), "rows (px)")
    light = plot_map(report.shape, (found.x_px, found.y_px, 100 * found.light), "light (%)")
    below = figure_block(rows, "Rows by which the right view lies lower")
    above = figure_block(light, "Light of the right view, above that of the left one")
    yield grid([below, above])


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


def _history_part(report: CheckReport) -> Iterator[str]:
    calibration = report.rig.calibration
    if calibration is None:
        return
    yield heading("History of the rig")
    rows = [(calibration.provenance.created, "calibrated", "")]
    for one in calibration.history or ():
        drift = ", ".join(_shown_drift(name, value) for name, value in one.drift.items())
        rows.append((one.made, one.reason, drift))
    yield html_table(("when", "what", "taken out"), rows)


def _shown_drift(name: str, value: float) -> str:
    kind = KINDS.get(name)
    if kind is None:
        return f"{name} {value:g}"
    return f"{kind.title} {kind.factor * value:+.{kind.digits}f} {kind.unit}".rstrip()


def _frames_part(report: CheckReport) -> Iterator[str]:
    yield heading("Frames")
    rows = [
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
    headings = ("frame", "distance (m)", "places", "have a depth (%)", "rows (px)", "light (%)")
    yield html_table(headings, rows, numbers=(1, 2, 3, 4, 5))
    if report.notes:
        yield from (words(note, "small") for note in report.notes)
