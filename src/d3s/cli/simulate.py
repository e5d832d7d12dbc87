"""`d3s simulate`: images of a scene before the camera, with what is true of them."""

import math
import os
import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.progress import progress_bar
from d3s.cli.units import length_m, shape_px

if TYPE_CHECKING:
    from d3s.scene.recipe import Recipe


class SceneName(StrEnum):
    """What --scene can be."""

    PLANE = "plane"
    TILTED = "tilted"
    RANDOM = "random"
    DEPTH_MAP = "depth-map"


class Spread(StrEnum):
    """What --psf can be."""

    DISK = "disk"
    GAUSSIAN = "gaussian"
    DIFFRACTION = "diffraction"


class ImageFormat(StrEnum):
    """What --images can be."""

    PNG = "png"
    TIFF = "tiff"


class TruthFormat(StrEnum):
    """What --truth can be."""

    NPZ = "npz"
    PFM = "pfm"


class Encoding(StrEnum):
    """What --encoding can be."""

    SRGB = "srgb"
    LINEAR = "linear"


_PAINTED = (SceneName.PLANE, SceneName.TILTED)
_TEXTURES = ("texture", "texture_seed", "texture_scale", "texture_width", "contrast")
# The scenes that an option is for; those that are not here are for all.
_SCENES_OF: dict[str, tuple[SceneName, ...]] = {
    **dict.fromkeys(("depth", "sequence", *_TEXTURES), _PAINTED),
    **dict.fromkeys(("tilt_x", "tilt_y"), (SceneName.TILTED,)),
    **dict.fromkeys(("image", "depth_map"), (SceneName.DEPTH_MAP,)),
    "encoding": (*_PAINTED, SceneName.DEPTH_MAP),
    **dict.fromkeys(("near", "far", "things", "photos", "count"), (SceneName.RANDOM,)),
}
_STEEPEST_DEG = 85
_BESIDE_A_RECIPE = {"recipe", "output", "force", "quiet"}

# The fields of a sensor, by their options.
_SENSOR = {
    "noise": "noise",
    "full_well": "full_well_e",
    "read_noise": "read_noise_e",
    "vignetting": "vignetting",
    "gain_pattern": "gain_pattern",
    "offset_pattern": "offset_pattern",
    "bits": "bits",
}

_SCENE, _SURFACE, _CAMERA, _ELECTRONICS, _FILES = (
    "Scene",
    "Texture",
    "Camera",
    "Sensor",
    "Files",
)


def _length(panel: str, words: str) -> Any:
    return typer.Option(parser=length_m, metavar="LENGTH", help=words, rich_help_panel=panel)


def _option(panel: str, words: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=words, rich_help_panel=panel, show_default=False, **more)


