"""Raw pictures of two cameras that differ: rectified by d3s, against a pair that is rectified.

Two cameras with 5 % of distortion at the corners and 2 degrees of rotation between them look at a
slanted wall with a panel before it. The twin has the same views, rendered as rectified cameras see
them. `python benchmarks/unrectified.py` prints the rows by which the rectified views disagree, and
the error of depth of both pairs.
"""

import argparse
from typing import Any, NamedTuple

import cv2
import numpy as np

import d3s
from d3s.lab.twin.geometry import Window
from d3s.lab.twin.textures import Texture
from d3s.rig.imports.pair import CameraPair, rig_of
from d3s.rig.stereo_camera import RawCamera
from d3s.types import FloatArray, Image

PATTERNS = "text", "gravel", "bark", "brick"  # reported, and not tuned on
NOISE = 0.01
_TEXEL_LEVEL = 7  # 1.28 mm
_TEXELS = 3072
LENS_PX = 0.5  # Gaussian blur of the lenses
_SUBPIXELS = np.arange(-5, 6) / 3
_STEPS = 30  # of the inversion of the lens
# Height of the wall over the texture's plane, and the panel before it: metres.
_WALL_M, _SLANT = 2.0, np.array([0.3, -0.15])
_PANEL_M, _PANEL_HALF = 1.3, np.array([0.28, 0.22])


class Rendered(NamedTuple):
    """Picture, and depth along the axis of the camera."""

    image: Image
    depth_m: Image


def cameras(rows: int, cols: int) -> CameraPair:
    """Two cameras, whose field is 55 degrees wide."""
    focal = 0.96 * cols
    coefficients = (-0.128, 0.03, 0.0006, -0.0004), (-0.12, 0.026, -0.0005, 0.0003)
    both = [
        RawCamera(
            model="pinhole",
            rows_px=rows,
            cols_px=cols,
            focal_lengths_px=(focal * scale, focal * scale * 1.001),
            principal_point_px=((cols - 1) / 2 + shift, (rows - 1) / 2 - shift),
            distortion=distortion,
        )
        for scale, shift, distortion in zip(
            (1.0, 1.004), (0.006 * cols, -0.009 * cols), coefficients, strict=True
        )
    ]
    turn = cv2.Rodrigues(np.radians([1.0, 1.4, -1.0]))[0]
    return CameraPair(
        cameras=(both[0], both[1]),
        rotation=np.asarray(turn, dtype=np.float64),
        translation=np.array([-0.119, 0.0021, 0.0013]),
        name="synthetic cameras",
    )


def distortion_share(camera: RawCamera) -> float:
    """Largest move of a point by distortion, over its distance from the axis."""
    corner = np.array([[0.0, 0.0], [camera.cols_px - 1.0, camera.rows_px - 1.0]])
    rays = _rays(camera, corner)
    straight = np.linalg.norm(rays[:, :2] * camera.focal_lengths_px, axis=1)
    seen = np.linalg.norm(corner - camera.principal_point_px, axis=1)
    return float(np.abs(seen / straight - 1).max())


def render(
    camera: RawCamera,
    turn: FloatArray,
    place: FloatArray,
    texture: tuple[Image, Image],
    lens_px: float = LENS_PX,
) -> Rendered:
    """Picture of a camera.

    Parameters
    ----------
    camera
        Lens and size.
    turn
        Rotation (3, 3) from the frame of the scene to that of the camera.
    place
        Centre of the camera in the scene, in metres.
    texture
        Textures of the wall and of the panel.
    lens_px
        Standard deviation of the blur of the lens; 0 for none.
    """
    y, x = np.mgrid[: camera.rows_px, : camera.cols_px].astype(np.float64)
    places = np.stack([x.ravel(), y.ravel()], axis=1)
    directions = (_rays(camera, places) @ turn).reshape(*x.shape, 3)
    down, right = np.gradient(directions, axis=(0, 1))  # rays within a pixel are linear
    total = np.zeros(x.size)
    weights = [(place, weight) for place, weight in _weights(lens_px) if weight > 1e-6]
    for i, weight_y in weights:
        for j, weight_x in weights:
            moved = (directions + i * down + j * right).reshape(-1, 3)
            total += weight_y * weight_x * _seen(moved, place, texture)[0]
    distance = _seen(directions.reshape(-1, 3), place, texture)[1]
    depth = distance * (directions.reshape(-1, 3) @ turn.T)[:, 2]
    return Rendered(
        total.reshape(x.shape).astype(np.float32), depth.reshape(x.shape).astype(np.float32)
    )


