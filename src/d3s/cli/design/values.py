"""Options of `d3s design` to records of the library."""

import math
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.camera import PAPER
from d3s.cli.output import say_step, value_of
from d3s.cli.units import depth_range_m, length_m, shape_px

if TYPE_CHECKING:
    from d3s.lab.design.camera import Camera
    from d3s.lab.design.catalogue import Catalogue
    from d3s.lab.design.light import Light
    from d3s.lab.design.predict import ErrorWish
    from d3s.lab.design.wall import Wall
    from d3s.lab.design.wish import Given, Wish
    from d3s.rig import Rig

_NUMBERS = ("baseline", "focal_length", "f_number", "focus")
_STOCK = "stock"


def is_whole(options: dict[str, Any]) -> bool:
    """Whether all numbers of one camera are given, so that nothing is to be searched."""
    if options["rig"] is not None:
        return True
    has_lens = options["focal_length"] is not None or _is_one(options["lens"])
    has_sensor = options["pixel"] is not None or _is_one(options["sensor"])
    others = all(options[name] is not None for name in ("baseline", "f_number", "focus"))
    return others and has_lens and has_sensor


def _is_one(names: list[str] | None) -> bool:
    return names is not None and len(names) == 1 and names[0] != _STOCK


def camera_of(options: dict[str, Any]) -> "Camera":
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
        focus_m=focus_pair_m(options["focus"]),
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
    from d3s.lab.design.catalogue import load_catalogue

    with value_of("--catalogue"):
        return load_catalogue(*(options["catalogue"] or ()))


def given_of(options: dict[str, Any]) -> "Given":
    """Values of the camera that are not to be searched."""
    from d3s.lab.design.catalogue import ImageSensor
    from d3s.lab.design.wish import Given

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
    return Given(
        focal_length_m=options["focal_length"],
        f_number=options["f_number"],
        baseline_m=options["baseline"],
        focus_m=focus_pair_m(options["focus"]) if options["focus"] else None,
        sensors=sensors or catalogue.sensors,
        lenses=lenses,
    )


def wish_of(options: dict[str, Any]) -> "Wish":
    """Wish for a search; refuses to guess a reach."""
    from d3s.lab.design.wish import Wish

    if options["reach"] is None:
        raise typer.BadParameter(
            "which camera? Give --rig, or all of --baseline, --focal-length, --f-number, --focus "
            "and --pixel (or --sensor); or say what it shall do, with --reach and --error, and "
            "cameras are searched."
        )
    error = error_of(options["error"])
    field = {} if options["min_field"] is None else _field(options["min_field"])
    left_px = options["calibration_px"]
    left = {} if left_px is None else {"calibration_px": left_px}
    return Wish(
        reach_m=depth_range_m(options["reach"]),
        error_m=error.error_m,
        error_share=error.share,
        max_size_m=options["max_size"],
        **field,
        **left,
    )


def _field(degrees: float) -> dict[str, float]:
    return {"min_field_rad": math.radians(degrees)}


def error_of(text: str | None) -> "ErrorWish":
    """Largest error, from 1cm, 0.01 or 1%."""
    from d3s.lab.design.predict import ONE_CENTIMETRE, ErrorWish

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
        return ErrorWish(share=share)
    error_m = length_m(text)
    if error_m <= 0:
        raise typer.BadParameter(f"{text!r} must be above 0.", param_hint="--error")
    return ErrorWish(error_m=error_m)


def focus_pair_m(text: str) -> tuple[float, float]:
    """Distances in focus of the left and the right lens, from 0.81:0.88 or 1:inf."""
    left, sign, right = text.partition(":")
    if not sign:
        raise typer.BadParameter(
            f"{text!r} is no pair of distances. Write LEFT:RIGHT, such as 0.81:0.88 or 1:inf.",
            param_hint="--focus",
        )
    found = [math.inf if one.strip().lower() == "inf" else length_m(one) for one in (left, right)]
    return found[0], found[1]


def light_of(options: dict[str, Any]) -> "Light":
    """Noise or light level."""
    from d3s.lab.design.light import Light

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
    return Light(**{name: value for name, value in fields.items() if value is not None})


def wall_of(options: dict[str, Any]) -> "Wall":
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
