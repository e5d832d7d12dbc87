"""`d3s simulate`: options of a recipe in, a folder of simulated images with their truth out."""

import math
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from d3s.cli.camera import chosen_place, rig_or_paper
from d3s.cli.options import FieldOptions, Given, without_none
from d3s.cli.output import progress_bar
from d3s.cli.values import Range, distances_m

if TYPE_CHECKING:
    from d3s.rig import Rig

_FEWEST_TO_SHARE = 8  # frames: another process takes seconds to start
_STEEPEST_RAD = math.radians(85)
_TWIN = "d3s.lab.twin"
_SCENE = "Scene"
_ALLOWED_WITH_RECIPE = {"recipe", "output", "force", "quiet", "workers", "scheduler"}

_PLANE = FieldOptions(f"{_TWIN}.scenes.BentPlane", _SCENE, leave=("texture",))
_RANDOM = FieldOptions(
    f"{_TWIN}.random_scene.RandomScene",
    _SCENE,
    leave=("seed", "nearest_m", "farthest_m", "photos", "patterns"),
)
_TEXTURE = FieldOptions(
    f"{_TWIN}.textures.Texture",
    "Texture",
    leave=("pattern", "angle_rad"),
    names={"seed": "texture-seed", "scale": "texture-scale"},
)
_PHOTO = FieldOptions(
    f"{_TWIN}.textures.Photo",
    "Texture",
    leave=("image", "number", "angle_rad", "contrast", "grey", "shading"),
    names={"width_m": "texture-width"},
)
_SENSOR = FieldOptions(
    f"{_TWIN}.sensor.Sensor", "Sensor", leave=("gain", "offset", "pattern_seed", "saturates")
)
_RECIPE = FieldOptions(
    f"{_TWIN}.recipe.Recipe",
    "Series and files",
    leave=(
        *("kind", "scene", "distances_m", "sensor", "layout", "mount_left", "mount_right"),
        *("lens_left", "lens_right", "rig", "d3s_version", "input_sha256"),
    ),
    names={"distance_sigma_m": "distance-error"},
)


