"""`simulate`: a scene before a rig, and the pair of views with its truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import SceneError
from d3s.files.images import read_image
from d3s.record import shown
from d3s.rig import Rig
from d3s.scene.blur import Sheet, Spread
from d3s.scene.depth_map import EDGE_PX, checked_depth, depth_edges, sheets_of_depth_map
from d3s.scene.geometry import PERFECT, Mount, View, Window, mounted_views
from d3s.scene.layers import placed_layers, sheets_of_layers
from d3s.scene.photos import checked_image
from d3s.scene.render import front_of, occluded, render_view
from d3s.scene.scenes import DepthMapScene, LayeredScene, Scene
from d3s.scene.sensor import Sensor, as_sensor, expose_pair, seed_sequence
from d3s.types import FloatArray, Image

_Edges = tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]

DEFAULT_SHAPE = (902, 1802)  # the frame of the paper's prototype
_LARGEST_PX = 64_000_000
_DEPTH_SUFFIXES = (".pfm", ".tif", ".tiff", ".npy")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two views of a scene, and what is true of it, all on the pixels of the left view.

    Disparity and blur are those of the rig as designed. With `mounts` that are not perfect the
    views are not rectified, and differ by these errors too.
    """

    left: Image
    right: Image
    depth_m: Image
    all_in_focus: Image  # the left view through a perfect lens, without noise
    occluded: NDArray[np.bool_]  # the right camera does not see the point, or not in its frame
    rig: Rig

    @property
    def disparity_px(self) -> Image:
        """x_left - x_right of each point."""
        return self.rig.optics.disparity_px(self.depth_m).astype(np.float32)

    @property
    def blur_left_px(self) -> Image:
        """Signed blur radius of each point in the left camera."""
        return self.rig.optics.blur_radius_px(self.depth_m, 0).astype(np.float32)

    @property
    def blur_right_px(self) -> Image:
        """Signed blur radius of each point in the right camera."""
        return self.rig.optics.blur_radius_px(self.depth_m, 1).astype(np.float32)


