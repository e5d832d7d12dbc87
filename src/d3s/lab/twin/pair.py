"""`simulate`: a scene and a rig in, a pair of views with its truth out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import SceneError
from d3s.files.images import read_image
from d3s.lab.twin.blur import BlurModel, Psf, Sheet
from d3s.lab.twin.depth_map import EDGE_PX, checked_depth, depth_edges, sheets_of_depth_map
from d3s.lab.twin.distortion import nearest_pixels
from d3s.lab.twin.geometry import PERFECT, Mount, Window, mounted_views
from d3s.lab.twin.layers import placed_layers, sheets_of_layers, sheets_of_view
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors, check_lenses
from d3s.lab.twin.lens_view import (
    FieldLens,
    extra_reach_px,
    field_lenses,
    front_through,
    lens_light,
    render_through,
)
from d3s.lab.twin.render import find_occluded, front_of
from d3s.lab.twin.scenes import DepthMapScene, LayeredScene, Scene
from d3s.lab.twin.sensor import Sensor, as_sensor, expose_pair, seed_sequence
from d3s.lab.twin.textures import checked_image
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Mask

_Edges = tuple[Mask | None, Mask | None]

DEFAULT_SHAPE = (902, 1802)  # the frame of the paper's prototype
_LARGEST_PX = 64_000_000
_DEPTH_SUFFIXES = (".pfm", ".tif", ".tiff", ".npy")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two views of a scene, and its truth on the pixels of the left view.

    Arrays are (rows, cols); images are linear with full scale 1. Disparity and blur are those of
    the rig as designed. With imperfect `mounts` the views are not rectified, and also differ by the
    mounting errors.
    """

    left: Image
    right: Image
    depth_m: Image
    all_in_focus: Image  # the left view through a perfect lens, without noise
    occluded: Mask  # the point is hidden from the right camera, or outside its frame
    rig: Rig

    @property
    def disparity_px(self) -> Image:
        """Disparity x_left - x_right of each point, in pixels."""
        return self.rig.optics.disparity_px(self.depth_m).astype(np.float32)

    @property
    def blur_left_px(self) -> Image:
        """Signed blur radius of each point in the left camera, in pixels."""
        return self.rig.optics.blur_radius_px(self.depth_m, 0).astype(np.float32)

    @property
    def blur_right_px(self) -> Image:
        """Signed blur radius of each point in the right camera, in pixels."""
        return self.rig.optics.blur_radius_px(self.depth_m, 1).astype(np.float32)


def simulate(
    scene: Scene,
    rig: Rig,
    *,
    noise: float | Sensor = 0.0,
    seed: int | Sequence[int] = 0,
    shape: tuple[int, int] | None = None,
    psf: Psf = "disk",
    wavelength_m: float = 550e-9,
    mounts: tuple[Mount, Mount] = (PERFECT, PERFECT),
    lenses: tuple[LensErrors, LensErrors] = (PERFECT_LENS, PERFECT_LENS),
) -> Pair:
    """Render both views of a scene, with its truth.

    Parameters
    ----------
    scene
        `Plane`, `TiltedPlane`, `BentPlane`, `Layered`, `DepthMapScene` or `RandomScene`.
    rig
        Camera; only its optics are used.
    noise
        Standard deviation of Gaussian noise relative to full scale, or a `Sensor`.
    seed
        Seed of the noise. Textures and random scenes have seeds of their own.
    shape
        (rows, cols) of each view; by default the shape of the scene if it has one, otherwise that
        of the prototype, (902, 1802).
    psf
        Shape of a blurred point: "disk" is geometric optics, "gaussian" the model of the depth
        equations, "diffraction" a perfect lens in light of one wavelength.
    wavelength_m
        Wavelength for "diffraction", in metres.
    mounts
        Mounting errors of the left and the right lens; the pair is then not rectified.
    lenses
        Errors of the left and the right lens itself, such as distortion and field curvature.

    Returns
    -------
    Pair
        Views of (rows, cols), linear with full scale 1, and the truth of each pixel.

    Raises
    ------
    SceneError, InputError
        Names the value or file that is wrong, before anything is rendered.

    Examples
    --------
    >>> import d3s
    >>> rig = d3s.Rig.paper_prototype()
    >>> wall = d3s.Plane(depth_m=0.8, texture="leaves")
    >>> pair = d3s.simulate(wall, rig, noise=0.01, seed=3, shape=(120, 180))
    >>> pair.left.shape, pair.left.dtype.name
    ((120, 180), 'float32')
    >>> print(f"{pair.depth_m.max():.1f} m, {pair.disparity_px.max():.1f} px")
    0.8 m, 29.0 px
    """
    sensor, blur_model = as_sensor(noise), BlurModel(psf=psf, wavelength_m=wavelength_m)
    check_camera(rig, mounts)
    check_lenses(lenses)
    if sensor.bayer is not None:
        raise SceneError(
            f"bayer={sensor.bayer!r} is for raw frames: a rectified pair was resampled, and has "
            "no pattern of colours any more. Use simulate_raw, --raw on the command line."
        )
    seed_sequence(seed)  # refuses a bad seed before rendering
    source = _read_files(scene)
    frame = Window.frame(_checked_shape(shape, source))
    views = mounted_views(rig.optics, frame.shape, mounts)
    fields = field_lenses(lenses, views, blur_model)
    sheets, edges = _sheets(source, fields, frame)
    lights = [
        render_through(layers, frame, field, edges=at)
        for layers, field, at in zip(sheets, fields, edges, strict=True)
    ]
    light_left, light_right = lens_light(lights, fields, (frame, frame))
    centres = (views[0].centre_px, views[1].centre_px)
    images = expose_pair(light_left, light_right, sensor, seed, centres_px=centres)
    return _with_truth(images, sheets, fields, frame, rig)


