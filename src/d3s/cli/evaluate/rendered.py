"""`d3s evaluate rooms` and `twin`: pictures that the path tracer Mitsuba 3 renders."""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.options import shape_px
from d3s.cli.output import Force, Quiet, goes_on, progress_bar, value_of
from d3s.cli.sweep import Scheduler, Workers, say_files, sweep_run

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.evaluate.rooms import RoomSweep
    from d3s.lab.evaluate.twin import TwinRow
    from d3s.lab.twin.pair import Pair
    from d3s.rig import Rig

_Count = Annotated[int | None, typer.Option("--rooms", help="How many rooms; 8 if left.")]
_Samples = Annotated[
    int | None, typer.Option("--samples", help="Light paths per pixel; 512 if left.")
]
_Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        metavar="FOLDER",
        help="Folder for rendered rooms, to be used again; rooms in the output folder if left.",
        show_default=False,
    ),
]
_Pictures = Annotated[
    bool, typer.Option("--pictures", help="Also draw each room: both views and the truth.")
]
_Quick = Annotated[
    bool, typer.Option("--quick", help="Two small, noisy rooms for a first look, in a minute.")
]
_Seed = Annotated[int | None, typer.Option(help="Seed of the rooms and of the noise; 0 if left.")]


def rooms(
    *,
    method: options.Method = None,
    count: _Count = None,
    samples: _Samples = None,
    keep: _Keep = None,
    pictures: _Pictures = False,
    patterns: options.Patterns = None,
    noise: options.Noise = None,
    shape: options.Shape = None,
    seed: _Seed = None,
    rig: options.RigFile = None,
    output: options.Output = Path("evaluation"),
    workers: Workers = None,
    scheduler: Scheduler = None,
    quick: _Quick = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Try methods on path-traced rooms, half of them with plain walls, all on the same images.

    Mitsuba 3 (the extra render) renders the rooms through two thin lenses. A room takes
    minutes, and is kept in a folder to be used again. Rooms with report textures and rooms with
    tuning textures (--patterns tuning) have different seeds.

    Writes rooms.csv, with a row for each room, region and method, rooms_duels.csv, with each method
    against sgbm and bm on the pixels that both retained, and rooms.json, with all parameters and
    the summary. If it is stopped, the same command goes on where it was.
    """
    from d3s.lab.evaluate.evaluation import check_absent, result_files, write_results
    from d3s.lab.evaluate.rooms import ROOMS, RoomSweep, evaluate_rooms

    chosen = options.given(
        count=count, samples=samples, patterns=patterns, noise=noise, shape=shape, seed=seed
    )
    with value_of("the sweep"):
        sweep = (RoomSweep.quick() if quick else RoomSweep()).replace(**chosen)
        sweep.check()
    contenders, camera = options.contenders_of(method), options.rig_of(rig)
    files, kept = result_files(ROOMS, output), keep or output / "rooms"
    drawings = [output / f"room_{sweep.room(number).seed}.png" for (number,) in sweep.places]
    if not force:
        check_absent(*files.values(), *(drawings if pictures else ()))
    pairs = _render(sweep, camera, kept, quiet=quiet)
    with sweep_run(
        files, len(pairs), workers=workers, scheduler=scheduler, force=force, quiet=quiet
    ) as run:
        results = evaluate_rooms(contenders, keep=kept, sweep=sweep, rig=camera, **run)
        write_results(results, output, overwrite=force)
    if pictures:
        _draw(pairs, drawings, force=force)
    if not quiet:
        _show_rooms(results.summary())
        say_files(files | ({"pictures": output / "room_*.png"} if pictures else {}))


def _render(sweep: "RoomSweep", rig: "Rig", keep: Path, *, quiet: bool) -> "list[Pair]":
    from d3s.lab.evaluate.rooms import render_rooms
    from d3s.lab.rooms.mitsuba import check_installed
    from d3s.lab.rooms.pair import STEPS

    check_installed()
    words = f"Rendering {sweep.count} rooms, or loading them from {keep}."
    with (
        goes_on(lambda: f"The same command goes on from here: finished rooms are kept in {keep}."),
        progress_bar(STEPS * sweep.count, words, quiet=quiet) as progress,
    ):
        return render_rooms(sweep, rig, keep, progress=progress)


def _draw(pairs: "list[Pair]", paths: list[Path], *, force: bool) -> None:
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.view.truth import plot_pair

    for pair, path in zip(pairs, paths, strict=True):
        save_figure(plot_pair(pair), path, overwrite=force)


def _show_rooms(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    walls = list(dict.fromkeys(walls for one in summaries for walls in one["walls"]))
    tables.show(
        *tables.split_to_width(summaries, _of_all_rooms),
        *(
            table
            for name in [None, *walls]
            for table in tables.split_to_width(summaries, partial(_by_region, name))
        ),
        notes="MAE: over all retained pixels. Kept: their share of the pixels of the region. "
        "1 s, 3 s: share of the errors below one and three sigma; 68.3 and 99.7 % if sigma is "
        "true. Near edges: within 12 px of a jump of depth. Density: retained textured pixels over "
        "textured ones. Gain: what leaving out the least trusted pixels wins, of what an oracle "
        "would win.",
    )


def _of_all_rooms(summaries: tables.Lines) -> "Table":
    rows: list[tables.Figure] = [
        ("MAE (cm)", lambda one: tables.centimetres(one["mae_m"])),
        ("rooms with a depth", lambda one: f"{one['scenes_with_depth']} of {one['scenes']}"),
        ("worst room", lambda one: tables.centimetres(one["worst_mae_m"])),
        ("density", lambda one: tables.percent(one["density"])),
        ("MAE / bound", lambda one: tables.number(one["mae_over_bound"], ".2f")),
        ("gain by sigma", lambda one: tables.percent(one["sigma_gain"])),
        ("gain by confidence", lambda one: tables.percent(one["confidence_gain"])),
        ("CPU seconds a pair", lambda one: f"{one['time_s']:.2f}"),
    ]
    return tables.figures("All rooms", {one["method"]: one for one in summaries}, rows)


def _by_region(walls: str | None, summaries: tables.Lines) -> "Table":
    rooms = "All rooms" if walls is None else f"Rooms with {walls} walls"
    parts = [one["regions"] if walls is None else one["walls"][walls] for one in summaries]
    shares = ("retained", "coverage", "coverage_3")
    rows = (
        (
            [regions[0]["region"], tables.number(100 * regions[0]["share"], ".1f")],
            [
                cell
                for row in regions
                for cell in (
                    tables.centimetres(row["mae_m"]),
                    *(tables.number(100 * row[name], ".1f") for name in shares),
                )
            ],
        )
        for regions in zip(*parts, strict=True)
    )
    title = f"{rooms}, by region: MAE (cm); kept, 1 s, 3 s (%)"
    headings = ("MAE", "kept", "1 s", "3 s")
    return tables.by_method(title, ["region", "of all\npixels"], summaries, headings, rows)


_TwinSamples = Annotated[int, typer.Option(help="Light paths per pixel.")]
_Pattern = Annotated[str, typer.Option(help="Texture of all surfaces.")]
_TwinShape = Annotated[
    Any,
    typer.Option(parser=shape_px, metavar="ROWSxCOLS", help="Size of each view; 200x300 if left."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def twin(
    *,
    samples: _TwinSamples = 256,
    pattern: _Pattern = "leaves",
    shape: _TwinShape = None,
    rig: options.RigFile = None,
    as_json: _Json = False,
    quiet: Quiet = False,
) -> None:
    """Render planes and two layers by the twin and by Mitsuba 3, and compare the views.

    Mitsuba is the extra render.
    """
    from d3s.lab.evaluate.twin import SCENES, compare_twin

    with progress_bar(SCENES, f"Rendering {SCENES} scenes.", quiet=quiet) as progress:
        rows = compare_twin(
            options.rig_of(rig),
            samples=samples,
            pattern=pattern,
            progress=progress,
            **options.given(shape=shape),
        )
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        tables.show(
            _twin_table(rows),
            notes="Of full scale, both views together. RMS: of the difference, without the noise "
            "of the path tracer. Near edges: within 12 px of the outline of the square.",
        )


def _twin_table(rows: "list[TwinRow]") -> "Table":
    from rich.table import Table

    table = Table(title="The twin less the path tracer")
    for name in ("scene", "region"):
        table.add_column(name, no_wrap=True)
    for name in ("pixels", "RMS", "mean", "noise"):
        table.add_column(name, justify="right")
    for row in rows:
        shares = (tables.percent(share, ".2f") for share in (row.rms, row.bias, row.noise))
        table.add_row(row.scene, row.region, str(row.pixels), *shares)
    return table