def simulate(
    scene: Scene,
    rig: Rig,
    *,
    noise: float | Sensor = 0.0,
    seed: int | Sequence[int] = 0,
    shape: tuple[int, int] | None = None,
    psf: Literal["disk", "gaussian", "diffraction"] = "disk",
    wavelength_m: float = 550e-9,
    mounts: tuple[Mount, Mount] = (PERFECT, PERFECT),
) -> Pair:
    """Both views of a scene, with its truth.

    Parameters
    ----------
    scene
        `Plane`, `TiltedPlane`, `Layered`, `DepthMapScene` or `RandomScene`.
    noise
        Standard deviation of Gaussian noise, of full scale; or a `Sensor`, for more than that.
    seed
        Of the noise. What is in the scene has seeds of its own.
    shape
        (rows, cols) of each view; that of the prototype, or of the scene if it has one.
    psf
        Shape of a blurred point: "disk" is geometry, "gaussian" the model of the depth equations,
        "diffraction" a perfect lens in light of one wavelength.
    mounts
        Errors of both lenses; the pair is not rectified then.

    Raises
    ------
    SceneError, InputError
        Naming the value or the file that cannot be, before anything is rendered.

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
    sensor, spread = as_sensor(noise), Spread(psf=psf, wavelength_m=wavelength_m)
    check_camera(rig, mounts)
    seed_sequence(seed)  # which is refused now rather than at the end
    told = _read(scene)
    frame = Window.frame(_checked_shape(shape, told))
    views = mounted_views(rig.optics, frame.shape, mounts)
    left, right, edges = _sheets(told, views, frame)
    light = render_pair((left, right), views, frame, spread, edges)
    centres = (views[0].centre_px, views[1].centre_px)
    seen = expose_pair(*light, sensor, seed, centres_px=centres)
    return _with_truth(seen, (left, right), views, frame, rig)


def render_pair(
    sheets: tuple[list[Sheet], list[Sheet]],
    views: tuple[View, View],
    frame: Window,
    spread: Spread,
    edges: _Edges = (None, None),
) -> tuple[Image, Image]:
    """Light on the sensor in both views."""
    left, right = (
        render_view(sheets[i], frame, views[i].optics.lens(i), spread, edges[i]) for i in (0, 1)
    )
    return left, right


def check_camera(rig: Any, mounts: Any) -> None:
    """Refuse what is no rig, or no pair of mounts."""
    if not isinstance(rig, Rig):
        raise SceneError(f"rig={shown(rig)} must be a Rig. Read a rig file with Rig.load.")
    are_two = isinstance(mounts, tuple | list) and len(mounts) == 2
    if not are_two or not all(isinstance(mount, Mount) for mount in mounts):
        raise SceneError(f"mounts={shown(mounts)} must be two of Mount, left and right.")


class _Picture(NamedTuple):
    """A depth-map scene, read and checked."""

    image: Image
    depth_m: FloatArray


def _read(scene: Scene) -> _Picture | LayeredScene:
    """A scene whose files are read; one of layers reads its own."""
    if not isinstance(scene, DepthMapScene):
        if isinstance(scene, type) or not hasattr(scene, "layers_for"):
            raise SceneError(
                f"scene={shown(scene)} must be a Plane, TiltedPlane, Layered, DepthMapScene or "
                "RandomScene."
            )
        return scene
    image, depth = scene.image, scene.depth_m
    if not isinstance(image, np.ndarray):
        image = read_image(image, linear=scene.encoding == "linear")
    elif scene.encoding == "srgb":
        raise SceneError("encoding='srgb' is for files: an array is linear. Undo its curve first.")
    if not isinstance(depth, np.ndarray):
        depth = _depth_file(depth)
    try:
        image = checked_image(image, "image")
    except ValueError as error:
        raise SceneError(f"image {error}") from error
    return _Picture(image, checked_depth(depth, image))


def _depth_file(path: str) -> Image:
    if Path(path).suffix.lower() not in _DEPTH_SUFFIXES:
        raise SceneError(
            f"depth_m={path!r} must be {', '.join(_DEPTH_SUFFIXES)}, with floats in metres: whole "
            "numbers do not say their unit."
        )
    return read_image(path, allow_nan=True)


def _checked_shape(shape: Any, scene: _Picture | LayeredScene) -> tuple[int, int]:
    own = scene.image.shape if isinstance(scene, _Picture) else None
    if shape is None:
        return getattr(scene, "own_shape", DEFAULT_SHAPE) if own is None else (own[0], own[1])
    try:
        rows, cols = (int(size) for size in shape)
        is_whole = all(int(size) == size for size in shape)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise SceneError(f"shape={shown(shape)} must be (rows, cols), two whole numbers.")
    if rows < 1 or cols < 1 or rows * cols > _LARGEST_PX:
        raise SceneError(f"shape={shown(shape)} must have from 1 to {_LARGEST_PX} pixels.")
    if own is not None and (rows, cols) != own:
        raise SceneError(f"shape={shown(shape)} must be that of the scene's image, {own}.")
    return rows, cols


def _sheets(
    scene: _Picture | LayeredScene, views: tuple[View, View], frame: Window
) -> tuple[list[Sheet], list[Sheet], _Edges]:
    if not isinstance(scene, _Picture):
        layers = scene.layers_for(views[0].optics, frame.shape)
        placed = placed_layers(layers, views[0].optics, frame.shape)
        return *sheets_of_layers(placed, views, (frame, frame)), (None, None)
    left, right = sheets_of_depth_map(*scene, views)
    if len(left) == 1:
        return left, right, (None, None)
    in_left, in_right = (
        _near(depth_edges(front_of(sheets, frame, colour=False).inverse_depth, view), sheets)
        for sheets, view in zip((left, right), views, strict=True)
    )
    return left, right, (in_left, in_right)


def _near(edges: NDArray[np.bool_], sheets: list[Sheet]) -> NDArray[np.bool_]:
    """Pixels that an edge may spread to."""
    import cv2

    reach = int(np.ceil(max(abs(sheet.radius_px.constant) for sheet in sheets))) + 2
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), dtype=np.uint8)
    return cv2.dilate(edges.astype(np.uint8), kernel).astype(np.bool_)


def _with_truth(
    images: tuple[Image, Image],
    sheets: tuple[list[Sheet], list[Sheet]],
    views: tuple[View, View],
    frame: Window,
    rig: Rig,
) -> Pair:
    front = front_of(sheets[0], frame)
    is_one = len(sheets[1]) == 1
    behind = None if is_one else front_of(sheets[1], frame, colour=False).inverse_depth
    optics = rig.optics
    per_dpt = float(optics.disparity_px(1.0)) - optics.disparity_offset_px
    return Pair(
        left=images[0],
        right=images[1],
        depth_m=np.float32(1.0) / front.inverse_depth,
        all_in_focus=front.colour,
        occluded=occluded(front.inverse_depth, behind, views, EDGE_PX / per_dpt),
        rig=rig,
    )
