"""`d3s design`: from numbers of a camera to its errors, or from a wish to cameras."""

import inspect
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import PAPER
from d3s.cli.options import depth_range_m, length_m, numbers, shape_px
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
    from d3s.lab.design.predict import ErrorLimit
    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.search import Search
    from d3s.lab.design.wall import Lighting, Wall

_NUMBERS = ("baseline", "focal_length", "f_number", "focus")
_STOCK = "stock"
_SENSOR_PX = "2160x3840"  # that of the paper, if nothing else is said
_TYPES = {"float": float, "Path": Path, "list[Path]": list[Path], "list[str]": list[str]}
# Options by the panel of the help page: the name with the type or form of a value, and the help.
_PANELS = {
    "Camera": {
        "rig str": "Rig file of the camera, or paper for the paper's prototype.",
        "baseline LENGTH": "Distance of the lens centres, such as 3.84mm.",
        "focal_length LENGTH": "Focal length of both lenses, such as 12mm.",
        "f_number float": "Focal length over the opening of a lens.",
        "focus LEFT:RIGHT": "Distances in focus of the left and the right lens, such as 0.81:0.88.",
        "pixel LENGTH": "Pixel pitch, such as 2um.",
        "pixels ROWSxCOLS": "Rows and columns of the sensor: 2160x3840.",
        "sensor list[str]": "Sensor of the catalogue by its name; repeat it to choose from "
        "several.",
        "lens list[str]": "Lens of the catalogue by its name, or stock for all of them; repeat it "
        "to choose from several.",
        "catalogue list[Path]": "Catalogue of your own, which adds to ours.",
    },
    "Wish": {
        "reach NEAR:FAR": "Nearest and farthest depth, such as 0.3:2.",
        "error ERROR": "Largest mean absolute error, a length or a share of the depth: 1cm, 1%; "
        "1 cm if left.",
        "max_size LENGTH": "Longest side of lenses and sensor together, such as 15mm.",
        "min_field float": "Least horizontal field of view in degrees; 20 if left.",
        "calibration_px float": "Disparity that a calibration leaves, for the search; 0.01 px if "
        "left.",
    },
    "Light": {
        "noise float": "Noise of a pixel, of full scale; 0.01 if left.",
        "lux float": "Illuminance of the scene, in lux, in place of --noise.",
        "exposure float": "Exposure time in milliseconds; 10 if left.",
        "full_well float": "Electrons that a pixel holds; 10000 if left.",
        "read_noise float": "Read noise in electrons; 3 if left.",
        "efficiency float": "Electrons per photon; 0.6 if left.",
    },
    "Texture": {
        "texture str": "natural, a pattern of d3s simulate, or an image file; natural if left.",
        "contrast float": "Contrast of the natural texture, of full scale; 0.15.",
        "spectrum float": "Exponent by which the power of the natural texture falls; 2 if left.",
    },
    "Files": {
        "output Path": "Rig file of the design to write.",
        "report Path": "Report to write, one page of HTML.",
        "chart Path": "Chart to write, PNG, PDF or SVG.",
        "name str": "Name of the camera.",
    },
}


