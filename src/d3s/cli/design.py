"""`d3s design`: from numbers of a camera to its errors, or from a wish to cameras."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.camera import PAPER, given_rig
from d3s.cli.options import FieldOptions, Given, Telling
from d3s.cli.output import (
    NOTHING_USABLE,
    check_places,
    check_suffix,
    end,
    progress_bar,
    say_files,
    say_json,
    say_step,
    show,
    table,
    value_of,
)
from d3s.cli.values import Length, Shape, length_m

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.design.camera import Camera
    from d3s.lab.design.candidates import Catalogue, Requirements
    from d3s.lab.design.predict import ErrorLimit
    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.search import Search
    from d3s.lab.design.wall import Lighting, Wall

_ALL = "all"
_SENSOR_PX = 2160, 3840  # that of the paper, if nothing else is said
_CAMERA = FieldOptions(
    "d3s.lab.design.candidates.FixedValues", "Camera", leave=("sensors", "lenses")
)
_WISH = FieldOptions(
    "d3s.lab.design.candidates.Requirements",
    "Wish",
    leave=("error_m", "error_share", "min_light_um2"),
    names={"reach_m": "depth-range"},
)
_LIGHT = FieldOptions(
    "d3s.lab.design.wall.Lighting",
    "Light",
    leave=("transmission", "bits"),
    names={"illuminance_lx": "lux", "quantum_efficiency": "efficiency"},
)
_WALL = FieldOptions(
    "d3s.lab.design.wall.Wall", "Texture", leave=("width_m",), names={"slope": "spectrum"}
)


def design(
    *,
    rig: str | None = None,
    camera: Annotated[Given, _CAMERA],
    pixel_pitch: Length = None,
    shape: Shape = None,
    sensor: list[str] | None = None,
    stock_lens: list[str] | None = None,
    catalogue: list[Path] | None = None,
    wish: Annotated[Given, _WISH],
    error: str | None = None,
    light: Annotated[Given, _LIGHT],
    wall: Annotated[Given, _WALL],
    verify: bool = False,
    tolerances: bool = False,
    output: Path | None = None,
    report: Path | None = None,
    chart: Path | None = None,
    name: str = "design",
    telling: Telling,
) -> None:
    """Predict the errors of a camera before it is built, or find cameras for a wish.

    With all numbers of a camera: sigma and error over depth, working range, size. With
    --depth-range and --error, and some numbers left out: the smallest, the brightest and the most
    exact camera. If no camera meets the wish, it says which wish to relax, and exits with 1.

    Options:
        pixel_pitch: Pixel pitch, such as 2um.
        sensor: Sensor of the catalogue by its name; repeat it to choose from several.
        stock_lens: Lens of the catalogue by its name, or all; repeat it to choose from several.
        catalogue: Catalogue of your own, which adds to ours.
        error: Largest mean absolute error, a length or a share of the depth: 1cm, 1%; 1 cm if left.
        verify: Simulate the camera, and measure planes with it.
        tolerances: Tell what mounting errors and warmth do.
        output: Rig file of the design to write.
        chart: Chart to write, PNG, PDF or SVG.
        name: Name of the camera.
    """
    import d3s.lab.design as lab
    from d3s.lab.design.report import DesignReport
    from d3s.lab.design.verify import VERIFIED_DEPTHS, frames_per_second

    check_suffix(output, "--output", ".toml")
    check_suffix(report, "--report", ".html", ".htm")
    check_suffix(chart, "--chart", ".png", ".pdf", ".svg")
    check_places(output, report, chart, force=telling.force)
    lighting, surface, limit = _light_of(light), _wall_of(wall), _error_of(error)
    parts = _Parts(camera, pixel_pitch, shape, sensor or [], stock_lens or [], catalogue or [])
    search = None
    if rig is not None:
        found = _from_rig(rig, parts, quiet=telling.is_silent)
    elif parts.are_whole:
        found = parts.camera(name)
    else:
        search = _search(parts, _wish_of(wish, limit), lighting, surface, quiet=telling.is_silent)
        if not search.answers:
            if telling.as_json:
                say_json({"answers": [], "relaxed": search.relaxed})
            else:
                say_step(_refusal(search))
            end(NOTHING_USABLE)
        found = search.answers[0].camera.replace(name=name)
    prediction = lab.predict(found, reach_m=wish.get("reach_m"), light=lighting, wall=surface)
    measured = []
    if verify:
        words = f"Simulating planes at {VERIFIED_DEPTHS} depths ..."
        with progress_bar(VERIFIED_DEPTHS, words, quiet=telling.is_silent) as progress:
            measured = lab.verify(prediction, progress=progress)
    ends = float(prediction.depth_m[0]), float(prediction.depth_m[-1])
    told = DesignReport(
        prediction=prediction,
        wish=limit,
        frames_per_s=frames_per_second(found, ends),
        search=search,
        measured=tuple(measured),
        tolerances=tuple(lab.tolerances(prediction, limit)) if tolerances or report else (),
    )
    files = {"Design": output, "Chart": chart, "Report": report}
    _write(told, files, telling)
    if telling.as_json:
        say_json(told.as_json())
    elif not telling.quiet:
        show(*_tables(told, show_tolerances=tolerances))
        say_files(files)


# Camera and wish ----------------------------------------------------------------------------------


class _Parts:
    """Numbers of a camera, and parts of the catalogue to choose from."""

    def __init__(
        self,
        numbers: Given,
        pixel_pitch_m: float | None,
        shape: tuple[int, int] | None,
        sensors: list[str],
        lenses: list[str],
        catalogues: list[Path],
    ) -> None:
        self.numbers, self.pixel_pitch_m, self.shape = numbers, pixel_pitch_m, shape
        self.is_given = bool(numbers or sensors or lenses or pixel_pitch_m)
        has_lens = "focal_length_m" in numbers or (len(lenses) == 1 and lenses[0] != _ALL)
        has_sensor = pixel_pitch_m is not None or len(sensors) == 1
        rest = {"baseline_m", "f_number", "focus_m"}
        self.are_whole = has_lens and has_sensor and numbers.keys() >= rest
        self._names = sensors, lenses, catalogues

    def _catalogue(self) -> "tuple[Any, Any, Catalogue]":
        """Sensors and lenses that are named, and the catalogue."""
        from d3s.lab.design.candidates import load_catalogue

        sensors, lenses, catalogues = self._names
        with value_of("--catalogue"):
            catalogue = load_catalogue(*catalogues)
        with value_of("--sensor"):
            named = tuple(catalogue.sensor(one) for one in sensors)
        with value_of("--stock-lens"):
            stock = tuple(catalogue.lens(one) for one in lenses if one != _ALL)
        return named, catalogue.lenses if _ALL in lenses else stock, catalogue

    def camera(self, name: str) -> "Camera":
        """Camera whose numbers are all given."""
        from d3s.lab.design.camera import Camera

        sensors, lenses, _ = self._catalogue()
        sensor: Any = next(iter(sensors), None)
        lens: Any = next(iter(lenses), None)
        numbers = {"focal_length_m": lens and lens.focal_length_m, **self.numbers}
        return Camera.of_lenses(
            **numbers,
            pixel_pitch_m=self.pixel_pitch_m or sensor.pixel_pitch_m,
            lens_diameter_m=lens and lens.diameter_m,
            lens_length_m=lens and lens.length_m,
            name=name,
            sensor_px=self.shape or (sensor.shape if sensor else _SENSOR_PX),
        )

    def fixed(self) -> Any:
        """Values of the camera that are not to be searched."""
        from d3s.lab.design.candidates import FixedValues, ImageSensor

        sensors, lenses, catalogue = self._catalogue()
        if self.pixel_pitch_m is not None:
            rows, cols = self.shape or _SENSOR_PX
            with value_of("--pixel-pitch or --shape"):
                own = ImageSensor(
                    name="own", pixel_pitch_m=self.pixel_pitch_m, rows_px=rows, cols_px=cols
                )
            sensors = (own,)
        return FixedValues(**self.numbers, sensors=sensors or catalogue.sensors, lenses=lenses)


def _from_rig(word: str, parts: _Parts, *, quiet: bool) -> "Camera":
    """Camera of a rig file."""
    from d3s.lab.design.camera import Camera

    if parts.is_given:
        raise typer.BadParameter("--rig says all of the camera: leave it, or the numbers.")
    if word == PAPER:
        return Camera.paper_prototype()
    rig: Any = given_rig(word, quiet=quiet)
    known = rig.calibration
    shape = parts.shape
    if shape is None and known and known.frame_rows_px is not None:
        shape = known.frame_rows_px, known.frame_cols_px
    if shape is None:
        shape = _SENSOR_PX
        if not quiet:
            say_step(
                f"{word} does not say how large the sensor is: {shape[0]}x{shape[1]} is taken, or "
                "give --shape."
            )
    return Camera(name=rig.name, optics=rig.optics, sensor_px=shape)


def _search(
    parts: _Parts, wish: "Requirements", light: "Lighting", wall: "Wall", *, quiet: bool
) -> "Search":
    from d3s.lab.design.search import GOALS, ROUNDS, search

    given = parts.fixed()
    with progress_bar(len(GOALS) * ROUNDS, "Searching cameras ...", quiet=quiet) as progress:
        return search(wish, given, light=light, wall=wall, progress=progress)


def _wish_of(given: Given, limit: "ErrorLimit") -> "Requirements":
    """Wish for a search; refuses to guess a reach."""
    from d3s.lab.design.candidates import Requirements

    if "reach_m" not in given:
        raise typer.BadParameter(
            "which camera? Give --rig, or all of --baseline, --focal-length, --f-number, --focus "
            "and --pixel-pitch (or --sensor); or say what it shall do, with --depth-range and "
            "--error, and cameras are searched."
        )
    return Requirements(**given, error_m=limit.error_m, error_share=limit.share)


def _error_of(text: str | None) -> "ErrorLimit":
    """Largest error, from 1cm, 0.01 or 1%."""
    from d3s.lab.design.predict import ONE_CENTIMETRE, ErrorLimit

    if text is None:
        return ONE_CENTIMETRE
    try:
        is_share = text.strip().endswith("%")
        value = float(text.strip()[:-1]) / 100 if is_share else length_m(text)
    except ValueError:
        value = 0.0
    if not 0 < value < (1 if is_share else 100):
        raise typer.BadParameter(
            f"{text!r} must be above 0: a length or a share of the depth, 1cm or 1%.",
            param_hint="--error",
        )
    return ErrorLimit(share=value) if is_share else ErrorLimit(error_m=value)


def _light_of(given: Given) -> "Lighting":
    """Noise or light level."""
    from d3s.lab.design.wall import Lighting

    if given.keys() >= {"noise", "illuminance_lx"}:
        raise typer.BadParameter("--lux tells the noise: leave it, or --noise.")
    more = [name for name in given if name != "noise"]
    if more and "illuminance_lx" not in given:
        flag = _LIGHT.flag_of(more[0])
        raise typer.BadParameter(f"{flag} is for --lux: give the illuminance too.")
    return Lighting(**given)


def _wall_of(given: Given) -> "Wall":
    """Texture."""
    from d3s.lab.design.wall import NATURAL, Wall

    more = [name for name in given if name != "texture"]
    if more and given.get("texture", NATURAL) != NATURAL:
        flag = _WALL.flag_of(more[0])
        raise typer.BadParameter(f"{flag} is for the natural texture: leave it, or --texture.")
    return Wall(**given)


# Files and words ----------------------------------------------------------------------------------


def _write(told: "DesignReport", files: dict[str, Path | None], telling: Telling) -> None:
    """Write the files that are asked for."""
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.design.report import save_design
    from d3s.lab.view.design import plot_design, write_design

    output, chart, report = files.values()
    if output is not None:
        camera = told.prediction.camera
        save_design(output, camera, [_remark(told)], overwrite=telling.force)
    if chart is not None:
        figure = plot_design(told.prediction, told.wish, told.measured)
        save_figure(figure, chart, overwrite=telling.force)
    if report is not None:
        if not telling.is_silent:
            say_step("Drawing the page ...")
        write_design(told, report, overwrite=telling.force)


def _remark(report: "DesignReport") -> str:
    """Sentence for the top of a design file."""
    found = report.working_range_m
    ends = "none" if found is None else f"{found[0]:.3g} to {found[1]:.3g} m"
    return (
        f"Predicted working range for {report.wish}: {ends}, with "
        f"{100 * report.prediction.noise_sigma:.2g} % noise; perfect lenses."
    )


def _refusal(search: "Search") -> str:
    """Sentence for a wish that no camera meets."""
    if not search.relaxed:
        return (
            f"No camera meets this wish, of {search.tried} that were tried, nor with a single wish "
            "relaxed. Relax two: a smaller reach and a larger error."
        )
    options = "; or ".join(search.relaxed.values())
    return f"No camera meets this wish, of {search.tried} that were tried. Relax one: {options}."


def _tables(report: "DesignReport", *, show_tolerances: bool) -> "list[Table]":
    """Tables of a design, to fit 80 characters."""
    from d3s.lab.design.report import answer_cells, tolerance_cells

    tables = []
    if report.search is not None:
        columns = [answer_cells(one) for one in report.search.answers]
        answers = [[title, *(one[title] for one in columns)] for title in columns[0]]
        goals = ["", *(one.goal for one in report.search.answers)]
        tables += [table(goals, answers, is_narrow=True), _front(report.search)]
    tables += [
        table(("", ""), report.facts(), title=report.prediction.camera.name),
        table(
            (
                *("depth", "error", "sigma", "noise", "model", "stereo", "defocus", "bound"),
                *("shift", "blur", "kept"),
            ),
            report.depth_rows(),
            caption="Depth in m, errors in mm: mean absolute error, sigma, its parts by noise and "
            "by the model of the blur, sigma by stereo and by defocus alone, least possible sigma; "
            "disparity (shift) and blur radii of both views in px; textured pixels with a depth.",
            is_narrow=True,
        ),
    ]
    if report.measured:
        tables.append(_measured(report))
    if show_tolerances:
        tables.append(
            table(
                ("cause", "amount", "before", "calibrated", "checked", "loosest"),
                map(tolerance_cells, report.tolerances),
                caption="Errors before and after a calibration and after d3s check, at the depth "
                "where they are largest compared with the wish; the loosest amount keeps it after "
                "a calibration.",
                is_narrow=True,
            )
        )
    return tables


def _front(search: "Search") -> "Table":
    from d3s.lab.design.report import answer_cells

    keys = {
        "size (mm)": "longest side (mm)",
        "light (um2)": "light (um2)",
        "reaches (m)": "reaches (m)",
        "sensor": "sensor",
        "f (mm)": "focal length (mm)",
        "f/": "f-number",
        "B (mm)": "baseline (mm)",
    }
    rows = ([one[key] for key in keys.values()] for one in map(answer_cells, search.front))
    title = "None is smaller, brighter and reaches farther than another"
    return table(list(keys), rows, title=title, is_narrow=True)


def _measured(report: "DesignReport") -> "Table":
    import numpy as np

    rows = []
    for one in report.measured:
        prediction = report.prediction
        predicted_m = float(np.interp(one.depth_m, prediction.depth_m, prediction.mae_m))
        rows.append(
            (
                f"{one.depth_m:.3g}",
                f"{1e3 * one.mae_m:.3g}",
                f"{1e3 * predicted_m:.3g}",
                f"{one.mae_m / predicted_m:.2f}",
                f"{one.density:.0%}",
                "meets the wish" if one.meets(report.wish) else "misses the wish",
            )
        )
    heads = "depth (m)", "measured (mm)", "predicted (mm)", "ratio", "kept", ""
    return table(heads, rows, is_narrow=True)
