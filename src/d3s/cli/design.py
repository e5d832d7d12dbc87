"""`d3s design`: from numbers of a camera to its errors, or from a wish to cameras."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import PAPER
from d3s.cli.options import depth_range_m, length_m, shape_px
from d3s.cli.output import (
    NOTHING_USABLE,
    Force,
    Json,
    Quiet,
    check_places,
    check_suffix,
    progress_bar,
    say_json,
    say_step,
    value_of,
)

if TYPE_CHECKING:
    from d3s.lab.design.camera import Camera
    from d3s.lab.design.candidates import Catalogue, FixedValues, Requirements
    from d3s.lab.design.predict import ErrorLimit, Prediction
    from d3s.lab.design.search import Search
    from d3s.lab.design.verify import MeasuredErrors
    from d3s.lab.design.wall import Lighting, Wall
    from d3s.rig import Rig

_NUMBERS = ("baseline", "focal_length", "f_number", "focus")
_STOCK = "stock"
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
    report: Annotated[Path | None, _option(_FILES, "Report to write, one page of HTML.")] = None,
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
    light, wall = _light_of(options), _wall_of(options)
    if _is_whole(options):
        camera = _camera_of(options)
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
    check_suffix(output, "--output", ".toml")
    check_suffix(report, "--report", ".html", ".htm")
    check_suffix(chart, "--chart", ".png", ".pdf", ".svg")
    check_places(*(path for path in paths if path is not None), force=force)


def _search(options: dict[str, Any], light: Any, wall: Any, *, quiet: bool) -> "Search":
    from d3s.lab.design.search import GOALS, ROUNDS, search

    wish, given = _wish_of(options), _given_of(options)
    words = "Searching cameras ..."
    with progress_bar(len(GOALS) * ROUNDS, words, quiet=quiet) as progress:
        return search(wish, given, light=light, wall=wall, progress=progress)


def _refuse(search: "Search", *, as_json: bool) -> None:
    from d3s.cli.design_tables import refusal

    if as_json:
        say_json({"answers": [], "relaxed": search.relaxed})
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
    from d3s.cli.design_tables import tell
    from d3s.lab.design.predict import predict
    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.tolerances import tolerances
    from d3s.lab.design.verify import frames_per_second

    is_quiet = options["quiet"] or options["as_json"]
    prediction = predict(camera, reach_m=reach_m, light=light, wall=wall)
    wish = _error_of(options["error"])
    measured = _verify(prediction, quiet=is_quiet) if options["verify"] else []
    table = tolerances(prediction, wish) if options["tolerances"] or options["report"] else ()
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
        say_json(told.as_json())
    elif not options["quiet"]:
        tell(told, show_tolerances=options["tolerances"])
        for line in files:
            typer.echo(line)


def _verify(prediction: "Prediction", *, quiet: bool) -> "list[MeasuredErrors]":
    from d3s.lab.design.verify import VERIFIED_DEPTHS, verify

    words = f"Simulating planes at {VERIFIED_DEPTHS} depths ..."
    with progress_bar(VERIFIED_DEPTHS, words, quiet=quiet) as progress:
        return verify(prediction, progress=progress)


def _write(told: Any, options: dict[str, Any]) -> list[str]:
    """Write the files that are asked for; returns a line on each."""
    lines = []
    force = options["force"]
    if options["output"] is not None:
        from d3s.cli.design_tables import remarks
        from d3s.lab.design.report import save_design

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
            say_step("Drawing the page ...")
        write_design(told, options["report"], overwrite=force)
        lines.append(f"Report:  {options['report']}")
    return lines


def _is_whole(options: dict[str, Any]) -> bool:
    """Whether all numbers of one camera are given, so that nothing is to be searched."""
    if options["rig"] is not None:
        return True
    has_lens = options["focal_length"] is not None or _is_one(options["lens"])
    has_sensor = options["pixel"] is not None or _is_one(options["sensor"])
    others = all(options[name] is not None for name in ("baseline", "f_number", "focus"))
    return others and has_lens and has_sensor


def _is_one(names: list[str] | None) -> bool:
    return names is not None and len(names) == 1 and names[0] != _STOCK


def _camera_of(options: dict[str, Any]) -> "Camera":
    """Camera of a rig file, or of numbers."""
    from d3s.lab.design.camera import Camera

    if options["rig"] is not None:
        return _from_rig(options)
    sensor, lens = _parts(options)
    rows_cols = shape_px(options["pixels"]) if options["pixels"] else None
    shape = rows_cols or (sensor.shape if sensor else None)
    return Camera.of_lenses(
        focal_length_m=options["focal_length"] or lens.focal_length_m,
        f_number=options["f_number"],
        baseline_m=options["baseline"],
        focus_m=_focus_pair_m(options["focus"]),
        pixel_pitch_m=options["pixel"] or sensor.pixel_pitch_m,
        lens_diameter_m=lens.diameter_m if lens else None,
        lens_length_m=lens.length_m if lens else None,
        name=options["name"],
        **({} if shape is None else {"sensor_px": shape}),
    )


def _from_rig(options: dict[str, Any]) -> "Camera":
    from d3s.lab.design.camera import Camera
    from d3s.rig import Rig

    taken = [one for one in (*_NUMBERS, "pixel", "sensor", "lens") if options[one] is not None]
    if taken:
        flag = "--" + taken[0].replace("_", "-")
        raise typer.BadParameter(f"--rig says all of the camera: leave it, or {flag}.")
    if options["rig"] == PAPER:
        return Camera.paper_prototype()
    rig = Rig.load(options["rig"])
    shape = shape_px(options["pixels"]) if options["pixels"] else _frame_px(rig)
    if shape is not None:
        return Camera(name=rig.name, optics=rig.optics, sensor_px=shape)
    camera = Camera(name=rig.name, optics=rig.optics)
    if not (options["quiet"] or options["as_json"]):
        rows, cols = camera.sensor_px
        say_step(
            f"{options['rig']} does not say how large the sensor is: {rows}x{cols} is taken, or "
            "give --pixels."
        )
    return camera


def _frame_px(rig: "Rig") -> tuple[int, int] | None:
    """Rows and columns of the sensor, if a calibration has seen its frames."""
    found = rig.calibration
    if found is None or found.frame_rows_px is None or found.frame_cols_px is None:
        return None
    return found.frame_rows_px, found.frame_cols_px


def _parts(options: dict[str, Any]) -> tuple[Any, Any]:
    """Sensor and lens of the catalogue; None if not given."""
    catalogue = _catalogue(options)
    sensor = lens = None
    if options["sensor"]:
        with value_of("--sensor"):
            sensor = catalogue.sensor(options["sensor"][0])
    if options["lens"]:
        with value_of("--lens"):
            lens = catalogue.lens(options["lens"][0])
    return sensor, lens


def _catalogue(options: dict[str, Any]) -> "Catalogue":
    from d3s.lab.design.candidates import load_catalogue

    with value_of("--catalogue"):
        return load_catalogue(*(options["catalogue"] or ()))


def _given_of(options: dict[str, Any]) -> "FixedValues":
    """Values of the camera that are not to be searched."""
    from d3s.lab.design.candidates import FixedValues, ImageSensor

    catalogue = _catalogue(options)
    with value_of("--sensor"):
        sensors = tuple(catalogue.sensor(one) for one in options["sensor"] or ())
    with value_of("--lens"):
        names = options["lens"] or ()
        lenses = (
            catalogue.lenses if _STOCK in names else tuple(catalogue.lens(one) for one in names)
        )
    if options["pixel"] is not None:
        rows, cols = shape_px(options["pixels"] or "2160x3840")
        pitch_m = options["pixel"]
        with value_of("--pixel or --pixels"):
            own = ImageSensor(name="own", pixel_pitch_m=pitch_m, rows_px=rows, cols_px=cols)
        sensors = (own,)
    return FixedValues(
        focal_length_m=options["focal_length"],
        f_number=options["f_number"],
        baseline_m=options["baseline"],
        focus_m=_focus_pair_m(options["focus"]) if options["focus"] else None,
        sensors=sensors or catalogue.sensors,
        lenses=lenses,
    )


def _wish_of(options: dict[str, Any]) -> "Requirements":
    """Wish for a search; refuses to guess a reach."""
    from d3s.lab.design.candidates import Requirements

    if options["reach"] is None:
        raise typer.BadParameter(
            "which camera? Give --rig, or all of --baseline, --focal-length, --f-number, --focus "
            "and --pixel (or --sensor); or say what it shall do, with --reach and --error, and "
            "cameras are searched."
        )
    error = _error_of(options["error"])
    field_deg = options["min_field"]
    field = {} if field_deg is None else {"min_field_rad": math.radians(field_deg)}
    left_px = options["calibration_px"]
    left = {} if left_px is None else {"calibration_px": left_px}
    return Requirements(
        reach_m=depth_range_m(options["reach"]),
        error_m=error.error_m,
        error_share=error.share,
        max_size_m=options["max_size"],
        **field,
        **left,
    )


def _error_of(text: str | None) -> "ErrorLimit":
    """Largest error, from 1cm, 0.01 or 1%."""
    from d3s.lab.design.predict import ONE_CENTIMETRE, ErrorLimit

    if text is None:
        return ONE_CENTIMETRE
    if text.strip().endswith("%"):
        try:
            share = float(text.strip()[:-1]) / 100
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            raise typer.BadParameter(
                f"{text!r} is no error. Write a length or a share of the depth: 1cm, 1%.",
                param_hint="--error",
            )
        return ErrorLimit(share=share)
    error_m = length_m(text)
    if error_m <= 0:
        raise typer.BadParameter(f"{text!r} must be above 0.", param_hint="--error")
    return ErrorLimit(error_m=error_m)


def _focus_pair_m(text: str) -> tuple[float, float]:
    """Distances in focus of the left and the right lens, from 0.81:0.88 or 1:inf."""
    left, sign, right = text.partition(":")
    if not sign:
        raise typer.BadParameter(
            f"{text!r} is no pair of distances. Write LEFT:RIGHT, such as 0.81:0.88 or 1:inf.",
            param_hint="--focus",
        )
    found = [math.inf if one.strip().lower() == "inf" else length_m(one) for one in (left, right)]
    return found[0], found[1]


def _light_of(options: dict[str, Any]) -> "Lighting":
    """Noise or light level."""
    from d3s.lab.design.wall import Lighting

    if options["noise"] is not None and options["lux"] is not None:
        raise typer.BadParameter("--lux tells the noise: leave it, or --noise.")
    needs_lux = ("exposure", "full_well", "read_noise", "efficiency")
    taken = [one for one in needs_lux if options[one] is not None]
    if taken and options["lux"] is None:
        flag = "--" + taken[0].replace("_", "-")
        raise typer.BadParameter(f"{flag} is for --lux: give the illuminance too.")
    exposure_s = None if options["exposure"] is None else options["exposure"] / 1000
    fields = {
        "noise": options["noise"],
        "illuminance_lx": options["lux"],
        "exposure_s": exposure_s,
        "full_well_e": options["full_well"],
        "read_noise_e": options["read_noise"],
        "quantum_efficiency": options["efficiency"],
    }
    return Lighting(**{name: value for name, value in fields.items() if value is not None})


def _wall_of(options: dict[str, Any]) -> "Wall":
    """Texture."""
    from d3s.lab.design.wall import NATURAL, Wall

    is_natural = options["texture"] in (None, NATURAL)
    taken = [one for one in ("contrast", "spectrum") if options[one] is not None]
    if taken and not is_natural:
        raise typer.BadParameter(
            f"--{taken[0]} is for the natural texture: leave it, or --texture."
        )
    names = {"texture": "texture", "contrast": "contrast", "spectrum": "slope"}
    return Wall(**{to: options[one] for one, to in names.items() if options[one] is not None})
