"""`d3s evaluate`: how good the methods are on simulated planes and scenes."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.output import Force, Quiet
from d3s.cli.progress import progress_bar
from d3s.cli.simulate import Spread
from d3s.cli.sweep import Workers, kept_trials
from d3s.cli.units import length_m, shape_px

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.estimate import DepthMap
    from d3s.evaluate.planes import PlaneResults, PlaneSummary, RivalSummary
    from d3s.evaluate.quality import Quality
    from d3s.evaluate.scenes import SceneSummary
    from d3s.evaluate.thresholds import ThresholdRow
    from d3s.rig import Rig

evaluate = typer.Typer(
    help="See how good the methods are, where the truth is known.", no_args_is_help=True
)


_DEFAULT_METHODS = ("joint", "sgbm", "bm")
_METHODS_ABREAST = 3  # with three columns each, a terminal of 80 characters is full

Method = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME[:FIELD=VALUE...]",
        help="Method to try, with options if you like: consensus:min_confidence=0.8. Repeatable; "
        f"{', '.join(_DEFAULT_METHODS)} if left.",
        show_default=False,
    ),
]
Depths = Annotated[
    str | None,
    typer.Option(
        metavar="DEPTHS",
        help="START:STOP:COUNT, or depths with commas between; 0.25:2.0:25 if left.",
    ),
]
Patterns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME...",
        help="Textures, or one word: report (those that nothing was tuned on), or tuning.",
        show_default=False,
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the noise, of full scale; 0.01 if left."),
]
Shape = Annotated[
    str | None, typer.Option(metavar="ROWSxCOLS", help="Size of each view, 300x640 for instance.")
]
Psf = Annotated[Spread | None, typer.Option(help="Shape of a blurred point; disk if left.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the scenes and of the noise; 0 if left.")]
RigFile = Annotated[
    Path | None, typer.Option(help="Rig file; the paper's prototype if left.", show_default=False)
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="A small sweep for a first look, of half a minute.")
]


@evaluate.command()
def planes(
    method: Method = None,
    depths: Depths = None,
    patterns: Patterns = None,
    noise: Noise = None,
    shape: Shape = None,
    psf: Psf = None,
    seed: Seed = None,
    rig: RigFile = None,
    output: Output = Path("evaluation"),
    workers: Workers = None,
    quick: Quick = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Try methods on planes over depth and texture, all on the same images.

    Writes planes.csv, with a row for each plane and method, planes_duels.csv, with each method
    against sgbm and bm on the pixels that both retained, and planes.json, with all parameters and
    the summary. If it is stopped, the same command goes on where it was.
    """
    from d3s.evaluate.contender import as_contenders
    from d3s.evaluate.planes import PlaneSweep, evaluate_planes
    from d3s.evaluate.tables import check_free, write_results

    given = _given(patterns, noise, shape, psf, seed)
    if depths is not None:
        given["depths_m"] = _depths_m(depths)
    sweep = (PlaneSweep.quick() if quick else PlaneSweep()).replace(**given)
    contenders = as_contenders(method or _DEFAULT_METHODS)
    if not force:
        check_free("planes", output)
    count = len(sweep.depths_m) * len(sweep.patterns)
    camera = _rig(rig)
    with kept_trials(output, "planes") as folder:
        with progress_bar(count, f"Trying {count} pairs.", quiet=quiet) as progress:
            results = evaluate_planes(
                contenders,
                sweep=sweep,
                rig=camera,
                workers=workers,
                folder=folder,
                progress=progress,
            )
        files = write_results(results, output, overwrite=force)
    if not quiet:
        _print_planes(results)
        _say_files(files)