def _weights(lens_px: float) -> list[tuple[float, float]]:
    """Places of samples along a side of a pixel, and their weights: its square, blurred."""
    thirds = (-1 / 3, 0.0, 1 / 3)
    spread = max(lens_px, 0.01)
    values = sum(np.exp(-0.5 * ((_SUBPIXELS - one) / spread) ** 2) for one in thirds)
    weights = np.asarray(values) / np.sum(values)
    return list(zip(_SUBPIXELS.tolist(), weights.tolist(), strict=True))


def _rays(camera: RawCamera, places: FloatArray) -> FloatArray:
    """Directions (n, 3) with z = 1 of places in the picture; the lens model is inverted."""
    focal = np.array(camera.focal_lengths_px)
    lens = np.array(camera.distortion or (0.0,) * 4)
    found = (places - camera.principal_point_px) / focal
    rays = np.column_stack([found, np.ones(len(found))])
    if not camera.distortion:
        return rays
    zero = np.zeros(3)
    for _ in range(_STEPS):
        seen = cv2.projectPoints(rays, zero, zero, camera.matrix, lens)[0].reshape(-1, 2)
        rays[:, :2] += (places - seen) / focal
    return rays


def _seen(
    directions: FloatArray, place: FloatArray, texture: tuple[Image, Image]
) -> tuple[FloatArray, FloatArray]:
    """Grey, and factor on the direction, of the surface that rays meet first."""
    # The wall: z = _WALL_M + _SLANT · (x, y).
    normal = np.array([-_SLANT[0], -_SLANT[1], 1.0])
    to_wall = (_WALL_M - place @ normal) / (directions @ normal)
    to_panel = (_PANEL_M - place[2]) / directions[:, 2]
    on_panel = place + to_panel[:, None] * directions
    is_panel = np.all(np.abs(on_panel[:, :2]) < _PANEL_HALF, axis=1)
    on_wall = place + to_wall[:, None] * directions
    grey = np.where(is_panel, _sample(texture[1], on_panel), _sample(texture[0], on_wall))
    return grey, np.where(is_panel, to_panel, to_wall)