def check_camera(rig: Any, mounts: Any) -> None:
    """Refuse a rig that is no `Rig`, and mounts that are not two `Mount`."""
    if not isinstance(rig, Rig):
        raise SceneError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    are_two = isinstance(mounts, tuple | list) and len(mounts) == 2
    if not are_two or not all(isinstance(mount, Mount) for mount in mounts):
        raise SceneError(f"mounts={short_repr(mounts)} must be two of Mount, left and right.")


class _ImageWithDepth(NamedTuple):
    """A depth-map scene, read and checked."""

    image: Image
    depth_m: FloatArray


def _read_files(scene: Scene) -> _ImageWithDepth | LayeredScene:
    """Read the files of a depth-map scene; layered scenes read their own files later."""
    if not isinstance(scene, DepthMapScene):
        if isinstance(scene, type) or not hasattr(scene, "layers_for"):
            raise SceneError(
                f"scene={short_repr(scene)} must be a Plane, TiltedPlane, BentPlane, Layered, "
                "DepthMapScene or RandomScene."
            )
        return scene
    image, depth = scene.image, scene.depth_m
    if not isinstance(image, np.ndarray):
        image = read_image(image, linear=scene.encoding == "linear")
    elif scene.encoding == "srgb":
        raise SceneError("encoding='srgb' is for files: an array is linear. Undo its curve first.")
    if not isinstance(depth, np.ndarray):
        depth = _read_depth(depth)
    try:
        image = checked_image(image, "image")
    except ValueError as error:
        raise SceneError(f"image {error}") from error
    return _ImageWithDepth(image, checked_depth(depth, image))


def _read_depth(path: str) -> Image:
    if Path(path).suffix.lower() not in _DEPTH_SUFFIXES:
        raise SceneError(
            f"depth_m={path!r} must be {', '.join(_DEPTH_SUFFIXES)}, with floats in metres: whole "
            "numbers do not say their unit."
        )
    return read_image(path, allow_nan=True)


def _checked_shape(shape: Any, scene: _ImageWithDepth | LayeredScene) -> tuple[int, int]:
    own = scene.image.shape if isinstance(scene, _ImageWithDepth) else None
    if shape is None:
        return getattr(scene, "own_shape", DEFAULT_SHAPE) if own is None else (own[0], own[1])
    try:
        rows, cols = (int(size) for size in shape)
        is_whole = all(int(size) == size for size in shape)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise SceneError(f"shape={short_repr(shape)} must be (rows, cols), two whole numbers.")
    if rows < 1 or cols < 1 or rows * cols > _LARGEST_PX:
        raise SceneError(f"shape={short_repr(shape)} must have from 1 to {_LARGEST_PX} pixels.")
    if own is not None and (rows, cols) != own:
        raise SceneError(f"shape={short_repr(shape)} must be that of the scene's image, {own}.")
    return rows, cols


def _sheets(
    scene: _ImageWithDepth | LayeredScene, fields: tuple[FieldLens, FieldLens], frame: Window
) -> tuple[tuple[list[Sheet], list[Sheet]], _Edges]:
    views = (fields[0].view, fields[1].view)
    extra_px = max(extra_reach_px(field, frame) for field in fields)
    if not isinstance(scene, _ImageWithDepth):
        layers = scene.layers_for(views[0].optics, frame.shape)
        placed = placed_layers(layers, views[0].optics, frame.shape)
        frames = (frame, frame)
        if not extra_px:
            return sheets_of_layers(placed, views, frames), (None, None)
        left, right = (sheets_of_view(placed, views, frames, camera, extra_px) for camera in (0, 1))
        return (left, right), (None, None)
    left, right = sheets_of_depth_map(*scene, views, extra_px)
    if len(left) == 1:
        return (left, right), (None, None)
    in_left, in_right = (
        _dilate_by_blur(
            depth_edges(front_of(sheets, frame, colour=False).inverse_depth, view), sheets
        )
        for sheets, view in zip((left, right), views, strict=True)
    )
    return (left, right), (in_left, in_right)


def _dilate_by_blur(edges: Mask, sheets: list[Sheet]) -> Mask:
    """Pixels within the blur of an edge."""
    import cv2

    reach = int(np.ceil(max(abs(sheet.radius_px.constant) for sheet in sheets))) + 2
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), dtype=np.uint8)
    return cv2.dilate(edges.astype(np.uint8), kernel).astype(np.bool_)


def _with_truth(
    images: tuple[Image, Image],
    sheets: tuple[list[Sheet], list[Sheet]],
    fields: tuple[FieldLens, FieldLens],
    frame: Window,
    rig: Rig,
) -> Pair:
    front = front_of(sheets[0], frame)
    views = (fields[0].view, fields[1].view)
    is_one = len(sheets[1]) == 1
    behind = None if is_one else front_of(sheets[1], frame, colour=False).inverse_depth
    step_dpt = EDGE_PX / max(views[0].disparity_per_dpt, 1e-9)  # 0 for a camera without baseline
    occluded = find_occluded(front.inverse_depth, behind, views, step_dpt)
    distortion = fields[0].distortion
    if distortion is not None:
        front = front_through(sheets[0], frame, fields[0])
        occluded = occluded[nearest_pixels(distortion, frame, frame)]
    return Pair(
        left=images[0],
        right=images[1],
        depth_m=np.float32(1.0) / front.inverse_depth,
        all_in_focus=front.colour,
        occluded=occluded,
        rig=rig,
    )
