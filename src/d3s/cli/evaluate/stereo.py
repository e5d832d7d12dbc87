"""`d3s evaluate stereo`: methods on a stereo data set that the user brings."""

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.output import Force, Quiet, value_of
from d3s.cli.sweep import Scheduler, Workers, read_page, say_files, say_left_out, sweep_run

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.evaluate.stereo import StereoResults

_NOTES = (
    "Judged: pixels of known disparity, without those that the right view does not show (unless "
    "--occluded). Density: of the judged pixels. Bad-1: the share of the retained pixels that are "
    "off by more than 1 px. All figures: the mean over the scenes. At a density: the most trusted "
    "pixels, with the filters of the method off; a dash where a scene has fewer. sgbm and bm are "
    "ordered by the uniqueness ratio that a pixel passes. Gain: what leaving out the least trusted "
    "pixels wins, of what an oracle would win; errors count as 5 px at most."
)


def stereo(
    folder: Annotated[
        Path,
        typer.Argument(
            help="One scene or a folder of scenes, in the layout of Middlebury 2014 or v3, ETH3D "
            "(two-view) or KITTI 2015.",
            show_default=False,
        ),
    ],
    method: options.Method = None,
    light: Annotated[
        list[str] | None,
        typer.Option(
            metavar="gain=X|gamma=X|ramp=X",
            help="Also try with the right view in another light: gain=0.6, gamma=1.3, or ramp=0.3 "
            "(from -30 % at the left to +30 % at the right). Repeatable.",
            show_default=False,
        ),
    ] = None,
    disparities: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            help="Disparities to search, from 0; those of calib.txt if left, 256 if it has none.",
            show_default=False,
        ),
    ] = None,
    occluded: Annotated[
        bool, typer.Option("--occluded", help="Judge pixels that the right view does not show too.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the tables and the chart.")
    ] = Path("evaluation"),
    page: Annotated[
        Path | None,
        typer.Option(
            help="Page in Markdown to put the tables into, between its marks for stereo.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Try methods on a stereo data set with known disparities, all on the same images.

    Writes stereo.csv, with a row for each scene, light, region and method, stereo_curves.csv, with
    the errors over density, stereo.json, with all parameters and the summary, and the chart
    stereo.png. If it is stopped, the same command goes on where it was.
    """
    from d3s.atomic import write_text
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.evaluate.league_tables import with_league
    from d3s.lab.evaluate.stereo import evaluate_stereo, write_stereo
    from d3s.lab.evaluate.stereo.evaluation import checked_lights, stereo_files
    from d3s.lab.evaluate.stereo.folders import find_scenes
    from d3s.lab.evaluate.stereo.page import MARKS, stereo_markdown
    from d3s.lab.view.stereo import plot_stereo

    contenders = options.contenders_of(method)
    with value_of("--light"):
        lights = checked_lights(light or ())
    pairs = len(find_scenes(folder).scenes) * len(lights)
    if page is not None:
        read_page(page, MARKS)  # refused before the work rather than after it
    files = stereo_files(output)
    with sweep_run(
        files, pairs, workers=workers, scheduler=scheduler, force=force, quiet=quiet
    ) as run:
        results = evaluate_stereo(
            folder,
            contenders,
            lights=lights,
            disparities=disparities,
            with_occluded=occluded,
            workers=run["workers"],
            kept=run["folder"],
            progress=run["progress"],
        )
        write_stereo(results, output, overwrite=force)
        save_figure(plot_stereo(results), files["chart"], overwrite=True)
    if page is not None:
        texts = {MARKS: stereo_markdown(results, _command(method, light, disparities, occluded))}
        write_text(page, with_league(read_page(page, MARKS), texts, page), overwrite=True)
    if not quiet:
        tables.show(*_tables(results), notes=_NOTES)
        say_left_out(results.found.left_out)
        say_files(files)


def _command(
    method: list[str] | None, light: list[str] | None, disparities: int | None, occluded: bool
) -> str:
    """Command that gives the same figures, without paths and number of processes."""
    words = ["d3s", "evaluate", "stereo", "FOLDER"]
    words += [word for one in method or () for word in ("-m", one)]
    words += [word for one in light or () for word in ("--light", one)]
    words += ["--disparities", str(disparities)] if disparities else []
    return shlex.join([*words, *(["--occluded"] if occluded else [])])


def _tables(results: "StereoResults") -> "Iterator[Table]":
    from d3s.lab.evaluate.stereo.evaluation import lines_of

    summary = results.summary()
    for light in (one.name for one in results.lights):
        lines = lines_of(summary, light)
        yield from tables.split_to_width(lines, partial(_by_scene, results, light))
        yield from tables.split_to_width(lines, partial(_of_all, light))
        yield from tables.split_to_width(lines, partial(_by_region, light))


def _table(title: str, first: str, lines: tables.Lines, *headings: str) -> "Table":
    """Table with columns for each method; the name of the method is above its first one."""
    from rich.table import Table

    table = Table(title=title)
    table.add_column(first, overflow="fold")
    for one in lines:
        names = [tables.escaped(one["method"]), *[""] * (len(headings) - 1)]
        for name, heading in zip(names, headings, strict=True):
            table.add_column(f"{name}\n{heading}", justify="right", overflow="fold")
    return table


def _cells(row: Any) -> tuple[str, str, str]:
    return (
        tables.number(100 * row["density"], ".1f"),
        tables.number(100 * row["bad_1"], ".2f"),
        tables.number(row["median_px"], ".3f"),
    )


_HEADINGS = ("dens.", "bad-1", "median")


def _by_scene(results: "StereoResults", light: str, lines: tables.Lines) -> "Table":
    title = f"Scenes, {light}: density (%), bad-1 (%), median error (px), own filter"
    table = _table(title, "scene", lines, *_HEADINGS)
    for rows in results.rows.where(light=light, region="all").groups("scene"):
        by_method = {row["method"]: row for row in rows}
        cells = [cell for one in lines for cell in _cells(by_method[one["method"]])]
        table.add_row(tables.escaped(rows[0]["scene"]), *cells)
    return table


def _by_region(light: str, lines: tables.Lines) -> "Table":
    title = f"Regions, {light}: density (%), bad-1 (%), median error (px), own filter"
    table = _table(title, "region", lines, *_HEADINGS)
    for rows in zip(*(one["regions"] for one in lines), strict=True):
        name = f"{rows[0]['region']} ({100 * rows[0]['share']:.0f} %)"
        table.add_row(name, *(cell for row in rows for cell in _cells(row)))
    return table


def _of_all(light: str, lines: tables.Lines) -> "Table":
    def percent(column: str, form: str = ".2f") -> Callable[[Any], str]:
        return lambda one: tables.percent(one[column], form)

    rows: list[tables.Figure] = [
        ("own filter: density", percent("density", ".1f")),
        ("median error", lambda one: tables.number(one["median_px"], ".3f", " px")),
        ("bad-0.5", percent("bad_05")),
        ("bad-1", percent("bad_1")),
        ("bad-2", percent("bad_2")),
        *((f"bad-1 at {at} %, by confidence", percent(f"at_{at}")) for at in (50, 70, 80)),
        *((f"bad-1 at {at} %, by sigma", percent(f"sigma_at_{at}")) for at in (50, 70, 80)),
        *((f"within {k} sigma", percent(f"coverage_{k}", ".1f")) for k in (1, 2, 3)),
        ("gain by sigma", percent("sigma_gain", ".0f")),
        ("gain by confidence", percent("confidence_gain", ".0f")),
        ("filters off: density", percent("found", ".1f")),
        ("bad-1", percent("found_bad_1")),
        ("gain by sigma", percent("found_sigma_gain", ".0f")),
        ("gain by confidence", percent("found_confidence_gain", ".0f")),
        ("CPU seconds a pair", lambda one: f"{one['time_s']:.2f}"),
    ]
    title = f"All {lines[0]['scenes']} scenes, {light}"
    return tables.figures(title, {one["method"]: one for one in lines}, rows)
