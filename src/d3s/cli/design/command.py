"""The command `d3s design` and its options."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.design.values import (
    camera_of,
    error_of,
    given_of,
    is_whole,
    light_of,
    wall_of,
    wish_of,
)
from d3s.cli.output import NOTHING_USABLE, Force, Json, Quiet, check_places, say_step
from d3s.cli.progress import progress_bar
from d3s.cli.units import depth_range_m, length_m

if TYPE_CHECKING:
    from d3s.lab.design.predict import Prediction
    from d3s.lab.design.search import Search
    from d3s.lab.design.verify import Measured

# Panels of the help page.
_CAMERA, _WISH, _LIGHT, _WALL, _FILES = "Camera", "Wish", "Light", "Texture", "Files"


def _length(panel: str, text: str, *names: str) -> Any:
    return typer.Option(
        *names,
        parser=length_m,
        metavar="LENGTH",
        help=text,
        rich_help_panel=panel,
        show_default=False,
    )


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


def design(
    rig: Annotated[
        str | None,
        _option(_CAMERA, "Rig file of the camera, or paper for the paper's prototype."),
    ] = None,
    baseline: Annotated[
        float | None, _length(_CAMERA, "Distance of the lens centres, such as 3.84mm.")
    ] = None,
    focal_length: Annotated[
        float | None, _length(_CAMERA, "Focal length of both lenses, such as 12mm.")
    ] = None,
    f_number: Annotated[
        float | None, _option(_CAMERA, "Focal length over the opening of a lens.")
    ] = None,
    focus: Annotated[
        str | None,
        _option(
            _CAMERA,
            "Distances in focus of the left and the right lens, such as 0.81:0.88.",
            metavar="LEFT:RIGHT",
        ),
    ] = None,
    pixel: Annotated[float | None, _length(_CAMERA, "Pixel pitch, such as 2um.")] = None,
    pixels: Annotated[
        str | None,
        _option(_CAMERA, "Rows and columns of the sensor: 2160x3840.", metavar="ROWSxCOLS"),
    ] = None,
    sensor: Annotated[
        list[str] | None,
        _option(_CAMERA, "Sensor of the catalogue by its name; repeat it to choose from several."),
    ] = None,
    lens: Annotated[
        list[str] | None,
        _option(
            _CAMERA,
            "Lens of the catalogue by its name, or stock for all of them; repeat it to choose from "
            "several.",
        ),
    ] = None,
    catalogue: Annotated[
        list[Path] | None, _option(_CAMERA, "Catalogue of your own, which adds to ours.")
    ] = None,
    reach: Annotated[
        str | None,
        _option(_WISH, "Nearest and farthest depth, such as 0.3:2.", metavar="NEAR:FAR"),
    ] = None,
    error: Annotated[
        str | None,
        _option(
            _WISH,
            "Largest mean absolute error, a length or a share of the depth: 1cm, 1%; 1 cm if left.",
            metavar="ERROR",
        ),
    ] = None,
    max_size: Annotated[
        float | None, _length(_WISH, "Longest side of lenses and sensor together, such as 15mm.")
    ] = None,
    min_field: Annotated[
        float | None, _option(_WISH, "Least horizontal field of view in degrees; 20 if left.")
    ] = None,
    calibration_px: Annotated[
        float | None,
        _option(_WISH, "Disparity that a calibration leaves, for the search; 0.01 px if left."),
    ] = None,
    noise: Annotated[
        float | None, _option(_LIGHT, "Noise of a pixel, of full scale; 0.01 if left.")
    ] = None,
    lux: Annotated[
        float | None, _option(_LIGHT, "Illuminance of the scene, in lux, in place of --noise.")
    ] = None,
    exposure: Annotated[
        float | None, _option(_LIGHT, "Exposure time in milliseconds; 10 if left.")
    ] = None,
    full_well: Annotated[
        float | None, _option(_LIGHT, "Electrons that a pixel holds; 10000 if left.")
    ] = None,
    read_noise: Annotated[
        float | None, _option(_LIGHT, "Read noise in electrons; 3 if left.")
    ] = None,
    efficiency: Annotated[
        float | None, _option(_LIGHT, "Electrons per photon; 0.6 if left.")
    ] = None,
    texture: Annotated[
        str | None,
        _option(_WALL, "natural, a pattern of d3s simulate, or an image file; natural if left."),
    ] = None,
    contrast: Annotated[
        float | None, _option(_WALL, "Contrast of the natural texture, of full scale; 0.15.")
    ] = None,
    spectrum: Annotated[
        float | None,
        _option(_WALL, "Exponent by which the power of the natural texture falls; 2 if left."),
    ] = None,
    output: Annotated[
        Path | None, _option(_FILES, "Rig file of the design to write.", "--output", "-o")
    ] = None,
    report: Annotated[
        Path | None, _option(_FILES, "Report to write, one page of HTML with sliders.")
    ] = None,
    chart: Annotated[Path | None, _option(_FILES, "Chart to write, PNG, PDF or SVG.")] = None,
    name: Annotated[str, _option(_FILES, "Name of the camera.")] = "design",
    verify: Annotated[
        bool, typer.Option("--verify", help="Simulate the camera, and measure planes with it.")
    ] = False,
    tolerances: Annotated[
        bool, typer.Option("--tolerances", help="Tell what mounting errors and warmth do.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Predict the errors of a camera before it is built, or find cameras for a wish.

    With all numbers of a camera: sigma and error over depth, working range, size. With --reach and
    --error, and some numbers left out: the smallest, the brightest and the most exact camera. If
    no camera meets the wish, it says which wish to relax, and exits with 1.
    """
    options = dict(locals())
    _check_files(output, report, chart, force=force)
    light, wall = light_of(options), wall_of(options)
    if is_whole(options):
        camera = camera_of(options)
        found, search = camera, None
    else:
        search = _search(options, light, wall, quiet=quiet or as_json)
        if not search.answers:
            _refuse(search, as_json=as_json)
        found = search.answers[0].camera.replace(name=name)
    reach_m = None if reach is None else depth_range_m(reach)
    _tell(found, search, reach_m, options, light, wall)