def simulate(
    ctx: typer.Context,
    *,
    output: Path,
    scene: Literal["plane", "tilted", "bent", "random", "depth-map"] = "plane",
    plane: Annotated[Given, _PLANE],
    distances: str | None = None,
    depth_range: Range = None,
    things: Annotated[Given, _RANDOM],
    photos: list[Path] | None = None,
    image: Path | None = None,
    depth_map: Path | None = None,
    texture: str | None = None,
    pattern: Annotated[Given, _TEXTURE],
    photo: Annotated[Given, _PHOTO],
    raw: bool = False,
    rig: str | None = None,
    lens: str = "perfect",
    lens_seed: int | None = None,
    sensor: Annotated[Given, _SENSOR],
    gain_right: float | None = None,
    offset_right: float | None = None,
    made: Annotated[Given, _RECIPE],
    recipe: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Simulate images of a scene, with their truth.

    A pair is left.png, right.png and truth.npz, which has the depth, disparity,
    occlusion and blur of each pixel, and the left view through a perfect lens.
    With --raw, it is one frame of the whole sensor. Files of a series are numbered.

    The folder also gets recipe.toml, which gives the same bytes again.
    A run that was stopped is resumed when it is started again.

    Options:
        output: Folder for the results.
        scene: Kind of scene.
        distances (DISTANCES): Move the plane: calibration (0.25 to 1.21 m), evaluation (1.01 to
            1.97 m), both every 4 cm; distances with commas between; or START:STOP:COUNT, even in
            1/distance (in metres for lenses without blur).
        photos: Folder of photographs for the surfaces of random scenes; repeatable.
        image: Sharp image of a depth-map scene.
        depth_map: Depth of the image's pixels in metres: PFM, TIFF or NPY.
        texture: Pattern, image file, or folder of images.
        raw: Simulate raw frames of the whole sensor, not rectified pairs.
        lens: Errors of the lenses: perfect, typical, or a lens file.
        lens_seed: Seed of --lens typical: which two lenses of a kind.
        gain_right: Transmission of the right lens relative to the left.
        offset_right: Offset added to the right view, of full scale.
        recipe (FILE): Simulate a recipe.toml again.
        force: Replace earlier results.
        quiet: Print nothing.
    """
    from d3s.lab.twin.folder import RECIPE_NAME, render_folder
    from d3s.lab.twin.recipe import Recipe

    if recipe is not None:
        _check_beside_recipe(ctx)
        to_render = Recipe.load(recipe)
    else:
        camera = rig_or_paper(rig, quiet=quiet)
        fields = {**plane, **things, "image": image, "depth_map": depth_map}
        fields["photos"] = photos and [str(folder.absolute()) for folder in photos]
        fields["nearest_m"], fields["farthest_m"] = depth_range or (None, None)
        if scene == "depth-map":
            fields["encoding"] = photo.pop("encoding", None)
        fields["texture"] = _surface(texture, pattern, photo)
        if distances is not None:
            made["distances_m"] = _distances_m(distances, camera)
        made["scene"] = _scene(scene, without_none(fields), made)
        sides = {"gain": gain_right, "offset": offset_right}
        of_left = {"gain": 1.0, "offset": 0.0}
        sensor |= {one: (of_left[one], value) for one, value in without_none(sides).items()}
        made |= _camera_fields(made.pop("shape", None), lens, lens_seed, raw=raw)
        made["sensor"] = sensor
        _check_combination(made, sensor)
        to_render = Recipe(**made, rig=camera)
    count = to_render.frame_count
    with progress_bar(count, f"Making {count} frames.", quiet=quiet or count == 1) as progress:
        is_short = workers is None and scheduler is None and count < _FEWEST_TO_SHARE
        where = 1 if is_short else chosen_place(workers, scheduler)
        written = render_folder(
            to_render, output, overwrite=force, workers=where, progress=progress
        )
    if not quiet:
        again = shlex.join(["d3s", "simulate", "--recipe", str(output / RECIPE_NAME)])
        typer.echo(f"{_summary(written, output)}\nMake it again: {again} --output FOLDER")


def _check_beside_recipe(ctx: typer.Context) -> None:
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    given = {name for name, one in sources.items() if one and one.name == "COMMANDLINE"}
    for name in sorted(given - _ALLOWED_WITH_RECIPE):
        raise typer.BadParameter(
            f"--recipe says everything but where to: --{name.replace('_', '-')} cannot be given "
            "with it. Only --output, --workers, --scheduler, --force and --quiet can."
        )


def _check_combination(made: Given, sensor: Given) -> None:
    """Refuse options that would be ignored."""
    if "bayer" in sensor and made["kind"] != "raw":
        raise typer.BadParameter(
            "--bayer is for --raw: a rectified pair was resampled, and has no pattern of colours."
        )
    if "channel_shares" in sensor and "bayer" not in sensor:
        raise typer.BadParameter("--channel-shares is for --bayer: a mono sensor has no filters.")
    if "wavelength_m" in made and made.get("psf") != "diffraction":
        raise typer.BadParameter("--wavelength is for --psf diffraction: no other depends on it.")


# FieldOptions of options that are called otherwise.
_FLAGS = {"nearest_m": "--depth-range", "distance_sigma_m": "--distance-error"}
_PLANES = "plane", "tilted", "bent"


def _scene(name: str, fields: Given, made: Given) -> dict[str, Any]:
    """[scene] of the recipe; options that are for other scenes only are refused."""
    from d3s.lab.twin.recipe import SCENES

    for one in ("tilt_x_rad", "tilt_y_rad"):
        if abs(fields.get(one, 0)) > _STEEPEST_RAD:
            raise typer.BadParameter(
                "it must be from -85 to 85 degrees.", param_hint=_PLANE.flag_of(one)
            )
    kind = name.replace("-", "_")
    known = {one: {*scene.model_fields} for one, scene in SCENES.items() if one != "layered"}
    known["depth_map"] = {"image", "depth_map", "encoding"}
    known["random"].add("count")
    for one in _PLANES:
        known[one] |= {"distances_m", "distance_sigma_m"}
    for field in (*fields, *(one for one in made if one in ("count", "distances_m"))):
        if field not in known[kind]:
            fitting = [one.replace("_", "-") for one in known if field in known[one]]
            raise typer.BadParameter(
                f"{_FLAGS.get(field, _PLANE.flag_of(field))} is for "
                f"{' or '.join(f'--scene {one}' for one in fitting)}, and not for --scene {name}."
            )
    if kind in _PLANES:
        series = made.get("distances_m")
        if series is not None and "depth_m" in fields:
            raise typer.BadParameter("--depth and --distances cannot be given together.")
        if series is None and "depth_m" not in fields:
            raise typer.BadParameter(f"--scene {name} needs --depth, or --distances.")
        fields.setdefault("depth_m", series[0] if series else None)
    elif kind == "random":
        fields["seed"] = made.get("seed", 0)
    else:
        if not fields.keys() >= {"image", "depth_map"}:
            raise typer.BadParameter("--scene depth-map needs --image and --depth-map.")
        fields["image"] = str(fields["image"].absolute())
        fields["depth_m"] = str(fields.pop("depth_map").absolute())
    return {"kind": kind, **fields}


def _surface(name: str | None, pattern: Given, photo: Given) -> Any:
    """Texture of the recipe; an unknown name is passed on, and the library reports it."""
    from d3s.lab.twin.patterns import PATTERNS

    if name is None or name in PATTERNS:
        for one in photo:
            raise typer.BadParameter(f"{_PHOTO.flag_of(one)} is for an image as --texture.")
        return without_none({"pattern": name, **pattern}) or None
    if not os.path.exists(name):  # noqa: PTH110 - Path.exists raises for a name that is too long
        return name
    for one in ("scale", "colour"):
        if one in pattern:
            raise typer.BadParameter(f"{_TEXTURE.flag_of(one)} is for a pattern, and not an image.")
    if "seed" in pattern:
        if not Path(name).is_dir():
            raise typer.BadParameter("--texture-seed is for a pattern, or a folder of images.")
        photo["number"] = pattern.pop("seed")
    return {"image": str(Path(name).absolute()), **photo, **pattern}


def _camera_fields(
    shape: tuple[int, int] | None, lens: str, seed: int | None, *, raw: bool
) -> Given:
    """FieldOptions of a recipe on the size of its pictures, and on lenses that are not perfect."""
    from d3s.camera.capture.twin import scaled_layout
    from d3s.lab.twin.lens_errors import LensFile, typical_lenses

    if seed is not None and lens != "typical":
        raise typer.BadParameter("--lens-seed is for --lens typical: other lenses are not random.")
    fields: Given = {"kind": "raw" if raw else "pair"}
    if shape is not None:
        fields |= {"layout": scaled_layout(shape)} if raw else {"shape": shape}
    if lens != "perfect":
        both = typical_lenses(seed or 0) if lens == "typical" else LensFile.load(lens).lenses
        fields |= {"lens_left": both[0], "lens_right": both[1]}
    return fields


def _distances_m(text: str, rig: "Rig") -> tuple[float, ...]:
    """Distances in metres: even in 1/distance if the lenses defocus, as blur is."""
    from d3s.lab.twin.sequence import PROTOCOLS

    if text in PROTOCOLS:
        return PROTOCOLS[text]
    return distances_m(text, inverse=rig.optics.aperture_radius_m > 0)


def _summary(written: list[Path], output: Path) -> str:
    """One line that names the files written."""
    if not written:
        return f"Nothing to do: all files are in {output} already."
    names = [path.name for path in written]
    listed = names if len(names) <= 4 else [*names[:2], "...", *names[-2:]]
    return f"Wrote {len(names)} files to {output}: {', '.join(listed)}"
