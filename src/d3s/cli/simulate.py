"""`d3s simulate`: options in, a folder of simulated images with their truth out."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from d3s.cli.options import Encoding, length_m
from d3s.cli.output import progress_bar
from d3s.cli.simulate_recipe import (
    BayerOrder,
    ImageFormat,
    PsfName,
    SceneName,
    SurfaceName,
    TruthFormat,
    check_combination,
    given_options,
    recipe_from_options,
)
from d3s.cli.sweep import chosen_place

_FEWEST_TO_SHARE = 8  # frames: another process takes seconds to start

# Panels of the help page.
_SCENE, _TEXTURE, _CAMERA, _SENSOR, _FILES = "Scene", "Texture", "Camera", "Sensor", "Files"


# Most options default to None, "not given": the library has the default, and checks the value. The
# help page then shows no default, and the text says what happens without the option.
def _length(panel: str, text: str) -> Any:
    return typer.Option(parser=length_m, metavar="LENGTH", help=text, rich_help_panel=panel)


def _option(panel: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **more)


def simulate(
    ctx: typer.Context,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the results.", rich_help_panel=_FILES)
    ],
    # Scene
    scene: Annotated[
        SceneName, typer.Option(help="Kind of scene.", rich_help_panel=_SCENE)
    ] = SceneName.PLANE,
    depth: Annotated[
        float | None, _length(_SCENE, "Distance of the plane: 1.0, 0.3m, 300mm, 25cm.")
    ] = None,
    tilt_x: Annotated[
        float | None, _option(_SCENE, "Tilt in degrees; positive: the right side is further away.")
    ] = None,
    tilt_y: Annotated[
        float | None, _option(_SCENE, "Tilt in degrees; positive: the lower side is further away.")
    ] = None,
    bend_x: Annotated[
        float | None, _option(_SCENE, "Bend along x in 1/m; positive: both sides are further away.")
    ] = None,
    bend_xy: Annotated[
        float | None,
        _option(_SCENE, "Twist in 1/m; positive: the lower right corner is further away."),
    ] = None,
    bend_y: Annotated[
        float | None,
        _option(_SCENE, "Bend along y in 1/m; positive: top and bottom are further away."),
    ] = None,
    sequence: Annotated[
        str | None,
        _option(
            _SCENE,
            "Move the plane: calibration (0.25 to 1.21 m), evaluation (1.01 to 1.97 m), both every "
            "4 cm, or START:STOP:COUNT, even in 1/distance (in metres for lenses without blur).",
            metavar="SEQUENCE",
        ),
    ] = None,
    distance_error: Annotated[
        float | None,
        _length(_SCENE, "Standard deviation of errors of the distances in distances.csv."),
    ] = None,
    near: Annotated[float | None, _length(_SCENE, "Smallest depth of a random scene.")] = None,
    far: Annotated[float | None, _length(_SCENE, "Largest depth of a random scene.")] = None,
    things: Annotated[
        int | None, _option(_SCENE, "Objects in a random scene; two to five by default.")
    ] = None,
    photos: Annotated[
        list[Path] | None,
        _option(_SCENE, "Folder of photographs for the surfaces of random scenes; repeatable."),
    ] = None,
    surfaces: Annotated[
        SurfaceName | None,
        _option(
            _SCENE,
            "Surfaces of random scenes: textured, weak, with plain and weakly textured ones, or "
            "fine, with fences and the like before plain walls; textured by default.",
        ),
    ] = None,
    count: Annotated[
        int | None, _option(_SCENE, "Number of random scenes, with seeds from --seed upwards.")
    ] = None,
    image: Annotated[Path | None, _option(_SCENE, "Sharp image of a depth-map scene.")] = None,
    depth_map: Annotated[
        Path | None, _option(_SCENE, "Depth of the image's pixels in metres: PFM, TIFF or NPY.")
    ] = None,
    # Texture
    texture: Annotated[
        str | None, _option(_TEXTURE, "Pattern, image file, or folder of images.")
    ] = None,
    texture_seed: Annotated[
        int | None, _option(_TEXTURE, "Seed of the pattern, or number of the image in the folder.")
    ] = None,
    texture_scale: Annotated[
        float | None, _option(_TEXTURE, "Size of a pattern relative to nature.")
    ] = None,
    texture_width: Annotated[
        float | None,
        _length(_TEXTURE, "Width of an image on the plane; fills the view by default."),
    ] = None,
    contrast: Annotated[
        float | None,
        _option(_TEXTURE, "Factor on the difference from mid grey; 0 is a plain surface."),
    ] = None,
    grey: Annotated[
        float | None, _option(_TEXTURE, "Grey that mid grey becomes; 0.5 by default.")
    ] = None,
    shading: Annotated[
        float | None, _option(_TEXTURE, "Amplitude of slow shading; none by default.")
    ] = None,
    colour: Annotated[
        float | None,
        _option(
            _TEXTURE,
            "Share of a pattern that red, green and blue have each for themselves, 0 to 1; grey by "
            "default.",
        ),
    ] = None,
    encoding: Annotated[
        Encoding | None,
        _option(_TEXTURE, "How an image file stores light; srgb by default. Floats are linear."),
    ] = None,
    # Camera
    raw: Annotated[
        bool,
        _option(_CAMERA, "Simulate raw frames of the whole sensor, not rectified pairs.", "--raw"),
    ] = False,
    rig: Annotated[
        Path | None, _option(_CAMERA, "Rig file; the paper's prototype by default.")
    ] = None,
    shape: Annotated[
        str | None,
        _option(
            _CAMERA,
            "Size of each view, 902x1802 for instance; with --raw, of the sensor.",
            metavar="ROWSxCOLS",
        ),
    ] = None,
    psf: Annotated[
        PsfName, typer.Option(help="Shape of a blurred point.", rich_help_panel=_CAMERA)
    ] = PsfName.DISK,
    wavelength: Annotated[
        float | None, _length(_CAMERA, "Wavelength for --psf diffraction; 550nm by default.")
    ] = None,
    lens: Annotated[
        str | None,
        _option(
            _CAMERA,
            "Errors of the lenses: perfect, typical, or a lens file; perfect by default.",
            metavar="NAME|FILE",
        ),
    ] = None,
    lens_seed: Annotated[
        int | None, _option(_CAMERA, "Seed of --lens typical: which two lenses of a kind.")
    ] = None,
    # Sensor
    noise: Annotated[
        float | None, _option(_SENSOR, "Standard deviation of Gaussian noise, of full scale.")
    ] = None,
    full_well: Annotated[
        float | None, _option(_SENSOR, "Electrons at full scale; no shot noise by default.")
    ] = None,
    read_noise: Annotated[
        float | None, _option(_SENSOR, "Standard deviation of the read noise, in electrons.")
    ] = None,
    gain_right: Annotated[
        float | None, _option(_SENSOR, "Transmission of the right lens relative to the left.")
    ] = None,
    offset_right: Annotated[
        float | None, _option(_SENSOR, "Offset added to the right view, of full scale.")
    ] = None,
    vignetting: Annotated[
        float | None, _option(_SENSOR, "Share of light lost in the corner.")
    ] = None,
    gain_pattern: Annotated[
        float | None, _option(_SENSOR, "Standard deviation of each pixel's own gain.")
    ] = None,
    offset_pattern: Annotated[
        float | None, _option(_SENSOR, "Standard deviation of each pixel's own offset.")
    ] = None,
    column_noise: Annotated[
        float | None, _option(_SENSOR, "Standard deviation of an offset of each column.")
    ] = None,
    row_noise: Annotated[
        float | None, _option(_SENSOR, "Standard deviation of an offset of each row.")
    ] = None,
    hot_pixels: Annotated[
        float | None, _option(_SENSOR, "Share of pixels that are always at full scale.")
    ] = None,
    bits: Annotated[
        int | None, _option(_SENSOR, "Grey levels of 8, 10 or 12 bits; not quantised by default.")
    ] = None,
    bayer: Annotated[
        BayerOrder | None,
        _option(
            _SENSOR,
            "Raw frames of a colour sensor: the colours of its first 2 x 2 pixels.",
            case_sensitive=False,
        ),
    ] = None,
    channel_shares: Annotated[
        str | None,
        _option(
            _SENSOR,
            "Share of light that its red, green and blue filters pass, 0.6,1,0.7 for instance; all "
            "by default.",
            metavar="R,G,B",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(help="Seed of the noise, and of random scenes.", rich_help_panel=_SENSOR),
    ] = 0,
    # Files
    images: Annotated[
        ImageFormat,
        typer.Option(help="16-bit PNG, or TIFF of 32-bit floats.", rich_help_panel=_FILES),
    ] = ImageFormat.PNG,
    truth: Annotated[
        TruthFormat,
        typer.Option(help="One NPZ per frame, or one PFM per array.", rich_help_panel=_FILES),
    ] = TruthFormat.NPZ,
    workers: Annotated[
        int | None,
        _option(
            _FILES,
            "Processes to share the frames among; from eight frames on one for each core if left.",
            metavar="COUNT",
        ),
    ] = None,
    recipe: Annotated[
        Path | None, _option(_FILES, "Simulate a recipe.toml again.", metavar="FILE")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace earlier results.", rich_help_panel=_FILES)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing.", rich_help_panel=_FILES)
    ] = False,
) -> None:
    """Simulate images of a scene, with their truth.

    A pair is left.png, right.png and truth.npz, which has the depth, disparity,
    occlusion and blur of each pixel, and the left view through a perfect lens.
    With --raw, it is one frame of the whole sensor. Files of a series are numbered.

    The folder also gets recipe.toml, which gives the same bytes again.
    A run that was stopped is resumed when it is started again.
    """
    check_combination(given_options(ctx), ctx.params)
    from d3s.lab.twin.folder import RECIPE_NAME, render_folder
    from d3s.lab.twin.recipe import Recipe

    to_render = recipe_from_options(ctx.params) if recipe is None else Recipe.load(recipe)
    count = to_render.frame_count
    with progress_bar(count, f"Making {count} frames.", quiet=quiet or count == 1) as progress:
        place = 1 if workers is None and count < _FEWEST_TO_SHARE else chosen_place(workers, None)
        written = render_folder(
            to_render, output, overwrite=force, workers=place, progress=progress
        )
    if not quiet:
        again = shlex.join(["d3s", "simulate", "--recipe", str(output / RECIPE_NAME)])
        typer.echo(f"{_summary(written, output)}\nMake it again: {again} --output FOLDER")


def _summary(written: list[Path], output: Path) -> str:
    """One line that names the files written."""
    if not written:
        return f"Nothing to do: all files are in {output} already."
    names = [path.name for path in written]
    listed = names if len(names) <= 4 else [*names[:2], "...", *names[-2:]]
    return f"Wrote {len(names)} files to {output}: {', '.join(listed)}"