@evaluate.command()
def scenes(
    method: Method = None,
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
    patterns: Patterns = None,
    noise: Noise = None,
    shape: Shape = None,
    psf: Psf = None,
    seed: Seed = None,
    rig: RigFile = None,
    output: Output = Path("evaluation"),
    workers: Workers = None,
    quick: Quick = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Try methods on random scenes with edges and tilts, all on the same images.

    Writes scenes.csv, with a row for each scene, region and method, scenes_duels.csv, with each
    method against sgbm and bm on the pixels that both retained, and scenes.json, with all
    parameters and the summary. If it is stopped, the same command goes on where it was.
    """
    from d3s.evaluate.contender import as_contenders
    from d3s.evaluate.scenes import SceneSweep, evaluate_scenes
    from d3s.evaluate.tables import check_free, write_results

    given = _given(patterns, noise, shape, psf, seed)
    for name, value in (("count", count), ("nearest_m", near), ("farthest_m", far)):
        if value is not None:
            given[name] = value
    sweep = (SceneSweep.quick() if quick else SceneSweep()).replace(**given)
    contenders = as_contenders(method or _DEFAULT_METHODS)
    if not force:
        check_free("scenes", output)
    camera = _rig(rig)
    with kept_trials(output, "scenes") as folder:
        with progress_bar(sweep.count, f"Trying {sweep.count} pairs.", quiet=quiet) as progress:
            results = evaluate_scenes(
                contenders,
                sweep=sweep,
                rig=camera,
                workers=workers,
                folder=folder,
                progress=progress,
            )
        files = write_results(results, output, overwrite=force)
    if not quiet:
        _print_scenes(results.summary())
        _say_files(files)


@evaluate.command()
def thresholds(
    method: Method = None,
    confidence: Annotated[
        str,
        typer.Option(metavar="NUMBER,NUMBER...", help="Confidences that a depth must reach."),
    ] = "0,0.25,0.5,0.75,0.9",
    depths: Depths = None,
    patterns: Patterns = None,
    noise: Noise = None,
    shape: Shape = None,
    psf: Psf = None,
    seed: Seed = None,
    rig: RigFile = None,
    output: Output = Path("evaluation"),
    workers: Workers = None,
    quick: Quick = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """See what a stricter filter buys: error and density on planes over thresholds of confidence.

    The methods' own filters are off. Writes thresholds.csv, with a row for each plane, method and
    threshold, and thresholds.json, with all parameters and the summary. If it is stopped, the same
    command goes on where it was.
    """
    from d3s.evaluate.contender import as_contenders
    from d3s.evaluate.planes import PlaneSweep
    from d3s.evaluate.tables import check_absent, parameters, threshold_files, write_thresholds
    from d3s.evaluate.thresholds import evaluate_thresholds

    limits = _confidences(confidence)
    given = _given(patterns, noise, shape, psf, seed)
    if depths is not None:
        given["depths_m"] = _depths_m(depths)
    sweep = (PlaneSweep.quick() if quick else PlaneSweep()).replace(**given)
    contenders = as_contenders(method or _DEFAULT_METHODS)
    if not force:
        check_absent(*threshold_files(output))
    count = len(sweep.depths_m) * len(sweep.patterns)
    camera = _rig(rig)
    with kept_trials(output, "thresholds") as folder:
        with progress_bar(count, f"Trying {count} pairs.", quiet=quiet) as progress:
            rows = evaluate_thresholds(
                contenders,
                limits,
                sweep=sweep,
                rig=camera,
                workers=workers,
                folder=folder,
                progress=progress,
            )
        told = parameters(sweep, camera, contenders) | {"thresholds": limits}
        table, summary = write_thresholds(rows, told, output, overwrite=force)
    if not quiet:
        _print_thresholds(rows)
        typer.echo(f"Rows: {table}\nSummary: {summary}")


def _confidences(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 <= one <= 1 for one in numbers):
        raise typer.BadParameter(
            f"--confidence {text!r} must be numbers from 0 to 1 with commas between, such as "
            "0,0.5,0.8."
        )
    return numbers


def _print_thresholds(rows: "tuple[ThresholdRow, ...]") -> None:
    from rich.console import Console
    from rich.table import Table

    from d3s.evaluate.thresholds import threshold_summary

    table = Table(title="Over all planes, by the confidence that a depth must reach")
    for name in ("method", "confidence", "density (%)", "MAE (cm)", "median (cm)", "range (m)"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for one in threshold_summary(rows):
        table.add_row(
            _escaped(one.method),
            f"{one.threshold:g}",
            _number(100 * one.density, ".1f"),
            _cm(one.mae_m),
            _cm(one.median_m),
            _range(one.range_m),
        )
    console = Console()
    console.print(table)
    console.print(
        "Density: of the judged pixels. MAE: of all of them together. Median: the mean over the "
        "planes. Range: of an MAE below 1 cm on every texture.",
        style="dim",
    )


@evaluate.command()
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
    method: Method = None,
    frames: Annotated[
        int | None, typer.Option(help="How many frames to simulate; 10 if left.")
    ] = None,
    texture: Annotated[
        str | None, typer.Option(help="Texture of the simulated plane; brick if left.")
    ] = None,
    noise: Noise = None,
    shape: Shape = None,
    seed: Seed = None,
    rig: RigFile = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of a table.")
    ] = False,
) -> None:
    """See what users of depth cameras ask: fill rate, Z-accuracy, spatial and temporal noise.

    Definitions are those of the RealSense depth quality tool. Point your camera at a textured wall,
    save several depth maps as NPZ, and name them; or leave them, to see simulated ones.
    """
    from d3s.estimate import DepthMap
    from d3s.evaluate.quality import central_region, quality_of

    if files:
        values = (method, frames, texture, noise, shape, seed, rig)
        names = ("method", "frames", "texture", "noise", "shape", "seed", "rig")
        for name, value in zip(names, values, strict=True):
            if value is not None:
                raise typer.BadParameter(
                    f"--{name} is for simulated planes. Leave it, or leave the files."
                )
        maps = {"as measured": [DepthMap.load(path) for path in files]}
    else:
        given = _given(None, noise, shape, None, seed)
        distance = 1.0 if distance is None else distance
        maps = _simulated(method, distance, texture, frames, given, _rig(rig))
    found = {
        name: quality_of(frames, distance, central_region(_shape_of(frames[0]), region))
        for name, frames in maps.items()
    }
    if as_json:
        typer.echo(_quality_json(found, distance, region))
    else:
        _print_quality(found)


def _simulated(
    method: list[str] | None,
    distance_m: float,
    texture: str | None,
    frames: int | None,
    given: dict[str, Any],
    rig: "Rig",
) -> "dict[str, list[DepthMap]]":
    """Frames of a plane that differ in their noise, by each method."""
    from d3s.evaluate.contender import as_contenders
    from d3s.evaluate.frames import simulated_frames

    contenders = as_contenders(method or _DEFAULT_METHODS)
    if frames is not None:
        given["frames"] = frames
    return simulated_frames(contenders, distance_m, texture=texture or "brick", rig=rig, **given)


def _shape_of(depth_map: "DepthMap") -> tuple[int, int]:
    rows, cols = depth_map.depth_m.shape
    return rows, cols


def _quality_json(found: "dict[str, Quality]", distance_m: float | None, region: float) -> str:
    import json

    from d3s.evaluate.tables import plain

    methods = {name: plain(one) for name, one in found.items()}
    return json.dumps({"distance_m": distance_m, "region": region, "methods": methods}, indent=1)


def _print_quality(found: "dict[str, Quality]") -> None:
    from rich.console import Console

    first = next(iter(found.values()))
    table = _figures(f"A plane, {first.frames} frames", list(found))
    planes = [one.plane for one in found.values()]
    table.add_row("fill rate", *(_p(one.fill_rate) for one in planes))
    table.add_row("Z-accuracy", *(_number(100 * one.z_accuracy, "+.3f", " %") for one in planes))
    table.add_row(
        "plane-fit RMS", *(_number(100 * one.plane_fit_rms, ".3f", " %") for one in planes)
    )
    table.add_row("", *(_number(1000 * one.plane_fit_rms_m, ".2f", " mm") for one in planes))
    table.add_row("sub-pixel RMS", *(_number(one.subpixel_rms_px, ".3f", " px") for one in planes))
    flicker = [one.temporal for one in found.values()]
    table.add_row(
        "temporal noise",
        *(
            "-" if one is None else _number(100 * one.temporal_noise, ".3f", " %")
            for one in flicker
        ),
    )
    table.add_row(
        "",
        *(
            "-" if one is None else _number(1000 * one.temporal_noise_m, ".2f", " mm")
            for one in flicker
        ),
    )
    console = Console()
    console.print(table)
    console.print(
        "As RealSense's depth quality tool has them. Percent: of the distance. Z-accuracy: the "
        "median error, positive if too far. RMS: about the plane through the depths. Temporal "
        "noise: standard deviation over the frames, the median over the pixels.",
        style="dim",
    )


def _given(
    patterns: str | None,
    noise: float | None,
    shape: str | None,
    psf: Spread | None,
    seed: int | None,
) -> dict[str, Any]:
    """The fields of a sweep that were given; the library finds what is wrong with them."""
    fields = {
        "patterns": None if patterns is None else _patterns(patterns),
        "noise": noise,
        "shape": None if shape is None else shape_px(shape),
        "psf": None if psf is None else psf.value,
        "seed": seed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _patterns(text: str) -> tuple[str, ...]:
    from d3s.evaluate.patterns import REPORT_PATTERNS, TUNING_PATTERNS

    sets = {"report": REPORT_PATTERNS, "tuning": TUNING_PATTERNS}
    return sets.get(text, tuple(name.strip() for name in text.split(",")))


def _depths_m(text: str) -> tuple[float, ...]:
    from d3s.scene.sequence import even_distances_m

    if ":" not in text:
        return tuple(length_m(one) for one in text.split(","))
    first, *rest = text.split(":")
    if len(rest) != 2 or not rest[1].strip().isdecimal():
        raise typer.BadParameter(
            f"--depths {text!r} is no series of depths. Write START:STOP:COUNT, such as "
            "0.25:2.0:25, or depths with commas between, such as 0.5,1.0."
        )
    return even_distances_m(length_m(first), length_m(rest[0]), int(rest[1]))


def _rig(path: Path | None) -> "Rig":
    from d3s.rig import Rig

    return Rig.paper_prototype() if path is None else Rig.load(path)


def _say_files(files: tuple[Path, Path, Path]) -> None:
    # Not through rich, which would wrap a long path and read brackets in it as markup.
    typer.echo(f"Rows: {files[0]}\nDuels: {files[1]}\nSummary: {files[2]}")


def _print_planes(results: "PlaneResults") -> None:
    from rich.console import Console

    console, summaries = Console(), results.summary()
    for start in range(0, len(summaries), _METHODS_ABREAST):
        console.print(_over_depth(summaries[start : start + _METHODS_ABREAST]))
    console.print(_of_all_planes(summaries))
    console.print(
        "MAE: the mean over the textures, and that of the worst. Density: retained textured "
        "pixels over textured ones. Range: of an MAE below 1 cm on every texture. Bound: "
        "Cramér-Rao, of a window of 31 x 31 px; at the bound, Gaussian errors have 0.8. Against a "
        "rival: the largest MAE ratio over depths, on the pixels that both retained. Gain: what "
        "leaving out the pixels of largest sigma wins, of what an oracle would win. Fill rate to "
        "sub-pixel RMS: as RealSense's depth quality tool has them, the median over the planes.",
        style="dim",
    )


def _over_depth(summaries: "tuple[PlaneSummary, ...]") -> "Table":
    from rich.table import Table

    table = Table(title="MAE and worst MAE (cm), density (%) over depth")
    table.add_column("depth\n(m)", justify="right")
    for one in summaries:
        table.add_column(f"{_escaped(one.method)}\nMAE", justify="right")
        table.add_column("\nworst", justify="right")
        table.add_column("\ndens.", justify="right")
    for rows in zip(*(one.depths for one in summaries), strict=True):
        cells = [
            cell
            for row in rows
            for cell in (_cm(row.mae_m), _cm(row.worst_mae_m), _number(100 * row.density, ".1f"))
        ]
        table.add_row(f"{rows[0].depth_m:.3f}", *cells)
    return table


def _of_all_planes(summaries: "tuple[PlaneSummary, ...]") -> "Table":
    from d3s.evaluate.planes import BEYOND_M

    table = _figures("All planes", [one.method for one in summaries])
    table.add_row("range (m)", *(_range(one.range_m) for one in summaries))
    table.add_row("density in the range", *(_p(one.density) for one in summaries))
    table.add_row("of its worst depth", *(_p(one.worst_density) for one in summaries))
    table.add_row("MAE / bound", *(_number(one.mae_over_bound, ".2f") for one in summaries))
    for rival in _rivals(summaries):
        for beyond_m, words in ((0.0, ""), (BEYOND_M, f" beyond {BEYOND_M:g} m")):
            cells = (_worst(one.rivals, rival, beyond_m) for one in summaries)
            table.add_row(_escaped(f"worst ratio to {rival}{words}"), *cells)
    table.add_row("gain by sigma", *(_p(one.sigma_gain) for one in summaries))
    table.add_row("fill rate", *(_p(one.fill_rate) for one in summaries))
    table.add_row(
        "Z-accuracy, size of", *(_number(100 * one.z_accuracy, ".2f", " %") for one in summaries)
    )
    table.add_row(
        "plane-fit RMS", *(_number(100 * one.plane_fit_rms, ".2f", " %") for one in summaries)
    )
    table.add_row(
        "sub-pixel RMS", *(_number(one.subpixel_rms_px, ".3f", " px") for one in summaries)
    )
    table.add_row("CPU seconds a pair", *(f"{one.time_s:.2f}" for one in summaries))
    return table


def _worst(rows: "tuple[RivalSummary, ...]", rival: str, beyond_m: float) -> str:
    ratios = [
        row.ratio_common
        for row in rows
        if row.rival == rival and row.depth_m >= beyond_m and row.common
    ]
    return f"{max(ratios):.2f}" if ratios else ""


def _print_scenes(summaries: "tuple[SceneSummary, ...]") -> None:
    from rich.console import Console

    table = _figures("All scenes", [one.method for one in summaries])
    table.add_row("MAE (cm)", *(_cm(one.mae_m) for one in summaries))
    table.add_row("mean over scenes", *(_cm(one.mean_mae_m) for one in summaries))
    table.add_row("worst scene", *(_cm(one.worst_mae_m) for one in summaries))
    table.add_row("density", *(_p(one.density) for one in summaries))
    table.add_row("MAE / bound", *(_number(one.mae_over_bound, ".2f") for one in summaries))
    for rival in _rivals(summaries):
        ratios = [{row.rival: row.ratio_common for row in one.rivals} for one in summaries]
        cells = (_number(one[rival], ".2f") if rival in one else "" for one in ratios)
        table.add_row(_escaped(f"ratio to {rival}"), *cells)
    table.add_row("gain by sigma", *(_p(one.sigma_gain) for one in summaries))
    table.add_row("gain by confidence", *(_p(one.confidence_gain) for one in summaries))
    table.add_row("CPU seconds a pair", *(f"{one.time_s:.2f}" for one in summaries))
    console = Console()
    console.print(table)
    for start in range(0, len(summaries), _METHODS_ABREAST):
        console.print(_by_region(summaries[start : start + _METHODS_ABREAST]))
    console.print(
        "MAE: over all retained pixels, also those that the right view does not show. Density: "
        "retained textured pixels over textured ones. Bound: Cramér-Rao, of a window of 31 x 31 "
        "px. Ratio: of the MAE on the pixels that both retained. Gain: what leaving out the least "
        "trusted pixels wins, of what an oracle would win.",
        style="dim",
    )


def _by_region(summaries: "tuple[SceneSummary, ...]") -> "Table":
    from rich.table import Table

    table = Table(title="By region: MAE (cm), and the share that is retained (%)")
    table.add_column("region", no_wrap=True)
    table.add_column("of all\npixels", justify="right")
    for one in summaries:
        table.add_column(f"{_escaped(one.method)}\nMAE", justify="right")
        table.add_column("\nkept", justify="right")
    for rows in zip(*(one.regions for one in summaries), strict=True):
        cells = [c for row in rows for c in (_cm(row.mae_m), _number(100 * row.retained, ".1f"))]
        table.add_row(rows[0].region, _number(100 * rows[0].share, ".1f"), *cells)
    return table


def _figures(title: str, methods: list[str]) -> "Table":
    """A table with a column for each method."""
    from rich.table import Table

    table = Table(title=title)
    table.add_column("")
    for method in methods:
        table.add_column(_escaped(method), justify="right")
    return table


def _rivals(summaries: "tuple[PlaneSummary, ...] | tuple[SceneSummary, ...]") -> list[str]:
    return list(dict.fromkeys(row.rival for one in summaries for row in one.rivals))


def _escaped(name: str) -> str:
    """A name that may hold brackets, which rich would read as markup."""
    from rich.markup import escape

    return escape(name)


def _range(ends_m: tuple[float, float] | None) -> str:
    return "none" if ends_m is None else f"{ends_m[0]:.2f} to {ends_m[1]:.2f}"


def _cm(metres: float) -> str:
    return _number(100 * metres, ".3f")


def _p(share: float) -> str:
    return _number(100 * share, ".1f", " %")


def _number(value: float, form: str, unit: str = "") -> str:
    """A number with its unit; a dash for what there is nothing to take the mean of."""
    return "-" if math.isnan(value) else f"{value:{form}}{unit}"
