"""`d3s compare`: all methods on simulated planes and scenes, with a ranking."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from d3s.cli.camera import chosen_place, given_rig
from d3s.cli.options import Telling
from d3s.cli.output import say_files, say_json, show, value_of
from d3s.cli.sweeps import contenders_of, sweep_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from d3s.lab.evaluate.league import League, Program, Section
    from d3s.lab.evaluate.league_tables import Column


def compare(
    *,
    method: list[str] | None = None,
    rig: str | None = None,
    lens: Literal["perfect", "typical"] = "perfect",
    output: Path = Path("league"),
    seed: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    quick: bool = False,
    telling: Telling,
) -> None:
    """Compare all methods on the same simulated images: planes over depth, and random scenes.

    A part of the scenes has plain and weakly textured surfaces. Three ways: at full density, with
    all filters of a method off; with its own filter, as it comes; and at a common density, where
    each keeps the same share of the pixels, those that it trusts most. Writes league.csv,
    league_pairs.csv, league.json and league.png. If it is stopped, the same command goes on where
    it was. The camera is the paper's prototype, tuned, if --rig is left. With --lens typical the
    images are raw frames of a camera with typical lenses, split by its calibrated rig; there are no
    weak scenes but planes at the sides of the field, and the files begin with league_typical.

    Options:
        output: Folder for the tables and the chart.
    """
    from d3s.estimate.methods import methods
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.evaluate.league import compare as compare_methods
    from d3s.lab.evaluate.league import default_rig
    from d3s.lab.evaluate.league_tables import league_document, league_files, write_league
    from d3s.lab.view.methods import plot_league

    contenders = contenders_of(method, methods())
    program = _program(lens, rig, quick=quick)
    with value_of("--seed"):
        program = program if seed is None else program.with_seed(seed)
    camera = given_rig(rig) or default_rig(contenders, program.lens)
    files = league_files(output, program.lens)
    force, quiet = telling.force, telling.quiet
    where = chosen_place(workers, scheduler)
    with sweep_run(files, program.pairs, where, force=force, quiet=quiet) as run:
        found = compare_methods(contenders, program=program, rig=camera, **run)
        write_league(found, output, overwrite=force)
        save_figure(plot_league(found), files["chart"], overwrite=True)
    if telling.as_json and not quiet:
        say_json(league_document(found), indent=1)
    elif not quiet:
        _print(found)
        say_files({name.capitalize(): path for name, path in files.items()})


def _program(lens: str, rig: str | None, *, quick: bool) -> "Program":
    """Planes and scenes of the league."""
    from d3s.lab.evaluate.league import Program

    if lens == "perfect":
        return Program.quick() if quick else Program.full()
    if rig is not None:
        raise typer.BadParameter(
            "--rig cannot be given with --lens typical: that camera has a rig of its own."
        )
    return Program.typical(quick=quick)


def _print(found: "League") -> None:
    from d3s.lab.evaluate.league_tables import MORE_TITLE, columns, more_columns, title_of

    sections = found.sections()
    tables = []
    for section in sections:
        title = f"{title_of(section)}: errors in cm, densities in percent"
        tables.append(_table(title, section, columns(section)))
    if sections[0].name == "planes":
        tables.append(_table(MORE_TITLE, sections[0], more_columns()))
    show(
        *tables,
        notes="Simulated. Full: with all of its own filters off. Own filter: as it comes. At a "
        "common density: the same share of all pixels, those that a method trusts most; only there "
        "all answer for equally much. Density: pixels with a depth, of those whose window lies in "
        "both frames. MAE: of all of them together, also where the right view does not show the "
        "point. Median: of the absolute error, the mean over the pairs that have a depth. Green: "
        "the best of those that reach the common density. Weak scenes have plain and weakly "
        "textured surfaces; there and at the sides of the field, > 2 cm, 1 sigma and 3 sigma are "
        "shares of the errors, and fattened is the share of the background within 25 px of an "
        "object that has its depth without the flag of a carried-over depth.",
    )


def _table(title: str, section: "Section", shown: "Sequence[Column]") -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from d3s.lab.evaluate.league_tables import best_of

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    last = ""
    for column in shown:
        # The name of a group is above its first column only.
        group = column.group if column.group != last else ""
        last = column.group
        heading = Text(f"{group}\n{column.heading}".replace("density", "dens."))
        is_name = not column.group
        # On a narrow terminal only names fold: half a number would be wrong.
        made.add_column(
            heading, justify="left" if is_name else "right", no_wrap=not is_name, overflow="fold"
        )
    best = [best_of(column, section) for column in shown]
    for one in section.standings:
        made.add_row(
            *(
                Text(column.shown(one), style="bold green" if winner == one.method else "")
                for column, winner in zip(shown, best, strict=True)
            )
        )
    return made
