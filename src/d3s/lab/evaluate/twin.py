"""The twin against the path tracer: the same plane and the same two layers, rendered by both.

Both get the same texture, rig and pixels, and nothing else is shared: the twin blurs sharp layers
in the frequency domain, the path tracer sends rays through every point of the aperture. Surfaces
shine by themselves, so that no lamp makes a difference.
"""

from dataclasses import dataclass

import numpy as np

from d3s.lab.evaluate.metrics import mean_or_nan
from d3s.lab.rooms.mitsuba import render_layout
from d3s.lab.rooms.room import Layout, Paint, Quad
from d3s.lab.twin.pair import Pair, simulate
from d3s.lab.twin.scenes import Layer, Layered, Plane, Scene
from d3s.lab.twin.textures import Texture
from d3s.rig import Optics, Rig
from d3s.types import FloatArray, Mask, Progress

PLANES_M = (0.4, 0.8, 1.2, 1.8)
"""Depths of the planes."""
BEHIND_M, FRONT_M = 1.4, 0.6
"""Depths of the background and of the square in front of it."""
SCENES = len(PLANES_M) + 1
"""Number of scenes of `compare_twin`."""
_SEEDS = 11, 12  # of the textures of the background and of the square
_BORDER_PX = 8
_EDGE_PX = 12  # more than the blur of both layers

_Masks = tuple[Mask, Mask]
"""Pixels of the left and of the right view."""


@dataclass(frozen=True, kw_only=True)
class TwinRow:
    """Difference of the two renders in one region, of both views together, of full scale."""

    scene: str
    region: str
    pixels: int  # of both views
    rms: float  # of the difference, without the noise of the path tracer
    noise: float  # standard deviation of the noise of the path tracer
    bias: float  # mean of the twin less the path tracer


def compare_twin(
    rig: Rig | None = None,
    *,
    shape: tuple[int, int] = (200, 300),
    samples: int = 256,
    pattern: str = "leaves",
    progress: Progress | None = None,
) -> list[TwinRow]:
    """Render planes and two layers by the twin and by the path tracer, and compare the views.

    Each is traced twice, with different paths: half the difference of these is the noise, which the
    difference from the twin does not contain.

    All surfaces have one texture. `progress` is called with the number of scenes that are done, and
    of all. Mitsuba must be installed.
    """
    rig = rig or Rig.paper_prototype()
    textures = [Texture(pattern=pattern, seed=seed) for seed in _SEEDS]
    rows: list[TwinRow] = []
    scenes: list[tuple[str, tuple[float, ...]]]
    scenes = [(f"plane at {depth_m:g} m", (depth_m,)) for depth_m in PLANES_M]
    scenes.append((f"square at {FRONT_M:g} m before {BEHIND_M:g} m", (BEHIND_M, FRONT_M)))
    square = _square(shape)
    for number, (name, depths_m) in enumerate(scenes):
        twin = simulate(_twin_scene(depths_m, textures, square), rig, shape=shape)
        layout = _layout(depths_m, textures, square, rig.optics)
        traced = [render_layout(layout, rig, shape, samples, seed=seed) for seed in (0, 1)]
        regions = _regions(square, depths_m, rig.optics)
        rows += [_row(name, region, masks, twin, traced) for region, masks in regions.items()]
        if progress is not None:
            progress(number + 1, SCENES)
    return rows


def _square(shape: tuple[int, int]) -> Mask:
    """Square in the middle of the frame, half as high as it."""
    mask = np.zeros(shape, dtype=np.bool_)
    half, (row, col) = shape[0] // 4, (shape[0] // 2, shape[1] // 2)
    mask[row - half : row + half, col - half : col + half] = True
    return mask


def _twin_scene(depths_m: tuple[float, ...], textures: list[Texture], square: Mask) -> Scene:
    if len(depths_m) == 1:
        return Plane(depth_m=depths_m[0], texture=textures[0])
    front = Layer(depth_m=depths_m[1], texture=textures[1], mask=square.astype(np.float64))
    return Layered(layers=(front, Layer(depth_m=depths_m[0], texture=textures[0])))


