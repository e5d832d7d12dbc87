"""`d3s evaluate planes`: planes over depth and texture."""

from typing import TYPE_CHECKING

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
    from d3s.evaluate.planes import BEYOND_M

    table = tables.figures("All planes", (one["method"] for one in summaries))
    table.add_row("range (m)", *(tables.ends(one["range_m"]) for one in summaries))
    table.add_row("density in the range", *(tables.percent(one["density"]) for one in summaries))
    table.add_row(
        "of its worst depth", *(tables.percent(one["worst_density"]) for one in summaries)
    )
    table.add_row(
        "MAE / bound", *(tables.number(one["mae_over_bound"], ".2f") for one in summaries)
    )
    for rival in dict.fromkeys(row["rival"] for one in summaries for row in one["rivals"]):
        for beyond_m, words in ((0.0, ""), (BEYOND_M, f" beyond {BEYOND_M:g} m")):
            cells = (_worst(one["rivals"], rival, beyond_m) for one in summaries)
            table.add_row(tables.escaped(f"worst ratio to {rival}{words}"), *cells)
    table.add_row("gain by sigma", *(tables.percent(one["sigma_gain"]) for one in summaries))
    table.add_row("fill rate", *(tables.percent(one["fill_rate"]) for one in summaries))
    table.add_row(
        "Z-accuracy, size of", *(tables.percent(one["z_accuracy"], ".2f") for one in summaries)
    )
    table.add_row(
        "plane-fit RMS", *(tables.percent(one["plane_fit_rms"], ".2f") for one in summaries)
    )
    table.add_row(
        "sub-pixel RMS", *(tables.number(one["subpixel_rms_px"], ".3f", " px") for one in summaries)
    )
    table.add_row("CPU seconds a pair", *(f"{one['time_s']:.2f}" for one in summaries))
    return table


def _worst(rows: tables.Lines, rival: str, beyond_m: float) -> str:
    ratios = [
        row["ratio_common"]
        for row in rows
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