def simulate(
    ctx: typer.Context,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results.", rich_help_panel=_FILES)
    ],
    scene: Annotated[
        SceneName, typer.Option(help="What is in front of the camera.", rich_help_panel=_SCENE)
    ] = SceneName.PLANE,
    depth: Annotated[
        float | None, _length(_SCENE, "Distance of the plane: 1.0, 0.3m, 300mm, 25cm.")
    ] = None,
    tilt_x: Annotated[
        float | None, _option(_SCENE, "Degrees by which its right side lies further away.")
    ] = None,
    tilt_y: Annotated[
        float | None, _option(_SCENE, "Degrees by which its lower side lies further away.")
    ] = None,
    sequence: Annotated[
        str | None,
        _option(
            _SCENE,
            "Move the plane: calibration (0.25 to 1.21 m), evaluation (1.01 to 1.97 m), or "
            "START:STOP:COUNT.",
            metavar="SEQUENCE",
        ),
    ] = None,
    near: Annotated[float | None, _length(_SCENE, "Smallest depth of a random scene.")] = None,
    far: Annotated[float | None, _length(_SCENE, "Largest depth of a random scene.")] = None,
    things: Annotated[
        int | None, _option(_SCENE, "Things in a random scene; two to five if left.")
    ] = None,
    photos: Annotated[
        list[Path] | None,
        _option(_SCENE, "Folder of photographs for the surfaces of random scenes; repeatable."),
    ] = None,
    count: Annotated[
        int | None, _option(_SCENE, "How many random scenes, with seeds from --seed upwards.")
    ] = None,
    image: Annotated[
        Path | None, _option(_SCENE, "Picture of a depth-map scene in which all is sharp.")
    ] = None,
    depth_map: Annotated[
        Path | None, _option(_SCENE, "Depth of its pixels in metres, as PFM, TIFF or NPY.")
    ] = None,
    texture: Annotated[
        str | None, _option(_SURFACE, "Pattern, image file, or folder of images.")
    ] = None,
    texture_seed: Annotated[
        int | None, _option(_SURFACE, "Which of all patterns of that name, or image of the folder.")
    ] = None,
    texture_scale: Annotated[
        float | None, _option(_SURFACE, "Size of a pattern, 1 as it is in nature.")
    ] = None,
    texture_width: Annotated[
        float | None, _length(_SURFACE, "Width of an image on the plane; fills the view if left.")
    ] = None,
    contrast: Annotated[
        float | None, _option(_SURFACE, "Factor on the difference to mid grey.")
    ] = None,
    encoding: Annotated[
        Encoding | None,
        _option(_SURFACE, "How an image file stores light; srgb if left. Floats are linear."),
    ] = None,
    raw: Annotated[
        bool, _option(_CAMERA, "Make raw frames of the whole sensor, not rectified pairs.", "--raw")
    ] = False,
    rig: Annotated[
        Path | None, _option(_CAMERA, "Rig file; the paper's prototype if left.")
    ] = None,
    shape: Annotated[
        str | None,
        _option(_CAMERA, "Size of each view, 902x1802 for instance.", metavar="ROWSxCOLS"),
    ] = None,
    psf: Annotated[
        Spread, typer.Option(help="Shape of a blurred point.", rich_help_panel=_CAMERA)
    ] = Spread.DISK,
    wavelength: Annotated[
        float | None, _length(_CAMERA, "Wavelength for --psf diffraction; 550nm if left.")
    ] = None,
    noise: Annotated[
        float | None, _option(_ELECTRONICS, "Standard deviation of Gaussian noise, of full scale.")
    ] = None,
    full_well: Annotated[
        float | None, _option(_ELECTRONICS, "Electrons at full scale; without, no shot noise.")
    ] = None,
    read_noise: Annotated[
        float | None, _option(_ELECTRONICS, "Standard deviation of the read noise, in electrons.")
    ] = None,
    gain_right: Annotated[
        float | None, _option(_ELECTRONICS, "Light that the right lens passes, 1 as the left.")
    ] = None,
    offset_right: Annotated[
        float | None, _option(_ELECTRONICS, "What is added to the right view, of full scale.")
    ] = None,
    vignetting: Annotated[
        float | None, _option(_ELECTRONICS, "Share of light that is lost in the corner.")
    ] = None,
    gain_pattern: Annotated[
        float | None, _option(_ELECTRONICS, "Standard deviation of each pixel's own gain.")
    ] = None,
    offset_pattern: Annotated[
        float | None, _option(_ELECTRONICS, "Standard deviation of each pixel's own offset.")
    ] = None,
    bits: Annotated[
        int | None, _option(_ELECTRONICS, "Grey levels of 8, 10 or 12 bits; without, no steps.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(help="Seed of the noise, and of random scenes.", rich_help_panel=_ELECTRONICS),
    ] = 0,
    images: Annotated[
        ImageFormat,
        typer.Option(help="16-bit PNG, or TIFF of 32-bit floats.", rich_help_panel=_FILES),
    ] = ImageFormat.PNG,
    truth: Annotated[
        TruthFormat,
        typer.Option(help="One NPZ a frame, or one PFM an array.", rich_help_panel=_FILES),
    ] = TruthFormat.NPZ,
    recipe: Annotated[
        Path | None, _option(_FILES, "Make again what a recipe.toml says.", metavar="FILE")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace earlier results.", rich_help_panel=_FILES)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing.", rich_help_panel=_FILES)
    ] = False,
) -> None:
    """Make images of a scene as the camera would see it, and the truth about them.

    A pair is left.png, right.png and truth.npz, which has the depth, disparity,
    occlusion and blur of each pixel, and what a perfect lens would see. With
    --raw, it is one frame of the whole sensor. A series has numbers in its names.

    The same recipe.toml, which is written too, gives the same bytes again.
    A run that was stopped goes on where it was when it is started again.
    """
    _check_combination(ctx)
    from d3s.scene.folder import RECIPE_NAME, render_folder

    made = _load_recipe(recipe) if recipe is not None else _recipe(ctx.params)
    count = made.frame_count
    with progress_bar(count, f"Making {count} frames.", quiet=quiet or count == 1) as progress:
        written = render_folder(made, output, overwrite=force, progress=progress)
    if not quiet:
        again = shlex.join(["d3s", "simulate", "--recipe", str(output / RECIPE_NAME)])
        typer.echo(f"{_summary(written, output)}\nMake it again: {again} --output FOLDER")