def _sample(texels: Image, points: FloatArray) -> FloatArray:
    pitch_m = 1e-5 * 2.0**_TEXEL_LEVEL
    at = (points[:, :2] / pitch_m + _TEXELS / 2).astype(np.float32)
    rows = -(-len(at) // 1000)  # OpenCV maps images of at most 32767 rows
    x, y = (np.resize(one, (rows, 1000)) for one in at.T)
    mapped = cv2.remap(texels, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(mapped, dtype=np.float64).ravel()[: len(at)]


def textures(pattern: str, seed: int) -> tuple[Image, Image]:
    """Textures of the wall and of the panel."""
    half = _TEXELS // 2
    found = [
        Texture(pattern=pattern, seed=seed + one, scale=1.0).raster(
            _TEXEL_LEVEL, Window(-half, -half, _TEXELS, _TEXELS)
        )
        for one in (0, 1)
    ]
    return found[0].values, found[1].values


class Pairs(NamedTuple):
    """Raw pictures, the twin's views, the true depth of the left view, and the rig."""

    raw: tuple[Image, Image]
    twin: tuple[Image, Image]
    depth_m: Image
    rig: d3s.Rig


def pairs(
    pattern: str, seed: int, *, rows: int = 300, cols: int = 400, lens_px: float = LENS_PX
) -> Pairs:
    """Render both pairs, with noise.

    Parameters
    ----------
    pattern
        Texture of the scene.
    seed
        Seed of texture and noise.
    rows, cols
        Size of the pictures.
    lens_px
        Blur of the lenses, of the twin's too.
    """
    made = cameras(rows, cols)
    rig = rig_of(made)
    if made.rotation is None or made.translation is None or rig.stereo is None:
        raise ValueError("the cameras are not placed.")
    texture = textures(pattern, seed)
    turns = np.eye(3), made.rotation
    places = np.zeros(3), -made.rotation.T @ made.translation
    raw = [
        render(camera, turn, place, texture, lens_px)
        for camera, turn, place in zip(made.cameras, turns, places, strict=True)
    ]
    views = [_view(rig, side) for side in (0, 1)]
    left, right = rig.stereo.raw_cameras or ()
    to_views = [
        np.array(camera.rotation) @ turn for camera, turn in zip((left, right), turns, strict=True)
    ]
    twin = [
        render(camera, turn, place, texture, lens_px)
        for camera, turn, place in zip(views, to_views, places, strict=True)
    ]
    rng = np.random.default_rng(seed)
    noisy: list[Any] = [
        (one.image + rng.normal(0, NOISE, one.image.shape)).astype(np.float32)
        for one in (*raw, *twin)
    ]
    return Pairs((noisy[0], noisy[1]), (noisy[2], noisy[3]), twin[0].depth_m, rig)


def _view(rig: d3s.Rig, side: int) -> RawCamera:
    """Camera without distortion that sees a rectified view of a rig."""
    stereo, focal = rig.stereo, rig.optics.focal_length_px
    if stereo is None or stereo.shape is None:
        raise ValueError("the rig has no views.")
    x, y = stereo.principal_point_px
    return RawCamera(
        model="pinhole",
        rows_px=stereo.shape[0],
        cols_px=stereo.shape[1],
        focal_lengths_px=(focal, focal),
        principal_point_px=(x - side * rig.optics.disparity_offset_px, y),
    )


class Measured(NamedTuple):
    """Rows by which the views disagree, and error of depth of both pairs, in pixels."""

    rows_px: float  # largest of all parts of the frame
    error_px: float  # median of the absolute error of disparity, of the rectified pair
    twin_error_px: float
    rms_px: float  # of the same, without the largest percent
    twin_rms_px: float
    density: float
    twin_density: float


def measure(made: Pairs) -> Measured:
    """Estimate the depth of both pairs, at the pixels that both have."""
    views = made.rig.rectify(*made.raw)
    # The twin sees no more than the pictures show.
    seen = [
        np.where(np.isfinite(view), one, np.float32(np.nan))
        for view, one in zip(views, made.twin, strict=True)
    ]
    options = {"depth_range_m": (0.8, 5.0)}
    found = d3s.estimate(*views, made.rig, options=options)
    twin = d3s.estimate(*seen, made.rig, options=options)
    truth = made.rig.optics.disparity_px(made.depth_m)
    is_known = found.valid & twin.valid & np.isfinite(views[0])
    errors = [np.abs(one.disparity_px - truth)[is_known] for one in (found, twin)]
    kept = [error[error <= np.percentile(error, 99)] for error in errors]
    return Measured(
        _rows_px(views, truth),
        *(float(np.median(error)) for error in errors),
        *(float(np.sqrt(np.mean(error**2))) for error in kept),
        found.density,
        twin.density,
    )


def _rows_px(views: tuple[Image, Image], truth_px: FloatArray) -> float:
    """Largest number of rows by which the views disagree, over parts of a fifth of the frame.

    The right view is moved by the true disparity; what is left of the left view is a number of rows
    times the derivative down, and of columns times that across.
    """
    rows, cols = truth_px.shape
    y, x = np.mgrid[:rows, :cols].astype(np.float32)
    smooth = [cv2.GaussianBlur(view, (0, 0), 1.5) for view in views]  # NaN spreads
    moved = cv2.remap(
        smooth[1], (x - truth_px).astype(np.float32), y, cv2.INTER_CUBIC, borderValue=np.nan
    )
    mean, residual = 0.5 * (smooth[0] + moved), smooth[0] - moved
    down, across = np.gradient(mean, axis=(0, 1))
    is_flat = cv2.dilate(truth_px, np.ones((15, 15))) - cv2.erode(truth_px, np.ones((15, 15))) < 2
    is_good = np.isfinite(residual + down + across) & is_flat  # on one surface
    found = []
    for i in range(5):
        for j in range(5):
            part = np.zeros(is_good.shape, dtype=bool)
            part[rows * i // 5 : rows * (i + 1) // 5, cols * j // 5 : cols * (j + 1) // 5] = True
            part &= is_good
            if part.sum() > part.size / 50:
                terms = np.stack([down[part], across[part]], axis=1)
                found.append(np.linalg.lstsq(terms, residual[part], rcond=None)[0][0])
    return float(np.abs(found).max())


def main() -> None:
    """Print a row for each pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=480)
    parser.add_argument("--cols", type=int, default=640)
    parser.add_argument("--seed", type=int, default=500)
    parser.add_argument("--lens-px", type=float, default=LENS_PX)
    given = parser.parse_args()
    camera = cameras(given.rows, given.cols).cameras[0]
    print(f"distortion at the corners: {distortion_share(camera):.1%}")
    print(
        "| texture | largest rows (px) | median error, twin (px) | rms, twin (px) | density, twin |"
    )
    print("|---|---|---|---|---|")
    for seed, pattern in enumerate(PATTERNS):
        made = pairs(
            pattern,
            given.seed + 10 * seed,
            rows=given.rows,
            cols=given.cols,
            lens_px=given.lens_px,
        )
        found = measure(made)
        print(
            f"| {pattern} | {found.rows_px:.3f} | {found.error_px:.4f}, {found.twin_error_px:.4f} "
            f"| {found.rms_px:.4f}, {found.twin_rms_px:.4f} "
            f"| {found.density:.1%}, {found.twin_density:.1%} |"
        )


if __name__ == "__main__":
    main()