def _layout(
    depths_m: tuple[float, ...], textures: list[Texture], square: Mask, optics: Optics
) -> Layout:
    rows, cols = square.shape
    solids = [
        _glowing(depths_m[0], textures[0], (-rows, 2 * rows, -cols, 2 * cols), optics, square)
    ]
    if len(depths_m) > 1:
        at_row, at_col = (np.flatnonzero(square.any(axis=axis)) for axis in (1, 0))
        ends = (at_row[0] - 0.5, at_row[-1] + 0.5, at_col[0] - 0.5, at_col[-1] + 0.5)
        solids.append(_glowing(depths_m[1], textures[1], ends, optics, square))
    return Layout([*solids], [])


def _glowing(
    depth_m: float,
    texture: Texture,
    ends_px: tuple[float, float, float, float],
    optics: Optics,
    frame: Mask,
) -> Quad:
    """Plane that shines by itself, between rows and columns of the left view.

    Its texture lies as in the twin: texel (0, 0) is centred on the axis of the left camera.
    """
    per_px = depth_m / optics.focal_length_px
    axis = np.array([(frame.shape[0] - 1) / 2, (frame.shape[1] - 1) / 2])
    first, last = (np.array(ends_px[one::2]) - axis for one in (0, 1))
    paint = Paint(
        0.5,
        texture,
        texel_m=0.5 * per_px,
        extent_m=(float(last[0] - first[0]) * per_px, float(last[1] - first[1]) * per_px),
        finish="glowing",
    )
    return _aligned(paint, first * per_px, last * per_px, depth_m)


def _aligned(paint: Paint, first_m: FloatArray, last_m: FloatArray, depth_m: float) -> Quad:
    pitch_m = paint.pitch_m
    to_middle = 0.5 * (np.array([round(size / pitch_m) for size in paint.size_m]) - 1)
    middle, half = 0.5 * (first_m + last_m), 0.5 * (last_m - first_m)
    texels = np.rint(middle / pitch_m - to_middle).astype(int)
    offset = (texels + to_middle) * pitch_m - middle
    placed = paint._replace(
        first_texel=(int(texels[0]), int(texels[1])), offset_m=(float(offset[0]), float(offset[1]))
    )
    return Quad(
        np.array([middle[1], middle[0], depth_m]),
        np.array([half[1], 0.0, 0.0]),
        np.array([0.0, half[0], 0.0]),
        placed,
    )


def _regions(square: Mask, depths_m: tuple[float, ...], optics: Optics) -> dict[str, _Masks]:
    """Regions by name, each on the pixels of the left and of the right view."""
    inside = np.zeros(square.shape, dtype=np.bool_)
    inside[_BORDER_PX:-_BORDER_PX, _BORDER_PX:-_BORDER_PX] = True
    if len(depths_m) == 1:
        return {"all": (inside, inside)}
    shift_px = round(float(optics.disparity_px(depths_m[1])))
    left, right = (_near_outline(np.roll(square, -shift, axis=1)) for shift in (0, shift_px))
    return {
        "near edges": (inside & left, inside & right),
        "interior": (inside & ~left, inside & ~right),
    }


def _near_outline(square: Mask) -> Mask:
    """Pixels within `_EDGE_PX` of the outline of a square, to all sides."""
    import cv2

    kernel = np.ones((2 * _EDGE_PX + 1, 2 * _EDGE_PX + 1), dtype=np.uint8)
    pixels = square.astype(np.uint8)
    return np.asarray(cv2.dilate(pixels, kernel) != cv2.erode(pixels, kernel))


def _row(name: str, region: str, masks: _Masks, twin: Pair, traced: list[Pair]) -> TwinRow:
    def both(pair: Pair) -> FloatArray:
        views = zip((pair.left, pair.right), masks, strict=True)
        return np.concatenate([view[mask] for view, mask in views]).astype(np.float64)

    own, one, other = both(twin), both(traced[0]), both(traced[1])
    # The product of two differences with independent noise has the mean of their common square.
    square = mean_or_nan((own - one) * (own - other))
    return TwinRow(
        scene=name,
        region=region,
        pixels=own.size,
        rms=float(np.sqrt(max(square, 0.0))),
        noise=float(np.std(one - other) / np.sqrt(2)),
        bias=mean_or_nan(own - 0.5 * (one + other)),
    )
