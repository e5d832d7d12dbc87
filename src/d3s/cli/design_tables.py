"""Tables and sentences of `d3s design` for the terminal."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.search import Search


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
    table = _right(
        *("depth", "error", "sigma", "noise", "model", "stereo", "defocus", "bound"),
        *("shift", "blur", "kept"),
        caption="Depth in m, errors in mm: mean absolute error, sigma, its parts by noise and by "
        "the model of the blur, sigma by stereo and by defocus alone, least possible sigma; "
        "disparity (shift) and blur radii of both views in px; textured pixels with a depth.",
        padding=0,
    )
    for row in report.depth_rows():
        table.add_row(*row)
    return table


def _answers(search: "Search") -> "Table":
    """Table of the answers, one column each."""
    from d3s.lab.design.report import answer_cells

    table = _right("", *(one.goal for one in search.answers))
    columns = [answer_cells(one) for one in search.answers]
    for title in columns[0]:
        table.add_row(title, *(one[title] for one in columns))
    return table


def _front(search: "Search") -> "Table":
    from d3s.lab.design.report import answer_cells

    table = _right("size (mm)", "light (um2)", "reaches (m)", "sensor", "f (mm)", "f/", "B (mm)")
    table.title = "None is smaller, brighter and reaches farther than another"
    titles = "longest side (mm)", "light (um2)", "reaches (m)", "sensor", "focal length (mm)"
    for one in map(answer_cells, search.front):
        table.add_row(*(one[title] for title in (*titles, "f-number", "baseline (mm)")))
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