def _check_combination(ctx: typer.Context) -> None:
    """Refuse options that would be ignored."""
    given = {name for name in ctx.params if _is_given(ctx, name)}
    if "recipe" in given:
        others = sorted(given - _BESIDE_A_RECIPE)
        if others:
            raise typer.BadParameter(
                f"--recipe says everything but where to: {_flag(others[0])} cannot be given with "
                "it. Only --output, --force and --quiet can."
            )
        return
    scene = ctx.params["scene"]
    for name, scenes in _SCENES_OF.items():
        if name in given and scene not in scenes:
            known = " or ".join(f"--scene {one.value}" for one in scenes)
            raise typer.BadParameter(
                f"{_flag(name)} is for {known}, and not for --scene {scene.value}."
            )
    _check_needs(given, scene)
    if "wavelength" in given and ctx.params["psf"] != Spread.DIFFRACTION:
        raise typer.BadParameter("--wavelength is for --psf diffraction: no other depends on it.")


def _check_needs(given: set[str], scene: SceneName) -> None:
    if scene in _PAINTED and not given & {"depth", "sequence"}:
        raise typer.BadParameter(f"--scene {scene.value} needs --depth, or --sequence.")
    if given >= {"depth", "sequence"}:
        raise typer.BadParameter("--depth and --sequence cannot be given together.")
    if scene == SceneName.TILTED and not given & {"tilt_x", "tilt_y"}:
        raise typer.BadParameter("--scene tilted needs --tilt-x or --tilt-y.")
    if scene == SceneName.DEPTH_MAP and not given >= {"image", "depth_map"}:
        raise typer.BadParameter("--scene depth-map needs --image and --depth-map.")
    if "raw" in given:
        for name, words in (
            ("shape", "the size of a raw frame is that of the sensor."),
            ("truth", "the truth of a raw frame is one NPZ file."),
        ):
            if name in given:
                raise typer.BadParameter(f"{_flag(name)} cannot be given with --raw: {words}")


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _load_recipe(path: Path) -> "Recipe":
    from d3s.scene.recipe import Recipe

    return Recipe.load(path)


def _recipe(options: dict[str, Any]) -> "Recipe":
    """The recipe of what was asked for; the library finds what is wrong with it."""
    from d3s.rig import Rig
    from d3s.scene.recipe import Recipe

    rig, size, sequence = options["rig"], options["shape"], options["sequence"]
    distances_m = None if sequence is None else _distances_m(sequence)
    values: dict[str, Any] = {
        "kind": "raw" if options["raw"] else "pair",
        "scene": _scene(options, distances_m),
        "distances_m": distances_m,
        "count": options["count"],
        "seed": options["seed"],
        "shape": None if size is None else shape_px(size),
        "psf": options["psf"].value,
        "images": options["images"].value,
        "truth": options["truth"].value,
        "sensor": _sensor(options),
        "rig": Rig.paper_prototype() if rig is None else Rig.load(rig),
    }
    if options["wavelength"] is not None:
        values["wavelength_m"] = options["wavelength"]
    return Recipe(**values)


