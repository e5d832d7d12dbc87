"""`d3s evaluate stereo` and `quality`: data that the user brings."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.options import length_m
from d3s.cli.output import Force, Quiet, value_of
from d3s.cli.sweep import Scheduler, Workers, say_files, say_left_out, sweep_run

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.evaluate.quality import Quality
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
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.evaluate.stereo import evaluate_stereo, write_stereo
    from d3s.lab.evaluate.stereo.evaluation import checked_lights, stereo_files
    from d3s.lab.evaluate.stereo.scene import find_scenes
    from d3s.lab.view.methods import plot_stereo

    contenders = options.contenders_of(method)
    with value_of("--light"):
        lights = checked_lights(light or ())
    pairs = len(find_scenes(folder).scenes) * len(lights)
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
    if not quiet:
        tables.show(*_tables(results), notes=_NOTES)
        say_left_out(results.found.left_out)
        say_files(files)


def _tables(results: "StereoResults") -> "Iterator[Table]":
    from d3s.lab.evaluate.stereo.evaluation import lines_of

    summary = results.summary()
    for light in (one.name for one in results.lights):
        lines = lines_of(summary, light)
        yield from tables.split_to_width(lines, partial(_by_scene, results, light))
        yield from tables.split_to_width(lines, partial(_of_all, light))
        yield from tables.split_to_width(lines, partial(_by_region, light))


def _cells(row: Any) -> tuple[str, str, str]:
    return (
        tables.number(100 * row["density"], ".1f"),
        tables.number(100 * row["bad_1"], ".2f"),
        tables.number(row["median_px"], ".3f"),
    )


_HEADINGS = ("dens.", "bad-1", "median")


def _by_scene(results: "StereoResults", light: str, lines: tables.Lines) -> "Table":
    rows = []
    for scene in results.rows.where(light=light, region="all").groups("scene"):
        by_method = {row["method"]: row for row in scene}
        cells = [cell for one in lines for cell in _cells(by_method[one["method"]])]
        rows.append(([scene[0]["scene"]], cells))
    title = f"Scenes, {light}: density (%), bad-1 (%), median error (px), own filter"
    return tables.by_method(title, ["scene"], lines, _HEADINGS, rows)


def _by_region(light: str, lines: tables.Lines) -> "Table":
    rows = (
        (
            [f"{regions[0]['region']} ({100 * regions[0]['share']:.0f} %)"],
            [cell for row in regions for cell in _cells(row)],
        )
        for regions in zip(*(one["regions"] for one in lines), strict=True)
    )
    title = f"Regions, {light}: density (%), bad-1 (%), median error (px), own filter"
    return tables.by_method(title, ["region"], lines, _HEADINGS, rows)


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


def quality(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DEPTH.npz]...",
            help="Depth maps of one plane, as d3s writes them; a plane is simulated if left.",
            show_default=False,
        ),
    ] = None,
    distance: Annotated[
        float | None,
        typer.Option(
            parser=length_m,
            metavar="LENGTH",
            help="True distance of the plane. Of files: none is known if left; else 1 m.",
        ),
    ] = None,
    region: Annotated[
        float, typer.Option(help="Part of each side of the frame to look at, about its middle.")
    ] = 0.8,
    method: options.Method = None,
    frames: Annotated[
        int | None, typer.Option(help="How many frames to simulate; 10 if left.")
    ] = None,
    texture: Annotated[
        str | None, typer.Option(help="Texture of the simulated plane; brick if left.")
    ] = None,
    noise: options.Noise = None,
    shape: options.Shape = None,
    seed: options.Seed = None,
    rig: options.RigFile = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of a table.")
    ] = False,
) -> None:
    """See what users of depth cameras ask: fill rate, Z-accuracy, spatial and temporal noise.

    Definitions are those of the RealSense depth quality tool. Point your camera at a textured wall,
    save several depth maps as NPZ, and name them; or leave them, to see simulated ones.
    """
    from d3s.estimate import DepthMap
    from d3s.lab.evaluate.quality import central_region, quality_of, simulated_frames

    simulated = options.given(frames=frames, texture=texture, noise=noise, shape=shape, seed=seed)
    if files:
        of_simulation = [*simulated, *options.given(method=method, rig=rig)]
        if of_simulation:
            raise typer.BadParameter(
                f"--{of_simulation[0]} is for simulated planes. Leave it, or leave the files."
            )
        maps = {"as measured": [DepthMap.load(path) for path in files]}
    else:
        distance = 1.0 if distance is None else distance
        maps = simulated_frames(
            options.contenders_of(method), distance, rig=options.rig_of(rig), **simulated
        )
    some = next(iter(maps.values()))[0]
    with value_of("--region"):
        middle = central_region(some.depth_m.shape, region)
    found = {name: quality_of(every, distance, middle) for name, every in maps.items()}
    if as_json:
        typer.echo(_quality_json(found, distance, region))
    else:
        _print_quality(found)


def _quality_json(found: "Mapping[str, Quality]", distance_m: float | None, region: float) -> str:
    from d3s.lab.evaluate.table import for_json

    methods = {name: for_json(one) for name, one in found.items()}
    return json.dumps({"distance_m": distance_m, "region": region, "methods": methods}, indent=1)


def _print_quality(found: "Mapping[str, Quality]") -> None:
    rows: list[tables.Figure] = [
        ("fill rate", lambda one: tables.percent(one.plane.fill_rate)),
        ("Z-accuracy", lambda one: tables.percent(one.plane.z_accuracy, "+.3f")),
        ("plane-fit RMS", lambda one: tables.percent(one.plane.plane_fit_rms, ".3f")),
        ("", lambda one: tables.number(1000 * one.plane.plane_fit_rms_m, ".2f", " mm")),
        ("sub-pixel RMS", lambda one: tables.number(one.plane.subpixel_rms_px, ".3f", " px")),
    ]
    frames = next(iter(found.values())).frames
    if frames > 1:
        rows += [
            ("temporal noise", lambda one: tables.percent(one.temporal.temporal_noise, ".3f")),
            ("", lambda one: tables.number(1000 * one.temporal.temporal_noise_m, ".2f", " mm")),
        ]
    else:
        rows += [("temporal noise", lambda one: "-"), ("", lambda one: "-")]
    table = tables.figures(f"A plane, {frames} frames", found, rows)
    tables.show(
        table,
        notes="As RealSense's depth quality tool has them. Percent: of the distance. Z-accuracy: "
        "the median error, positive if too far. RMS: about the plane through the depths. Temporal "
        "noise: standard deviation over the frames, the median over the pixels.",
    )
