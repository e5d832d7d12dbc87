"""`simulate`: a scene and a rig in, a pair of views with its truth out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from d3s.errors import SceneError
from d3s.files.images import read_image
from d3s.lab.twin.blur import Sheet
from d3s.lab.twin.depth_map import checked_depth, sheets_of_depth_map
from d3s.lab.twin.geometry import PERFECT, Mount, View, Window, mounted_views
from d3s.lab.twin.layers import placed_layers, sheets_of_layers
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors
from d3s.lab.twin.lens_view import (
    FieldLens,
    extra_reach_px,
    field_lenses,
    front_through,
    lens_light,
    render_through,
)
from d3s.lab.twin.point_spread import Psf, PsfName, psf_of
from d3s.lab.twin.render import EDGE_PX, find_occluded, front_of
from d3s.lab.twin.scenes import DepthMapScene, Scene
from d3s.lab.twin.sensor import Sensor, as_sensor, expose_pair, seed_sequence
from d3s.lab.twin.textures import checked_image
from d3s.lab.twin.warp import nearest_pixels
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import Image, Mask

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
    psf: PsfName | Psf = "disk",
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
        equations, "diffraction" a perfect lens in light of one wavelength; or a function from
        frequencies (cycles/px), a signed blur radius (px) and the lens to the transfer function.
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
    sensor, spread = as_sensor(noise), psf_of(psf, wavelength_m)
    check_camera(rig, mounts, lenses)
    if sensor.bayer is not None:
        raise SceneError(
            f"bayer={sensor.bayer!r} is for raw frames: a rectified pair was resampled, and has "
            "no pattern of colours any more. Use simulate_raw, --raw on the command line."
        )
    seed_sequence(seed)  # refuses a bad seed before rendering
    source = _read_files(scene)
    frame = Window.frame(_checked_shape(shape, source))
    views = mounted_views(rig.optics, frame.shape, mounts)
    fields = field_lenses(lenses, views, spread)
    sheets, edges = _sheets(source, fields, frame)
    lights = [
        render_through(layers, frame, field, edges=at)
        for layers, field, at in zip(sheets, fields, edges, strict=True)
    ]
    light_left, light_right = lens_light(lights, fields, (frame, frame))
    centres = (views[0].centre_px, views[1].centre_px)
    images = expose_pair(light_left, light_right, sensor, seed, centres_px=centres)
    return _with_truth(images, sheets, fields, frame, rig)


def check_camera(rig: Any, mounts: Any, lenses: Any) -> None:
    """Refuse a rig that is no `Rig`, and mounts and lenses that are not two each."""
    if not isinstance(rig, Rig):
        raise SceneError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    for name, given, kind in (("mounts", mounts, Mount), ("lenses", lenses, LensErrors)):
        are_two = isinstance(given, tuple | list) and len(given) == 2
        if not are_two or not all(isinstance(one, kind) for one in given):
            raise SceneError(
                f"{name}={short_repr(given)} must be two of {kind.__name__}, left and right."
            )


def _read_files(scene: Scene) -> Scene:
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
        if Path(depth).suffix.lower() not in _DEPTH_SUFFIXES:
            raise SceneError(
                f"depth_m={depth!r} must be {', '.join(_DEPTH_SUFFIXES)}, with floats in metres: "
                "whole numbers do not say their unit."
            )
        depth = read_image(depth, allow_nan=True)
    try:
        image = checked_image(image, "image")
    except ValueError as error:
        raise SceneError(f"image {error}") from error
    depth = checked_depth(depth, image)
    return DepthMapScene(image=image, depth_m=depth)


def _checked_shape(shape: Any, scene: Scene) -> tuple[int, int]:
    own = scene.image.shape if isinstance(scene, DepthMapScene) else None
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
    scene: Scene, fields: tuple[FieldLens, FieldLens], frame: Window
) -> tuple[list[list[Sheet]], tuple[Mask | None, Mask | None]]:
    """Sheets of both views; of a depth map also the pixels at which edges are corrected."""
    views = (fields[0].view, fields[1].view)
    extra_px = max(extra_reach_px(field, frame) for field in fields)
    if not isinstance(scene, DepthMapScene):
        layers = scene.layers_for(views[0].optics, frame.shape)
        placed = placed_layers(layers, views[0].optics, frame.shape)
        return sheets_of_layers(placed, views, (frame, frame), extra_px), (None, None)
    sheets = sheets_of_depth_map(scene.image, scene.depth_m, views, extra_px)
    if len(sheets[0]) == 1:
        return sheets, (None, None)
    left, right = (_edges(own, frame, view) for own, view in zip(sheets, views, strict=True))
    return sheets, (left, right)


def _edges(sheets: list[Sheet], frame: Window, view: View) -> Mask:
    """Pixels within the blur of a jump in depth to the next pixel on the right or below."""
    import cv2

    inverse_depth = front_of(sheets, frame).inverse_depth
    disparity = inverse_depth * np.float32(view.disparity_per_dpt)
    edges = np.zeros(disparity.shape, dtype=np.bool_)
    edges[:, :-1] |= np.abs(np.diff(disparity, axis=1)) > EDGE_PX
    edges[:-1] |= np.abs(np.diff(disparity, axis=0)) > EDGE_PX
    reach = int(np.ceil(max(abs(sheet.radius_px.constant) for sheet in sheets))) + 2
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), dtype=np.uint8)
    return cv2.dilate(edges.astype(np.uint8), kernel).astype(np.bool_)


def _with_truth(
    images: tuple[Image, Image],
    sheets: list[list[Sheet]],
    fields: tuple[FieldLens, FieldLens],
    frame: Window,
    rig: Rig,
) -> Pair:
    front = front_of(sheets[0], frame)
    views = (fields[0].view, fields[1].view)
    behind = np.zeros_like(front.inverse_depth)  # one sheet hides nothing
    if len(sheets[1]) > 1:
        behind = front_of(sheets[1], frame).inverse_depth
    occluded = find_occluded(front.inverse_depth, behind, views)
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