def design(
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Simulate the camera, and measure planes with it.")
    ] = False,
    tolerances: Annotated[
        bool, typer.Option("--tolerances", help="Tell what mounting errors and warmth do.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Predict the errors of a camera before it is built, or find cameras for a wish.

    With all numbers of a camera: sigma and error over depth, working range, size. With --reach and
    --error, and some numbers left out: the smallest, the brightest and the most exact camera. If
    no camera meets the wish, it says which wish to relax, and exits with 1.
    """
    import d3s.lab.design as lab
    from d3s.cli.design_tables import refusal, tell
    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.verify import VERIFIED_DEPTHS, frames_per_second

    check_suffix(options["output"], "--output", ".toml")
    check_suffix(options["report"], "--report", ".html", ".htm")
    check_suffix(options["chart"], "--chart", ".png", ".pdf", ".svg")
    paths = (options["output"], options["report"], options["chart"])
    check_places(*(path for path in paths if path is not None), force=force)
    quiet = quiet or as_json
    light, wall = _light_of(options), _wall_of(options)
    search = None
    if _is_whole(options):
        camera = _camera_of(options, quiet=quiet)
    else:
        search = _search(options, light, wall, quiet=quiet)
        if not search.answers:
            if as_json:
                say_json({"answers": [], "relaxed": search.relaxed})
            else:
                typer.echo(refusal(search), err=True)
            raise typer.Exit(NOTHING_USABLE)
        camera = search.answers[0].camera.replace(name=options["name"] or "design")
    reach_m = None if options["reach"] is None else depth_range_m(options["reach"])
    prediction = lab.predict(camera, reach_m=reach_m, light=light, wall=wall)
    wish = _error_of(options["error"])
    measured = []
    if verify:
        words = f"Simulating planes at {VERIFIED_DEPTHS} depths ..."
        with progress_bar(VERIFIED_DEPTHS, words, quiet=quiet) as progress:
            measured = lab.verify(prediction, progress=progress)
    needs_tolerances = tolerances or options["report"]
    ends = float(prediction.depth_m[0]), float(prediction.depth_m[-1])
    told = DesignReport(
        prediction=prediction,
        wish=wish,
        frames_per_s=frames_per_second(camera, ends),
        search=search,
        measured=tuple(measured),
        tolerances=tuple(lab.tolerances(prediction, wish)) if needs_tolerances else (),
    )
    files = _write(told, options, force=force, quiet=quiet)
    if as_json:
        say_json(told.as_json())
    elif not quiet:
        tell(told, show_tolerances=tolerances)
        for line in files:
            typer.echo(line)


def _parameters() -> list[inspect.Parameter]:
    """Options as typer reads them: those of the panels, then those of the command itself."""
    *own, _ = inspect.signature(design).parameters.values()
    found = []
    for panel, options in _PANELS.items():
        for key, text in options.items():
            name, form = key.split()
            told: dict[str, Any] = {} if form in (*_TYPES, "str") else {"metavar": form}
            kind: Any = _TYPES.get(form, str)
            if form == "LENGTH":
                kind, told["parser"] = float, length_m
            flags = ("--output", "-o") if name == "output" else ()
            told |= {"help": text, "rich_help_panel": panel, "show_default": False}
            annotation = Annotated[kind | None, typer.Option(*flags, **told)]
            found.append(own[0].replace(name=name, annotation=annotation, default=None))
    return found + own


design.__signature__ = inspect.Signature(_parameters())  # type: ignore[attr-defined]
design.__annotations__ = {one.name: one.annotation for one in _parameters()}


def _search(options: dict[str, Any], light: "Lighting", wall: "Wall", *, quiet: bool) -> "Search":
    from d3s.lab.design.search import GOALS, ROUNDS, search

    wish, given = _wish_of(options), _given_of(options)
    words = "Searching cameras ..."
    with progress_bar(len(GOALS) * ROUNDS, words, quiet=quiet) as progress:
        return search(wish, given, light=light, wall=wall, progress=progress)


def _write(told: "DesignReport", options: dict[str, Any], *, force: bool, quiet: bool) -> list[str]:
    """Write the files that are asked for; returns a line on each."""
    from d3s.cli.design_tables import remarks
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.design.report import save_design
    from d3s.lab.view.design import plot_design, write_design

    output, chart, report = (options[one] for one in ("output", "chart", "report"))
    if output is not None:
        save_design(output, told.prediction.camera, remarks(told), overwrite=force)
    if chart is not None:
        figure = plot_design(told.prediction, told.wish, told.measured)
        save_figure(figure, chart, overwrite=force)
    if report is not None:
        if not quiet:
            say_step("Drawing the page ...")
        write_design(told, report, overwrite=force)
    files = {"Design:  ": output, "Chart:   ": chart, "Report:  ": report}
    return [f"{title}{path}" for title, path in files.items() if path is not None]


def _is_whole(options: dict[str, Any]) -> bool:
    """Whether all numbers of one camera are given, so that nothing is to be searched."""
    sensor: list[str] = options["sensor"] or []
    lens: list[str] = options["lens"] or []
    has_lens = options["focal_length"] is not None or (len(lens) == 1 and lens[0] != _STOCK)
    has_sensor = options["pixel"] is not None or len(sensor) == 1
    others = all(options[name] is not None for name in ("baseline", "f_number", "focus"))
    return options["rig"] is not None or (others and has_lens and has_sensor)


def _camera_of(options: dict[str, Any], *, quiet: bool) -> "Camera":
    """Camera of a rig file, or of numbers."""
    from d3s.lab.design.camera import Camera

    if options["rig"] is not None:
        return _from_rig(options, quiet=quiet)
    sensors, lenses, _ = _parts(options)
    sensor: Any = sensors[0] if sensors else None
    lens: Any = lenses[0] if lenses else None
    shape = shape_px(options["pixels"]) if options["pixels"] else sensor and sensor.shape
    return Camera.of_lenses(
        focal_length_m=options["focal_length"] or lens.focal_length_m,
        f_number=options["f_number"],
        baseline_m=options["baseline"],
        focus_m=_focus_pair_m(options["focus"]),
        pixel_pitch_m=options["pixel"] or sensor.pixel_pitch_m,
        lens_diameter_m=lens and lens.diameter_m,
        lens_length_m=lens and lens.length_m,
        name=options["name"] or "design",
        sensor_px=shape or shape_px(_SENSOR_PX),
    )


def _from_rig(options: dict[str, Any], *, quiet: bool) -> "Camera":
    from d3s.lab.design.camera import Camera
    from d3s.rig import Rig

    taken = [one for one in (*_NUMBERS, "pixel", "sensor", "lens") if options[one] is not None]
    if taken:
        flag = "--" + taken[0].replace("_", "-")
        raise typer.BadParameter(f"--rig says all of the camera: leave it, or {flag}.")
    if options["rig"] == PAPER:
        return Camera.paper_prototype()
    rig = Rig.load(options["rig"])
    found = rig.calibration
    if options["pixels"]:
        shape = shape_px(options["pixels"])
    elif found and found.frame_rows_px is not None and found.frame_cols_px is not None:
        shape = found.frame_rows_px, found.frame_cols_px
    else:
        shape = shape_px(_SENSOR_PX)
        if not quiet:
            say_step(
                f"{options['rig']} does not say how large the sensor is: {_SENSOR_PX} is taken, or "
                "give --pixels."
            )
    return Camera(name=rig.name, optics=rig.optics, sensor_px=shape)


def _parts(options: dict[str, Any]) -> tuple[Any, Any, "Catalogue"]:
    """Sensors and lenses that are named, and the catalogue."""
    from d3s.lab.design.candidates import load_catalogue

    with value_of("--catalogue"):
        catalogue = load_catalogue(*(options["catalogue"] or ()))
    with value_of("--sensor"):
        sensors = tuple(catalogue.sensor(one) for one in options["sensor"] or ())
    names = options["lens"] or ()
    with value_of("--lens"):
        lenses = tuple(catalogue.lens(one) for one in names if one != _STOCK)
    return sensors, catalogue.lenses if _STOCK in names else lenses, catalogue


def _given_of(options: dict[str, Any]) -> "FixedValues":
    """Values of the camera that are not to be searched."""
    from d3s.lab.design.candidates import FixedValues, ImageSensor

    sensors, lenses, catalogue = _parts(options)
    if options["pixel"] is not None:
        rows, cols = shape_px(options["pixels"] or _SENSOR_PX)
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
    error, field_deg = _error_of(options["error"]), options["min_field"]
    return Requirements(
        reach_m=depth_range_m(options["reach"]),
        error_m=error.error_m,
        error_share=error.share,
        max_size_m=options["max_size"],
        **({} if field_deg is None else {"min_field_rad": math.radians(field_deg)}),
        **_given(options, calibration_px="calibration_px"),
    )


def _given(options: dict[str, Any], **fields: str) -> dict[str, Any]:
    """Values of the options that are given, by the names of their fields."""
    return {to: options[one] for to, one in fields.items() if options[one] is not None}


def _error_of(text: str | None) -> "ErrorLimit":
    """Largest error, from 1cm, 0.01 or 1%."""
    from d3s.lab.design.predict import ONE_CENTIMETRE, ErrorLimit

    if text is None:
        return ONE_CENTIMETRE
    number, sign, rest = text.strip().partition("%")
    if not sign:
        error_m = length_m(text)
        if error_m <= 0:
            raise typer.BadParameter(f"{text!r} must be above 0.", param_hint="--error")
        return ErrorLimit(error_m=error_m)
    share = numbers(number)[0] / 100 if numbers(number) and not rest else 0.0
    if not 0 < share < 1:
        raise typer.BadParameter(
            f"{text!r} is no error. Write a length or a share of the depth: 1cm, 1%.",
            param_hint="--error",
        )
    return ErrorLimit(share=share)


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
    fields = _given(
        options,
        noise="noise",
        illuminance_lx="lux",
        exposure_s="exposure",
        full_well_e="full_well",
        read_noise_e="read_noise",
        quantum_efficiency="efficiency",
    )
    if "exposure_s" in fields:
        fields["exposure_s"] /= 1000
    return Lighting(**fields)


def _wall_of(options: dict[str, Any]) -> "Wall":
    """Texture."""
    from d3s.lab.design.wall import NATURAL, Wall

    is_natural = options["texture"] in (None, NATURAL)
    taken = [one for one in ("contrast", "spectrum") if options[one] is not None]
    if taken and not is_natural:
        raise typer.BadParameter(
            f"--{taken[0]} is for the natural texture: leave it, or --texture."
        )
    return Wall(**_given(options, texture="texture", contrast="contrast", slope="spectrum"))
