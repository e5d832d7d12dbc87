"""`d3s evaluate thresholds`: planes over thresholds of confidence."""

from typing import Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.evaluate.sweep_command import sweep_command


def _confidences(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 <= one <= 1 for one in numbers):
        raise typer.BadParameter(
            f"{text!r} must be numbers from 0 to 1 with commas between, such as 0,0.5,0.8."
        )
    return numbers


_Confidences = Annotated[
    Any,
    typer.Option(
        "--confidence",
        parser=_confidences,
        metavar="NUMBER,NUMBER...",
        help="Confidences that a depth must reach.",
    ),
]


def show(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    from rich.table import Table

    table = Table(title="Over all planes, by the confidence that a depth must reach")
    for name in ("method", "confidence", "density (%)", "MAE (cm)", "median (cm)", "range (m)"):
        is_name = name == "method"
        table.add_column(
            name if is_name else name.replace(" ", "\n"),
            justify="left" if is_name else "right",
            no_wrap=not is_name,
            overflow="fold",
        )
    for one in summaries:
        table.add_row(
            tables.escaped(one["method"]),
            f"{one['threshold']:g}",
            tables.number(100 * one["density"], ".1f"),
            tables.centimetres(one["mae_m"]),
            tables.centimetres(one["median_m"]),
            tables.ends(one["range_m"]),
        )
    tables.show(
        table,
        notes="Density: of the judged pixels. MAE: of all of them together. Median: the mean over "
        "the planes with a depth. Range: of an MAE below 1 cm on every texture.",
    )


thresholds = sweep_command(
    "thresholds",
    """See what a stricter filter buys: error and density on planes over thresholds of confidence.

    The methods' own filters are off. Writes thresholds.csv, with a row for each plane, method and
    threshold, and thresholds.json, with all parameters and the summary. If it is stopped, the same
    command goes on where it was.
    """,
    show,
    sweep_options={"depths_m": (options.Depths, None)},
    settings={"thresholds": (_Confidences, "0,0.25,0.5,0.75,0.9")},
)
