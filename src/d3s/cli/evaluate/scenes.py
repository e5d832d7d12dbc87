"""`d3s evaluate scenes`: random scenes with edges and tilts."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import tables
from d3s.cli.evaluate.sweep_command import sweep_command
from d3s.cli.simulate import SurfaceName
from d3s.cli.units import length_m

if TYPE_CHECKING:
    from rich.table import Table

_Count = Annotated[int | None, typer.Option("--scenes", help="How many random scenes; 30 if left.")]
_Near = Annotated[
    float | None,
    typer.Option(
        "--near", parser=length_m, metavar="LENGTH", help="Smallest depth; 0.4 m if left."
    ),
]
_Far = Annotated[
    float | None,
    typer.Option("--far", parser=length_m, metavar="LENGTH", help="Largest depth; 1.9 m if left."),
]
_Surfaces = Annotated[
    SurfaceName | None,
    typer.Option(
        help="Surfaces of the scenes: textured, or weak, with plain and weakly textured ones; "
        "textured if left.",
        show_default=False,
    ),
]


def show(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    tables.show(
        *tables.split_to_width(summaries, _of_all),
        *tables.split_to_width(summaries, _by_region),
        notes="MAE: over all retained pixels, also those that the right view does not show; the "
        "mean over scenes is over those with a depth, and the worst is inf if one that holds depth "
        "was left without any. "
        "Density: retained textured pixels over textured ones. Bound: Cramér-Rao, of a window of "
        "31 x 31 px. Ratio: of the MAE on the pixels that both retained. Gain: what leaving out "
        "the least trusted pixels wins, of what an oracle would win. Beside objects: background "
        "within 25 px of an object before it, with its depth, and of these without the "
        "flag of a depth carried over from elsewhere; shares of all of it.",
    )


def _of_all(summaries: tables.Lines) -> "Table":
    rows: list[tables.Figure] = [
        ("MAE (cm)", lambda one: tables.centimetres(one["mae_m"])),
        ("mean over scenes", lambda one: tables.centimetres(one["mean_mae_m"])),
        ("scenes with a depth", lambda one: f"{one['scenes_with_depth']} of {one['scenes']}"),
        ("worst scene", lambda one: tables.centimetres(one["worst_mae_m"])),
        ("density", lambda one: tables.percent(one["density"])),
        ("retained, of all pixels", lambda one: tables.percent(one["retained"])),
        ("error above 2 cm", lambda one: tables.percent(one["bad_2cm"])),
        ("MAE / bound", lambda one: tables.number(one["mae_over_bound"], ".2f")),
        *((f"ratio to {rival}", partial(_ratio, rival)) for rival in tables.rivals(summaries)),
        ("within 1 sigma", lambda one: tables.percent(one["coverage"])),
        ("within 3 sigma", lambda one: tables.percent(one["coverage_3"])),
        ("gain by sigma", lambda one: tables.percent(one["sigma_gain"])),
        ("gain by confidence", lambda one: tables.percent(one["confidence_gain"])),
        ("beside objects: retained", lambda one: tables.percent(one["beside_retained"])),
        ("with the object's depth", lambda one: tables.percent(one["fattened"])),
        ("and not flagged", lambda one: tables.percent(one["fattened_unflagged"])),
        ("CPU seconds a pair", lambda one: f"{one['time_s']:.2f}"),
    ]
    return tables.figures("All scenes", {one["method"]: one for one in summaries}, rows)


def _ratio(rival: str, summary: Mapping[str, Any]) -> str:
    ratios = {row["rival"]: row["ratio_common"] for row in summary["rivals"]}
    return tables.number(ratios[rival], ".2f") if rival in ratios else ""


def _by_region(summaries: tables.Lines) -> "Table":
    from rich.table import Table

    title = "By region: MAE (cm), share that is retained (%), and errors within 1 sigma (%)"
    table = Table(title=title)
    table.add_column("region", no_wrap=True)
    table.add_column("of all\npixels", justify="right")
    for one in summaries:
        table.add_column(f"{tables.escaped(one['method'])}\nMAE", justify="right", overflow="fold")
        table.add_column("\nkept", justify="right")
        table.add_column("\n1 sigma", justify="right")
    for rows in zip(*(one["regions"] for one in summaries), strict=True):
        cells = [
            cell
            for row in rows
            for cell in (
                tables.centimetres(row["mae_m"]),
                tables.number(100 * row["retained"], ".1f"),
                tables.number(100 * row["coverage"], ".0f"),
            )
        ]
        table.add_row(rows[0]["region"], tables.number(100 * rows[0]["share"], ".1f"), *cells)
    return table


scenes = sweep_command(
    "scenes",
    """Try methods on random scenes with edges and tilts, all on the same images.

    Writes scenes.csv, with a row for each scene, region and method, scenes_duels.csv, with each
    method against sgbm and bm on the pixels that both retained, and scenes.json, with all
    parameters and the summary. If it is stopped, the same command goes on where it was.
    """,
    show,
    sweep_options={
        "count": (_Count, None),
        "nearest_m": (_Near, None),
        "farthest_m": (_Far, None),
        "surfaces": (_Surfaces, None),
    },
)
