"""Values of the options of `d3s simulate`, and checks of their combinations."""

from enum import StrEnum
from typing import Any

import typer


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
_ALLOWED_WITH_RECIPE = {"recipe", "output", "force", "quiet"}


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
    if "raw" in given:
        _check_raw(given)
    elif "bayer" in given:
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
            "it. Only --output, --force and --quiet can."
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


def _check_raw(given: set[str]) -> None:
    if "truth" in given:
        raise typer.BadParameter(
            "--truth cannot be given with --raw: the truth of a raw frame is one NPZ file."
        )