def _scene(options: dict[str, Any], distances_m: tuple[float, ...] | None) -> dict[str, Any]:
    """The scene as a recipe's table."""
    name, encoding = options["scene"], options["encoding"]
    if name == SceneName.RANDOM:
        photos = options["photos"]
        fields = {
            "seed": options["seed"],
            "nearest_m": options["near"],
            "farthest_m": options["far"],
            "things": options["things"],
            "photos": photos and [_absolute(folder) for folder in photos],
        }
    elif name == SceneName.DEPTH_MAP:
        fields = {
            "image": _absolute(options["image"]),
            "encoding": encoding and encoding.value,
            "depth_m": _absolute(options["depth_map"]),
        }
    else:
        fields = {
            "depth_m": options["depth"] if distances_m is None else distances_m[0],
            "texture": _texture(options),
            "tilt_x_rad": _radians(options, "tilt_x"),
            "tilt_y_rad": _radians(options, "tilt_y"),
        }
    kind = name.value.replace("-", "_")
    return {"kind": kind, **{key: value for key, value in fields.items() if value is not None}}


def _radians(options: dict[str, Any], name: str) -> float | None:
    degrees = options[name]
    if degrees is not None and not abs(degrees) <= _STEEPEST_DEG:
        raise typer.BadParameter(
            f"{_flag(name)} {degrees:g} must be from -{_STEEPEST_DEG} to {_STEEPEST_DEG} degrees."
        )
    return None if degrees is None else math.radians(degrees)


def _texture(options: dict[str, Any]) -> Any:
    """A texture as a recipe's table; what is none is passed on, for the library to say so."""
    from d3s.scene.patterns import PATTERNS

    name, contrast = options["texture"], options["contrast"]
    if name is None or name in PATTERNS:
        _refuse(options, "texture_width", "an image. A pattern has a size in nature")
        _refuse(options, "encoding", "an image. A pattern is linear")
        fields = {
            "pattern": name,
            "seed": options["texture_seed"],
            "scale": options["texture_scale"],
        }
    elif os.path.exists(name):  # noqa: PTH110 - Path.exists raises for a name that is too long
        _refuse(options, "texture_scale", "a pattern. For an image, give --texture-width")
        if not Path(name).is_dir():
            _refuse(options, "texture_seed", "a pattern, or a folder of images")
        fields = {
            "image": _absolute(Path(name)),
            "number": options["texture_seed"],
            "width_m": options["texture_width"],
            "encoding": options["encoding"] and options["encoding"].value,
        }
    else:
        return name
    fields["contrast"] = contrast
    return {key: value for key, value in fields.items() if value is not None}


def _refuse(options: dict[str, Any], name: str, what_for: str) -> None:
    if options[name] is not None:
        raise typer.BadParameter(f"{_flag(name)} is for {what_for}.")


def _absolute(path: Path) -> str:
    """A path that means the same wherever the recipe is run."""
    return str(path.absolute())


def _sensor(options: dict[str, Any]) -> dict[str, Any]:
    fields = {field: options[name] for name, field in _SENSOR.items() if options[name] is not None}
    if options["gain_right"] is not None:
        fields["gain"] = (1.0, options["gain_right"])
    if options["offset_right"] is not None:
        fields["offset"] = (0.0, options["offset_right"])
    return fields


def _distances_m(text: str) -> tuple[float, ...]:
    from d3s.scene.sequence import PROTOCOLS, even_distances_m

    if text in PROTOCOLS:
        return PROTOCOLS[text]
    first, *rest = text.split(":")
    if len(rest) != 2 or not rest[1].strip().isdecimal():
        raise typer.BadParameter(
            f"{text!r} is not a sequence. Write {', '.join(PROTOCOLS)}, or START:STOP:COUNT, such "
            "as 0.25:1.21:25 or 25cm:1.21m:25."
        )
    return even_distances_m(length_m(first), length_m(rest[0]), int(rest[1]))


def _summary(written: list[Path], output: Path) -> str:
    if not written:
        return f"Nothing to do: all files are in {output} already."
    names = [path.name for path in written]
    shown = names if len(names) <= 4 else [*names[:2], "...", *names[-2:]]
    return f"Wrote {len(names)} files to {output}: {', '.join(shown)}"
