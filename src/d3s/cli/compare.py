"""`d3s compare`: all methods on simulated planes and scenes, with a ranking."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d3s.cli.output import Force, Quiet, value_of
from d3s.cli.sweep import (
    LensName,
    Scheduler,
    Workers,
    contenders_of,
    method_option,
    say_files,
    sweep_run,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from d3s.lab.evaluate.league import League, Program, Section
    from d3s.lab.evaluate.league_tables import Column


def compare(
    method: Annotated[list[str] | None, method_option(if_left="All")] = None,
    rig: Annotated[
        Path | None,
        typer.Option(help="Rig file; the paper's prototype, tuned, if left.", show_default=False),
    ] = None,
    lens: Annotated[
        LensName,
        typer.Option(
            help="Lenses of the camera; typical ones are calibrated, and the league is smaller."
        ),
    ] = LensName.PERFECT,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the tables and the chart.")
    ] = Path("league"),
    seed: Annotated[
        int | None, typer.Option(help="Seed of the scenes and of the noise; 0 if left.")
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small league for a first look, of two minutes.")
    ] = False,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the league as JSON instead of tables.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Compare all methods on the same simulated images: planes over depth, and random scenes.

    A part of the scenes has plain and weakly textured surfaces. Three ways: at full density, with
    all filters of a method off; with its own filter, as it comes; and at a common density, where
    each keeps the same share of the pixels, those that it trusts most. Writes league.csv,
    league_pairs.csv, league.json and league.png. If it is stopped, the same command goes on where
    it was. With --lens typical the images are raw frames of a camera with typical lenses, split by
    its calibrated rig; there are no weak scenes but planes at the sides of the field, and the files
    begin with league_typical.
    """
    from d3s.estimate.methods import methods
    from d3s.lab.evaluate.league import compare as compare_methods
    from d3s.lab.evaluate.league import default_rig
    from d3s.lab.evaluate.league_tables import (
        league_document,
        league_files,
        write_league,
    )
    from d3s.rig import Rig

    contenders = contenders_of(method, methods())
    program = _program(lens, rig, quick=quick)
    with value_of("--seed"):
        program = program if seed is None else program.with_seed(seed)
    camera = default_rig(contenders, program.lens) if rig is None else Rig.load(rig)
    files = league_files(output, program.lens)
    with sweep_run(
        files, program.pairs, workers=workers, scheduler=scheduler, force=force, quiet=quiet
    ) as run:
        found = compare_methods(contenders, program=program, rig=camera, **run)
        write_league(found, output, overwrite=force)
        _draw(found, files["chart"])
    if as_json and not quiet:
        typer.echo(json.dumps(league_document(found), indent=1))
    elif not quiet:
        _print(found)
        say_files(files)


def _program(lens: LensName, rig: Path | None, *, quick: bool) -> "Program":
    """Planes and scenes of the league."""
    from d3s.lab.evaluate.league import Program

    if lens == LensName.TYPICAL:
        if rig is not None:
            raise typer.BadParameter(
                "--rig cannot be given with --lens typical: that camera has a rig of its own."
            )
        return Program.typical(quick=quick)
    return Program.quick() if quick else Program.full()


def _draw(found: "League", path: Path) -> None:
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.view.methods import plot_league

    save_figure(plot_league(found), path, overwrite=True)


def _print(found: "League") -> None:
    from rich.console import Console

    from d3s.lab.evaluate.league_tables import MORE_TITLE, columns, more_columns, title_of

    console, sections = Console(), found.sections()
    for section in sections:
        title = f"{title_of(section)}: errors in cm, densities in percent"
        console.print(_table(title, section, columns(section)))
    if sections[0].name == "planes":
        console.print(_table(MORE_TITLE, sections[0], more_columns()))
    console.print(
        "Simulated. Full: with all of its own filters off. Own filter: as it comes. At a common "
        "density: the same share of all pixels, those that a method trusts most; only there all "
        "answer for equally much. Density: pixels with a depth, of those whose window lies in "
        "both frames. MAE: of all of them together, also where the right view does not show the "
        "point. Median: of the absolute error, the mean over the pairs that have a depth. Green: "
        "the best of those that reach the common density. Weak scenes have plain and weakly "
        "textured surfaces; there and at the sides of the field, > 2 cm, 1 sigma and 3 sigma are "
        "shares of the errors, and fattened is the share of the background within 25 px of an "
        "object that has its depth without the flag of a carried-over depth.",
        style="dim",
    )


def _table(title: str, section: "Section", shown: "Sequence[Column]") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from d3s.lab.evaluate.league_tables import best_of

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    last = ""
    for column in shown:
        # The name of a group is above its first column only.
        group = column.group if column.group != last else ""
        last = column.group
        heading = Text(f"{group}\n{column.heading}".replace("density", "dens."))
        is_name = not column.group
        # On a narrow terminal only names fold: half a number would be wrong.
        table.add_column(
            heading, justify="left" if is_name else "right", no_wrap=not is_name, overflow="fold"
        )
    best = [best_of(column, section) for column in shown]
    for one in section.standings:
        table.add_row(
            *(
                Text(column.shown(one), style="bold green" if winner == one.method else "")
                for column, winner in zip(shown, best, strict=True)
            )
        )
    return table
