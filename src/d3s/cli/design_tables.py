"""Tables and sentences of `d3s design` for the terminal."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.search import Answer, Search

_ROWS = 9  # depths of the table


def tell(report: "DesignReport", *, show_tolerances: bool) -> None:
    """Print a design."""
    from rich.console import Console

    console = Console()
    if report.search is not None:
        console.print(_answers(report.search))
        console.print(_front(report.search))
    console.print(_facts(report))
    console.print(_depths(report))
    if report.measured:
        console.print(_measured(report))
    if show_tolerances:
        console.print(_tolerances(report))


def refusal(search: "Search") -> str:
    """Sentence for a wish that no camera meets."""
    if not search.relaxed:
        return (
            f"No camera meets this wish, of {search.tried} that were tried, nor with a single wish "
            "relaxed. Relax two: a smaller reach and a larger error."
        )
    options = "; or ".join(search.relaxed.values())
    return f"No camera meets this wish, of {search.tried} that were tried. Relax one: {options}."


def remarks(report: "DesignReport") -> list[str]:
    """Sentences for the top of a design file."""
    prediction, found = report.prediction, report.working_range_m
    ends = "none" if found is None else f"{found[0]:.3g} to {found[1]:.3g} m"
    return [
        f"Predicted working range for {report.wish}: {ends}, with "
        f"{100 * prediction.noise_sigma:.2g} % noise; perfect lenses."
    ]


def _facts(report: "DesignReport") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(report.prediction.camera.name), show_header=False)
    for name, value in report.facts():
        table.add_row(name, escape(value))
    return table


def _right(*titles: str, caption: str = "", padding: int = 1) -> "Table":
    """Table whose columns are aligned right, without lines between them, to fit 80 characters."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, padding, 0, 0), caption=caption or None)
    for title in titles:
        table.add_column(title, justify="right")
    return table


def _depths(report: "DesignReport") -> "Table":
    prediction = report.prediction
    table = _right(
        *("depth", "error", "sigma", "noise", "model", "stereo", "defocus", "bound"),
        *("shift", "blur", "kept"),
        caption="Depth in m, errors in mm: mean absolute error, sigma, its parts by noise and by "
        "the model of the blur, sigma by stereo and by defocus alone, least possible sigma; "
        "disparity (shift) and blur radii of both views in px; textured pixels with a depth.",
        padding=0,
    )
    stereo, defocus = prediction.by_cue_m
    places = np.unique(np.linspace(0, prediction.depth_m.size - 1, _ROWS).astype(int))
    for i in places:
        blur = ", ".join(f"{one[i]:.1f}" for one in prediction.blur_radius_px)
        lengths = (
            prediction.mae_m,
            prediction.sigma_m,
            prediction.noise_m,
            prediction.misfit_m,
            stereo,
            defocus,
            prediction.bound.total_m,
        )
        table.add_row(
            f"{prediction.depth_m[i]:.3g}",
            *(_millimetres(one[i]) for one in lengths),
            f"{prediction.disparity_px[i]:.1f}",
            blur,
            f"{prediction.density[i]:.0%}",
        )
    return table


def _millimetres(length_m: float) -> str:
    """Length in mm with three digits, and no more than three decimals."""
    mm = 1e3 * length_m
    return f"{mm:.3f}" if mm < 0.1 else f"{mm:.3g}"


def _answers(search: "Search") -> "Table":
    """Table of the answers, one column each."""
    table = _right("", *(one.goal for one in search.answers))
    rows: dict[str, Callable[[Answer], str]] = {
        "sensor": lambda one: one.sensor,
        "lens": lambda one: one.lens or "any",
        "focal length (mm)": lambda one: f"{1e3 * one.camera.focal_length_m:.2f}",
        "f-number": lambda one: f"{one.camera.f_number:.2f}",
        "baseline (mm)": lambda one: f"{1e3 * one.camera.optics.baseline_m:.2f}",
        "focus (m)": lambda one: ", ".join(
            f"{focus:.3g}" for focus in one.camera.optics.focus_distances_m
        ),
        "longest side (mm)": lambda one: f"{1e3 * one.size_m:.1f}",
        "light (um2)": lambda one: f"{one.light_um2:.3g}",
        "field (degrees)": lambda one: f"{math.degrees(one.field_rad):.0f}",
        "error over wish": lambda one: f"{one.worst:.2f}",
        "reaches (m)": lambda one: f"{one.farthest_m:.2f}",
    }
    for title, cell in rows.items():
        table.add_row(title, *(cell(one) for one in search.answers))
    return table


def _front(search: "Search") -> "Table":
    table = _right("size (mm)", "light (um2)", "reaches (m)", "sensor", "f (mm)", "f/", "B (mm)")
    table.title = "None is smaller, brighter and reaches farther than another"
    for one in search.front:
        camera = one.camera
        table.add_row(
            f"{1e3 * one.size_m:.1f}",
            f"{one.light_um2:.3g}",
            f"{one.farthest_m:.2f}",
            one.sensor,
            f"{1e3 * camera.focal_length_m:.2f}",
            f"{camera.f_number:.2f}",
            f"{1e3 * camera.optics.baseline_m:.2f}",
        )
    return table


def _measured(report: "DesignReport") -> "Table":
    prediction = report.prediction
    table = _right("depth (m)", "measured (mm)", "predicted (mm)", "ratio", "kept", "")
    for one in report.measured:
        predicted = float(np.interp(one.depth_m, prediction.depth_m, prediction.mae_m))
        table.add_row(
            f"{one.depth_m:.3g}",
            f"{1e3 * one.mae_m:.3g}",
            f"{1e3 * predicted:.3g}",
            f"{one.mae_m / predicted:.2f}",
            f"{one.density:.0%}",
            "meets the wish" if one.meets(report.wish) else "misses the wish",
        )
    return table


def _tolerances(report: "DesignReport") -> "Table":
    from d3s.lab.design.report import tolerance_cells

    table = _right(
        *("cause", "amount", "before", "calibrated", "checked", "loosest"),
        caption="Errors before and after a calibration and after d3s check, at the depth where "
        "they are largest compared with the wish; the loosest amount keeps it after a calibration.",
        padding=0,
    )
    table.columns[0].justify = "left"
    for one in report.tolerances:
        table.add_row(*tolerance_cells(one))
    return table
