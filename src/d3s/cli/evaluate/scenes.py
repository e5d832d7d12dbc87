"""`d3s evaluate scenes`: random scenes with edges and tilts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.output import Force, Quiet
from d3s.cli.sweep import Workers, say_files, sweep_run
from d3s.cli.units import length_m

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.evaluate.scenes import SceneSummary


def scenes(
    method: options.Method = None,
    count: Annotated[
        int | None, typer.Option("--scenes", help="How many random scenes; 30 if left.")
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(parser=length_m, metavar="LENGTH", help="Smallest depth; 0.4 m if left."),
    ] = None,
    far: Annotated[
        float | None,
        typer.Option(parser=length_m, metavar="LENGTH", help="Largest depth; 1.9 m if left."),
    ] = None,
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
    """Try methods on random scenes with edges and tilts, all on the same images.

    Writes scenes.csv, with a row for each scene, region and method, scenes_duels.csv, with each
    method against sgbm and bm on the pixels that both retained, and scenes.json, with all
    parameters and the summary. If it is stopped, the same command goes on where it was.
    """
    from d3s.evaluate.scenes import SceneSweep, evaluate_scenes
    from d3s.evaluate.tables import result_files, write_results

    sweep = options.sweep_of(
        SceneSweep,
        quick=quick,
        psf=psf,
        count=count,
        nearest_m=near,
        farthest_m=far,
        patterns=patterns,
        noise=noise,
        shape=shape,
        seed=seed,
    )
    contenders, camera = options.contenders_of(method), options.rig_of(rig)
    files = result_files("scenes", output)
    with sweep_run(files, len(sweep.places), workers=workers, force=force, quiet=quiet) as run:
        results = evaluate_scenes(contenders, sweep=sweep, rig=camera, **run)
        write_results(results, output, overwrite=force)
    if not quiet:
        _print(results.summary())
        say_files(files)


def _print(summaries: "Sequence[SceneSummary]") -> None:
    tables.show(
        *tables.abreast(summaries, _of_all),
        *tables.abreast(summaries, _by_region),
        notes="MAE: over all retained pixels, also those that the right view does not show; the "
        "mean over scenes is over those with a depth, and the worst is inf if one that holds depth "
        "was left without any. "
        "Density: retained textured pixels over textured ones. Bound: Cramér-Rao, of a window of "
        "31 x 31 px. Ratio: of the MAE on the pixels that both retained. Gain: what leaving out "
        "the least trusted pixels wins, of what an oracle would win.",
    )


def _of_all(summaries: "Sequence[SceneSummary]") -> "Table":
    table = tables.figures("All scenes", (one.method for one in summaries))
    table.add_row("MAE (cm)", *(tables.centimetres(one.mae_m) for one in summaries))
    table.add_row("mean over scenes", *(tables.centimetres(one.mean_mae_m) for one in summaries))
    table.add_row(
        "scenes with a depth",
        *(f"{one.scenes_with_depth} of {one.scenes}" for one in summaries),
    )
    table.add_row("worst scene", *(tables.centimetres(one.worst_mae_m) for one in summaries))
    table.add_row("density", *(tables.percent(one.density) for one in summaries))
    table.add_row("MAE / bound", *(tables.number(one.mae_over_bound, ".2f") for one in summaries))
    for rival in dict.fromkeys(row.rival for one in summaries for row in one.rivals):
        ratios = [{row.rival: row.ratio_common for row in one.rivals} for one in summaries]
        cells = (tables.number(one[rival], ".2f") if rival in one else "" for one in ratios)
        table.add_row(tables.escaped(f"ratio to {rival}"), *cells)
    table.add_row("gain by sigma", *(tables.percent(one.sigma_gain) for one in summaries))
    table.add_row("gain by confidence", *(tables.percent(one.confidence_gain) for one in summaries))
    table.add_row("CPU seconds a pair", *(f"{one.time_s:.2f}" for one in summaries))
    return table


def _by_region(summaries: "Sequence[SceneSummary]") -> "Table":
    from rich.table import Table

    table = Table(title="By region: MAE (cm), and the share that is retained (%)")
    table.add_column("region", no_wrap=True)
    table.add_column("of all\npixels", justify="right")
    for one in summaries:
        table.add_column(f"{tables.escaped(one.method)}\nMAE", justify="right", overflow="fold")
        table.add_column("\nkept", justify="right")
    for rows in zip(*(one.regions for one in summaries), strict=True):
        cells = [
            cell
            for row in rows
            for cell in (tables.centimetres(row.mae_m), tables.number(100 * row.retained, ".1f"))
        ]
        table.add_row(rows[0].region, tables.number(100 * rows[0].share, ".1f"), *cells)
    return table
