"""Options of `d3s simulate` to a recipe: their values, combinations that are refused, the tables.

`options` maps the parameters of the command to their values; None is not given. The library checks
the values.
"""

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.options import numbers, series_m, shape_px

if TYPE_CHECKING:
    from d3s.lab.twin.recipe import Recipe
    from d3s.rig import Rig

_STEEPEST_DEG = 85


class SceneName(StrEnum):
    """Values of --scene."""

    PLANE = "plane"
    TILTED = "tilted"
    BENT = "bent"
    RANDOM = "random"
    DEPTH_MAP = "depth-map"


class SurfaceName(StrEnum):
    """Values of --surfaces."""

    TEXTURED = "textured"
    WEAK = "weak"
    FINE = "fine"


class PsfName(StrEnum):
    """Values of --psf."""

    DISK = "disk"
    GAUSSIAN = "gaussian"
    DIFFRACTION = "diffraction"


class ImageFormat(StrEnum):
    """Values of --images."""

    PNG = "png"
    TIFF = "tiff"


class TruthFormat(StrEnum):
    """Values of --truth."""

    NPZ = "npz"
    PFM = "pfm"


class BayerOrder(StrEnum):
    """Values of --bayer."""

    RGGB = "RGGB"
    BGGR = "BGGR"
    GRBG = "GRBG"
    GBRG = "GBRG"


_TEXTURED = (SceneName.PLANE, SceneName.TILTED, SceneName.BENT)
_BEND_OPTIONS = ("bend_x", "bend_xy", "bend_y")
_TEXTURE_OPTIONS = (
    *("texture", "texture_seed", "texture_scale", "texture_width"),
    *("contrast", "grey", "shading", "colour"),
)
# Scenes that an option applies to; options that are not listed apply to all.
_SCENES_OF_OPTION: dict[str, tuple[SceneName, ...]] = {
    **dict.fromkeys(("depth", "sequence", "distance_error", *_TEXTURE_OPTIONS), _TEXTURED),
    **dict.fromkeys(("tilt_x", "tilt_y"), (SceneName.TILTED, SceneName.BENT)),
    **dict.fromkeys(_BEND_OPTIONS, (SceneName.BENT,)),
    **dict.fromkeys(("image", "depth_map"), (SceneName.DEPTH_MAP,)),
    "encoding": (*_TEXTURED, SceneName.DEPTH_MAP),
    **dict.fromkeys(("near", "far", "things", "photos", "surfaces", "count"), (SceneName.RANDOM,)),
}
_ALLOWED_WITH_RECIPE = {"recipe", "output", "force", "quiet", "workers"}


def flag(name: str) -> str:
    """Option on the command line for a parameter of the command."""
    return f"--{name.replace('_', '-')}"


