"""Options of `d3s simulate` to a recipe, whose values the library checks.

`options` maps the parameters of the command to their values; None is not given.
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.simulate.options import SceneName, flag
from d3s.cli.units import length_m, shape_px

if TYPE_CHECKING:
    from d3s.lab.twin.recipe import Recipe

_STEEPEST_DEG = 85

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
    """Recipe from the options of the command.

    Raises
    ------
    typer.BadParameter
        If an option cannot be read, or does not apply to the texture.
    SceneError
        If a value is wrong; names all that are.
    """
    from d3s.lab.twin.recipe import Recipe
    from d3s.rig import Rig

    rig, shape, sequence = options["rig"], options["shape"], options["sequence"]
    distances_m = None if sequence is None else _distances_m(sequence)
    size = None if shape is None else shape_px(shape)
    fields = {
        "kind": "raw" if options["raw"] else "pair",
        "scene": _scene_table(options, distances_m),
        "distances_m": distances_m,
        "distance_sigma_m": options["distance_error"],
        "count": options["count"],
        "seed": options["seed"],
        "shape": None if options["raw"] else size,
        "layout": _layout_table(size) if options["raw"] and size else None,
        "psf": options["psf"].value,
        "wavelength_m": options["wavelength"],
        "images": options["images"].value,
        "truth": options["truth"].value,
        "sensor": _sensor_table(options),
        **_lens_fields(options["lens"], options["lens_seed"]),
        "rig": Rig.paper_prototype() if rig is None else Rig.load(rig),
    }
    return Recipe(**_without_none(fields))


def _layout_table(size: tuple[int, int]) -> dict[str, float]:
    """[layout] of the recipe: a sensor of another size, with fields and partition to its scale."""
    from d3s.lab.twin.raw import RawLayout

    rows, cols = size
    usual = RawLayout()
    scale = cols / usual.cols_px
    lengths = ("field_radius_px", "field_edge_px", "partition_px", "partition_edge_px")
    scaled = {name: max(scale * getattr(usual, name), 1.0) for name in lengths}
    return {"rows_px": rows, "cols_px": cols, **scaled}


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
    try:
        numbers = tuple(float(one) for one in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise typer.BadParameter(
            f"--channel-shares {text!r} must be three numbers: red, green and blue, such as "
            "0.6,1,0.7."
        )
    return numbers


def _lens_fields(lens: str | None, seed: int | None) -> dict[str, Any]:
    """Lenses of the recipe; none for perfect ones."""
    from d3s.lab.twin.lens_file import LensFile
    from d3s.lab.twin.typical_lenses import typical_lenses

    if lens is None or lens == "perfect":
        return {}
    left, right = typical_lenses(seed or 0) if lens == "typical" else LensFile.load(lens).lenses
    return {"lens_left": left, "lens_right": right}


def _distances_m(text: str) -> tuple[float, ...]:
    """Distances of --sequence, in metres."""
    from d3s.lab.twin.sequence import PROTOCOLS, even_distances_m

    if text in PROTOCOLS:
        return PROTOCOLS[text]
    first, *rest = text.split(":")
    if len(rest) != 2 or not rest[1].strip().isdecimal():
        raise typer.BadParameter(
            f"{text!r} is not a sequence. Write {', '.join(PROTOCOLS)}, or START:STOP:COUNT, such "
            "as 0.25:1.21:25 or 25cm:1.21m:25."
        )
    return even_distances_m(length_m(first), length_m(rest[0]), int(rest[1]))


def _absolute(path: Path) -> str:
    """Absolute path, so that the recipe can be run from any folder."""
    return str(path.absolute())


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
