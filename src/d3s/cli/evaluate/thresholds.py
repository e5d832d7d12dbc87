"""`d3s evaluate thresholds`: what a stricter filter buys."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.output import Force, Quiet
from d3s.cli.sweep import Workers, say_files, sweep_run

if TYPE_CHECKING:
    from d3s.evaluate.thresholds import ThresholdSummary


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


def thresholds(
    method: options.Method = None,
    confidence: Annotated[
        Any,
        typer.Option(
            parser=_confidences,
            metavar="NUMBER,NUMBER...",
            help="Confidences that a depth must reach.",
        ),
    ] = "0,0.25,0.5,0.75,0.9",
    depths: options.Depths = None,
    patterns: options.Patterns = None,
    noise: options.Noise = None,
    shape: options.Shape = None,
    psf: options.Psf = None,
    seed: options.Seed = None,
    rig: options.RigFile = None,
    output: options.Output = Path("evaluation"),
    workers: Workers = None,
    quick: options.Quick = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """See what a stricter filter buys: error and density on planes over thresholds of confidence.

    The methods' own filters are off. Writes thresholds.csv, with a row for each plane, method and
    threshold, and thresholds.json, with all parameters and the summary. If it is stopped, the same
    command goes on where it was.
    """
    from d3s.evaluate.planes import PlaneSweep
    from d3s.evaluate.tables import result_files, write_results
    from d3s.evaluate.thresholds import evaluate_thresholds

    sweep = options.sweep_of(
        PlaneSweep,
        quick=quick,
        psf=psf,
        depths_m=depths,
        patterns=patterns,
        noise=noise,
        shape=shape,
        seed=seed,
    )
    contenders, camera = options.contenders_of(method), options.rig_of(rig)
    files = result_files("thresholds", output)
    with sweep_run(files, len(sweep.places), workers=workers, force=force, quiet=quiet) as run:
        results = evaluate_thresholds(contenders, confidence, sweep=sweep, rig=camera, **run)
        write_results(results, output, overwrite=force)
    if not quiet:
        _print(results.summary())
        say_files(files)


def _print(summaries: "Sequence[ThresholdSummary]") -> None:
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
            tables.escaped(one.method),
            f"{one.threshold:g}",
            tables.number(100 * one.density, ".1f"),
            tables.centimetres(one.mae_m),
            tables.centimetres(one.median_m),
            tables.ends(one.range_m),
        )
    tables.show(
        table,
        notes="Density: of the judged pixels. MAE: of all of them together. Median: the mean over "
        "the planes with a depth. Range: of an MAE below 1 cm on every texture.",
    )