def given_options(ctx: typer.Context) -> set[str]:
    """Names of the parameters given on the command line, not by default."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def check_combination(given: set[str], options: dict[str, Any]) -> None:
    """Refuse options that would be ignored, and scenes without the options that they need.

    `given` holds the names of the options on the command line, `options` the values of all.
    """
    if "recipe" in given:
        _check_beside_recipe(given)
        return
    scene = options["scene"]
    _check_scene_of_options(given, scene)
    _check_required(given, scene)
    if given >= {"raw", "truth"}:
        raise typer.BadParameter(
            "--truth cannot be given with --raw: the truth of a raw frame is one NPZ file."
        )
    if "bayer" in given and "raw" not in given:
        raise typer.BadParameter(
            "--bayer is for --raw: a rectified pair was resampled, and has no pattern of colours."
        )
    if "channel_shares" in given and "bayer" not in given:
        raise typer.BadParameter("--channel-shares is for --bayer: a mono sensor has no filters.")
    if "wavelength" in given and options["psf"] != PsfName.DIFFRACTION:
        raise typer.BadParameter("--wavelength is for --psf diffraction: no other depends on it.")
    if "lens_seed" in given and options["lens"] != "typical":
        raise typer.BadParameter("--lens-seed is for --lens typical: other lenses are not random.")


def _check_beside_recipe(given: set[str]) -> None:
    others = sorted(given - _ALLOWED_WITH_RECIPE)
    if others:
        raise typer.BadParameter(
            f"--recipe says everything but where to: {flag(others[0])} cannot be given with "
            "it. Only --output, --workers, --force and --quiet can."
        )


def _check_scene_of_options(given: set[str], scene: SceneName) -> None:
    for name, scenes in _SCENES_OF_OPTION.items():
        if name in given and scene not in scenes:
            known = " or ".join(f"--scene {one.value}" for one in scenes)
            raise typer.BadParameter(
                f"{flag(name)} is for {known}, and not for --scene {scene.value}."
            )


def _check_required(given: set[str], scene: SceneName) -> None:
    if scene in _TEXTURED and not given & {"depth", "sequence"}:
        raise typer.BadParameter(f"--scene {scene.value} needs --depth, or --sequence.")
    if given >= {"depth", "sequence"}:
        raise typer.BadParameter("--depth and --sequence cannot be given together.")
    if scene == SceneName.TILTED and not given & {"tilt_x", "tilt_y"}:
        raise typer.BadParameter("--scene tilted needs --tilt-x or --tilt-y.")
    if scene == SceneName.BENT and not given & {*_BEND_OPTIONS}:
        raise typer.BadParameter("--scene bent needs --bend-x, --bend-xy or --bend-y.")
    if "distance_error" in given and "sequence" not in given:
        raise typer.BadParameter("--distance-error needs --sequence, which writes distances.csv.")
    if scene == SceneName.DEPTH_MAP and not given >= {"image", "depth_map"}:
        raise typer.BadParameter("--scene depth-map needs --image and --depth-map.")


# Fields of a sensor by option.
_SENSOR_FIELDS = {
    "noise": "noise",
    "full_well": "full_well_e",
    "read_noise": "read_noise_e",
    "vignetting": "vignetting",
    "gain_pattern": "gain_pattern",
    "offset_pattern": "offset_pattern",
    "column_noise": "column_noise",
    "row_noise": "row_noise",
    "hot_pixels": "hot_pixels",
    "bits": "bits",
}


def recipe_from_options(options: dict[str, Any]) -> "Recipe":
    """Recipe from the options of the command; a `SceneError` names all values that are wrong."""
    from d3s.camera.capture.twin import scaled_layout
    from d3s.lab.twin.recipe import Recipe
    from d3s.rig import Rig

    shape, sequence = options["shape"], options["sequence"]
    rig = Rig.paper_prototype() if options["rig"] is None else Rig.load(options["rig"])
    distances_m = None if sequence is None else _distances_m(sequence, rig)
    size = None if shape is None else shape_px(shape)
    fields = {
        "kind": "raw" if options["raw"] else "pair",
        "scene": _scene_table(options, distances_m),
        "distances_m": distances_m,
        "distance_sigma_m": options["distance_error"],
        "count": options["count"],
        "seed": options["seed"],
        "shape": None if options["raw"] else size,
        "layout": scaled_layout(size) if options["raw"] and size else None,
        "psf": options["psf"].value,
        "wavelength_m": options["wavelength"],
        "images": options["images"].value,
        "truth": options["truth"].value,
        "sensor": _sensor_table(options),
        **_lens_fields(options["lens"], options["lens_seed"]),
        "rig": rig,
    }
    return Recipe(**_without_none(fields))


def _scene_table(options: dict[str, Any], distances_m: tuple[float, ...] | None) -> dict[str, Any]:
    """[scene] of the recipe."""
    name: SceneName = options["scene"]
    if name == SceneName.RANDOM:
        photos = options["photos"]
        fields = {
            "seed": options["seed"],
            "nearest_m": options["near"],
            "farthest_m": options["far"],
            "things": options["things"],
            "photos": photos and [_absolute(folder) for folder in photos],
            "surfaces": options["surfaces"] and options["surfaces"].value,
        }
    elif name == SceneName.DEPTH_MAP:
        fields = {
            "image": _absolute(options["image"]),
            "encoding": options["encoding"] and options["encoding"].value,
            "depth_m": _absolute(options["depth_map"]),
        }
    else:
        fields = {
            "depth_m": options["depth"] if distances_m is None else distances_m[0],
            "texture": _texture_table(options),
            "tilt_x_rad": _tilt_rad(options, "tilt_x"),
            "tilt_y_rad": _tilt_rad(options, "tilt_y"),
            "bend_x_per_m": options["bend_x"],
            "bend_xy_per_m": options["bend_xy"],
            "bend_y_per_m": options["bend_y"],
        }
    return {"kind": name.value.replace("-", "_"), **_without_none(fields)}


def _tilt_rad(options: dict[str, Any], name: str) -> float | None:
    degrees = options[name]
    if degrees is None:
        return None
    if not abs(degrees) <= _STEEPEST_DEG:
        raise typer.BadParameter(
            f"{flag(name)} {degrees:g} must be from -{_STEEPEST_DEG} to {_STEEPEST_DEG} degrees."
        )
    return math.radians(degrees)


def _texture_table(options: dict[str, Any]) -> Any:
    """Texture of the recipe; an unknown name is passed on, and the library reports it."""
    from d3s.lab.twin.patterns import PATTERNS

    name = options["texture"]
    if name is None or name in PATTERNS:
        fields = _pattern_fields(options)
    elif os.path.exists(name):  # noqa: PTH110 - Path.exists raises for a name that is too long
        fields = _photo_fields(options)
    else:
        return name
    light = {name: options[name] for name in ("contrast", "grey", "shading")}
    return _without_none({**fields, **light})


def _pattern_fields(options: dict[str, Any]) -> dict[str, Any]:
    _refuse(options, "texture_width", "an image. A pattern has a size in nature")
    _refuse(options, "encoding", "an image. A pattern is linear")
    return {
        "pattern": options["texture"],
        "seed": options["texture_seed"],
        "scale": options["texture_scale"],
        "colour": options["colour"],
    }


def _photo_fields(options: dict[str, Any]) -> dict[str, Any]:
    path = Path(options["texture"])
    _refuse(options, "colour", "a pattern. An image has colours of its own")
    _refuse(options, "texture_scale", "a pattern. For an image, give --texture-width")
    if not path.is_dir():
        _refuse(options, "texture_seed", "a pattern, or a folder of images")
    return {
        "image": _absolute(path),
        "number": options["texture_seed"],
        "width_m": options["texture_width"],
        "encoding": options["encoding"] and options["encoding"].value,
    }


def _refuse(options: dict[str, Any], name: str, purpose: str) -> None:
    if options[name] is not None:
        raise typer.BadParameter(f"{flag(name)} is for {purpose}.")


def _sensor_table(options: dict[str, Any]) -> dict[str, Any]:
    """[sensor] of the recipe; the left lens is the reference of gain and offset."""
    fields = {field: options[name] for name, field in _SENSOR_FIELDS.items()}
    if options["gain_right"] is not None:
        fields["gain"] = (1.0, options["gain_right"])
    if options["offset_right"] is not None:
        fields["offset"] = (0.0, options["offset_right"])
    if options["bayer"] is not None:
        fields["bayer"] = options["bayer"].value
    if options["channel_shares"] is not None:
        fields["channel_shares"] = _three_numbers(options["channel_shares"])
    return _without_none(fields)


def _three_numbers(text: str) -> tuple[float, ...]:
    found = numbers(text)
    if len(found) != 3:
        raise typer.BadParameter(
            f"--channel-shares {text!r} must be three numbers: red, green and blue, such as "
            "0.6,1,0.7."
        )
    return found


def _lens_fields(lens: str | None, seed: int | None) -> dict[str, Any]:
    """Lenses of the recipe; none for perfect ones."""
    from d3s.lab.twin.lens_errors import LensFile
    from d3s.lab.twin.typical_lenses import typical_lenses

    if lens is None or lens == "perfect":
        return {}
    left, right = typical_lenses(seed or 0) if lens == "typical" else LensFile.load(lens).lenses
    return {"lens_left": left, "lens_right": right}


def _distances_m(text: str, rig: "Rig") -> tuple[float, ...]:
    """Distances of --sequence, in metres: even in 1/distance if the lenses defocus, as blur is."""
    from d3s.lab.twin.sequence import PROTOCOLS

    if text in PROTOCOLS:
        return PROTOCOLS[text]
    return series_m(text, " or ".join(PROTOCOLS), inverse=rig.optics.aperture_radius_m > 0)


def _absolute(path: Path) -> str:
    """Absolute path, so that the recipe can be run from any folder."""
    return str(path.absolute())


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
