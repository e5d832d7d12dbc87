"""`d3s evaluate planes`: planes over depth and texture."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from d3s.cli.evaluate import options, tables
from d3s.cli.evaluate.sweep_command import sweep_command

if TYPE_CHECKING:
    from rich.table import Table


def show(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    tables.show(
        *tables.split_to_width(summaries, _over_depth),
        *tables.split_to_width(summaries, _of_all),
        notes="MAE: the mean over the textures, and that of the worst: inf if one that holds depth "
        "was left without any, which then is not in the mean. Density: retained textured pixels "
        "over textured ones. Range: of an MAE below 1 cm on every texture. Bound: "
        "Cramér-Rao, of a window of 31 x 31 px; at the bound, Gaussian errors have 0.8. Against a "
        "rival: the largest MAE ratio over depths, on the pixels that both retained. Gain: what "
        "leaving out the pixels of largest sigma wins, of what an oracle would win. Fill rate to "
        "sub-pixel RMS: as RealSense's depth quality tool has them, the median over the planes.",
    )


def _over_depth(summaries: tables.Lines) -> "Table":
    from rich.table import Table

    table = Table(title="MAE and worst MAE (cm), density (%) over depth")
    table.add_column("depth\n(m)", justify="right")
    for one in summaries:
        table.add_column(f"{tables.escaped(one['method'])}\nMAE", justify="right", overflow="fold")
        table.add_column("\nworst", justify="right")
        table.add_column("\ndens.", justify="right")
    for rows in zip(*(one["depths"] for one in summaries), strict=True):
        cells = [
            cell
            for row in rows
            for cell in (
                tables.centimetres(row["mae_m"]),
                tables.centimetres(row["worst_mae_m"]),
                tables.number(100 * row["density"], ".1f"),
            )
        ]
        table.add_row(f"{rows[0]['depth_m']:.3f}", *cells)
    return table


def _of_all(summaries: tables.Lines) -> "Table":
    from d3s.lab.evaluate.planes import BEYOND_M

    parts = ((0.0, ""), (BEYOND_M, f" beyond {BEYOND_M:g} m"))
    rows: list[tables.Figure] = [
        ("range (m)", lambda one: tables.ends(one["range_m"])),
        ("density in the range", lambda one: tables.percent(one["density"])),
        ("of its worst depth", lambda one: tables.percent(one["worst_density"])),
        ("MAE / bound", lambda one: tables.number(one["mae_over_bound"], ".2f")),
        *(
            (f"worst ratio to {rival}{words}", partial(_worst_ratio, rival, beyond_m))
            for rival in tables.rivals(summaries)
            for beyond_m, words in parts
        ),
        ("gain by sigma", lambda one: tables.percent(one["sigma_gain"])),
        ("fill rate", lambda one: tables.percent(one["fill_rate"])),
        ("Z-accuracy, size of", lambda one: tables.percent(one["z_accuracy"], ".2f")),
        ("plane-fit RMS", lambda one: tables.percent(one["plane_fit_rms"], ".2f")),
        ("sub-pixel RMS", lambda one: tables.number(one["subpixel_rms_px"], ".3f", " px")),
        ("CPU seconds a pair", lambda one: f"{one['time_s']:.2f}"),
    ]
    return tables.figures("All planes", {one["method"]: one for one in summaries}, rows)


def _worst_ratio(rival: str, beyond_m: float, summary: Mapping[str, Any]) -> str:
    ratios = [
        row["ratio_common"]
        for row in summary["rivals"]
        if row["rival"] == rival and row["depth_m"] >= beyond_m and row["common"]
    ]
    return f"{max(ratios):.2f}" if ratios else ""


planes = sweep_command(
    "planes",
    """Try methods on planes over depth and texture, all on the same images.

    Writes planes.csv, with a row for each plane and method, planes_duels.csv, with each method
    against sgbm and bm on the pixels that both retained, and planes.json, with all parameters and
    the summary. If it is stopped, the same command goes on where it was.
    """,
    show,
    sweep_options={"depths_m": (options.Depths, None)},
)