def _check_files(*paths: Path | None, force: bool) -> None:
    output, report, chart = paths
    for path, option, suffixes in (
        (output, "--output", (".toml",)),
        (report, "--report", (".html", ".htm")),
        (chart, "--chart", (".png", ".pdf", ".svg")),
    ):
        if path is not None and path.suffix.lower() not in suffixes:
            raise typer.BadParameter(
                f"{str(path)!r} must end in {' or '.join(suffixes)}.", param_hint=option
            )
    check_places(*(path for path in paths if path is not None), force=force)


def _search(options: dict[str, Any], light: Any, wall: Any, *, quiet: bool) -> "Search":
    from d3s.lab.design.search import GOALS, ROUNDS, search

    wish, given = wish_of(options), given_of(options)
    words = "Searching cameras ..."
    with progress_bar(len(GOALS) * ROUNDS, words, quiet=quiet) as progress:
        return search(wish, given, light=light, wall=wall, progress=progress)


def _refuse(search: "Search", *, as_json: bool) -> None:
    from d3s.cli.design.words import refusal

    if as_json:
        relaxed = {one.wish: one.words for one in search.relaxed}
        typer.echo(json.dumps({"answers": [], "relaxed": relaxed}, indent=2))
    else:
        typer.echo(refusal(search), err=True)
    raise typer.Exit(NOTHING_USABLE)


def _tell(
    camera: Any,
    search: "Search | None",
    reach_m: tuple[float, float] | None,
    options: dict[str, Any],
    light: Any,
    wall: Any,
) -> None:
    """Predict, write files and print."""
    from d3s.cli.design import words
    from d3s.lab.design.predict import predict
    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.speed import frames_per_second

    is_quiet = options["quiet"] or options["as_json"]
    prediction = predict(camera, reach_m=reach_m, light=light, wall=wall)
    wish = error_of(options["error"])
    measured = _verify(prediction, quiet=is_quiet) if options["verify"] else []
    table = _tolerances(prediction, wish) if options["tolerances"] or options["report"] else ()
    ends = float(prediction.depth_m[0]), float(prediction.depth_m[-1])
    speed = frames_per_second(camera, ends)
    told = DesignReport(
        prediction=prediction,
        wish=wish,
        frames_per_s=speed,
        search=search,
        measured=tuple(measured),
        tolerances=tuple(table),
    )
    files = _write(told, options)
    if options["as_json"]:
        typer.echo(json.dumps(told.as_json(), indent=2, allow_nan=False))
    elif not options["quiet"]:
        words.tell(told, show_tolerances=options["tolerances"])
        for line in files:
            typer.echo(line)


def _verify(prediction: "Prediction", *, quiet: bool) -> "list[Measured]":
    from d3s.lab.design.verify import VERIFIED_DEPTHS, verify

    words = f"Simulating planes at {VERIFIED_DEPTHS} depths ..."
    with progress_bar(VERIFIED_DEPTHS, words, quiet=quiet) as progress:
        return verify(prediction, progress=progress)


def _tolerances(prediction: "Prediction", wish: Any) -> Any:
    from d3s.lab.design.tolerances import tolerances

    return tolerances(prediction, wish)


def _write(told: Any, options: dict[str, Any]) -> list[str]:
    """Write the files that are asked for; returns a line on each."""
    lines = []
    force = options["force"]
    if options["output"] is not None:
        from d3s.cli.design.words import remarks
        from d3s.lab.design.design_file import save_design

        save_design(options["output"], told.prediction.camera, remarks(told), overwrite=force)
        lines.append(f"Design:  {options['output']}")
    if options["chart"] is not None:
        from d3s.estimate.plot.save import save_figure
        from d3s.lab.view.design import plot_design

        figure = plot_design(told.prediction, told.wish, told.measured)
        save_figure(figure, options["chart"], overwrite=force)
        lines.append(f"Chart:   {options['chart']}")
    if options["report"] is not None:
        from d3s.lab.view.design_page import write_design

        if not (options["quiet"] or options["as_json"]):
            say_step("Computing the table of the sliders ...")
        write_design(told, options["report"], overwrite=force)
        lines.append(f"Report:  {options['report']}")
    return lines
