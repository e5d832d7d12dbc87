"""Illumination: light of both views over the field, from the brightness of the same board places.

Transmission and vignetting differ between two lenses. A place of the board with the brightness b
has F_left(x) b in the left view and F_right(x - d) b in the right one, plus stray light. The
logarithms of both maps are polynomials over the field, fitted to the mean brightness of blocks of
many frames. What both maps have in common shows only in that the views see a point a disparity
apart; where the frames do not tell, it stays 0, since a method that compares the views does not
need it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.robust import huber_weighted, rms, robust_sigma
from d3s.rig import Optics
from d3s.rig.lens_maps import polynomial_at, polynomial_terms
from d3s.rig.variance import term_count
from d3s.types import FloatArray, Image, Progress

_DEGREE = 4
# Wide blocks: where the views are blurred unlike, the mean of a small one differs by its texture,
# and gain is taken for stray light. At most a fifth of the smaller side of a view.
_BLOCK_PX = 128
_LARGEST_SHARE = 0.2
_STEP_PX = 40
_MOST_FRAMES = 16
_ROUNDS = 8
_PRIOR = 0.3  # standard deviation of a coefficient
_LEAST_SIGMA = 0.002  # of the brightness of a block, as a share: textures are not exactly aligned
_LEAST_LIGHT = 0.02  # of full scale, in both views


class Illumination(NamedTuple):
    """Light of both views, relative to the axis of the left one."""

    left: tuple[float, ...]  # polynomial over the field, as in `LensMaps`
    right: tuple[float, ...]
    stray_light: float  # brightness of the left view less that of the right one where it is dark
    before_rms: float  # ratio of the brightness of the views less 1, RMS over all blocks
    after_rms: float  # the same with the maps removed


class _Blocks(NamedTuple):
    """Brightness of the same places in both views."""

    left: FloatArray  # (blocks,)
    right: FloatArray
    left_terms: FloatArray  # (terms, blocks): of the polynomial at the place in the left view
    right_terms: FloatArray


def find_illumination(
    views: Views,
    depths_m: Sequence[float],
    optics: Optics,
    board: Board,
    field_radius_px: float,
    *,
    progress: Progress | None = None,
) -> Illumination:
    """Find the light of both views over the field.

    The views are without correction of the light; depths are those of the board on the axis; the
    disparity of a depth by `optics` must be right to a pixel.
    """
    count = min(_MOST_FRAMES, len(depths_m))
    chosen = np.linspace(0, len(depths_m) - 1, count).round().astype(int)

    def blocks_of(number: int) -> _Blocks:
        frame = int(chosen[number])
        return _blocks(views[frame], depths_m[frame], optics, board, field_radius_px)

    parts = on_each_frame(blocks_of, count, progress)
    blocks = _Blocks(*(np.concatenate(one, axis=-1) for one in zip(*parts, strict=True)))
    return _fit(blocks)


def _blocks(
    pair: tuple[Image, Image], depth_m: float, optics: Optics, board: Board, radius_px: float
) -> _Blocks:
    import cv2

    rows, cols = pair[0].shape
    side = max(min(_BLOCK_PX, int(_LARGEST_SHARE * min(rows, cols))), 1)
    left, right = (cv2.blur(view, (side, side)) for view in pair)
    rim = side // 2 + 1
    y, x = np.meshgrid(
        np.arange(rim, rows - rim, _STEP_PX, dtype=np.float64),
        np.arange(rim, cols - rim, _STEP_PX, dtype=np.float64),
        indexing="ij",
    )
    disparity = optics.disparity_px(board.depth_m(x, y, depth_m, left.shape, optics))
    there = x - disparity
    other = cv2.remap(right, there.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR)
    here = left[y.astype(int), x.astype(int)]
    is_seen = (there > rim) & (here > _LEAST_LIGHT) & (other > _LEAST_LIGHT)
    middle_x, middle_y = (cols - 1) / 2, (rows - 1) / 2
    down = (y[is_seen] - middle_y) / radius_px
    return _Blocks(
        here[is_seen].astype(np.float64),
        other[is_seen].astype(np.float64),
        polynomial_terms((x[is_seen] - middle_x) / radius_px, down, _DEGREE),
        polynomial_terms((there[is_seen] - middle_x) / radius_px, down, _DEGREE),
    )


def _fit(blocks: _Blocks) -> Illumination:
    """Fit the common part and the difference of both logarithms, and the stray light."""
    terms = term_count(_DEGREE)
    common, apart, stray = np.zeros(terms), np.zeros(terms), 0.0
    by_common = blocks.left_terms - blocks.right_terms
    by_apart = blocks.left_terms + blocks.right_terms
    for _ in range(_ROUNDS):
        ratio = np.exp(common @ by_common + apart @ by_apart)
        expected = ratio * blocks.right
        rest = blocks.left - expected - stray
        sigma = np.hypot(robust_sigma(rest), _LEAST_SIGMA)
        rows = np.concatenate(
            [by_common[1:] * expected, by_apart * expected, np.ones((1, rest.size))]
        )
        weighted, rest = huber_weighted(rows.T / sigma, rest / sigma)
        normal = weighted.T @ weighted + np.eye(len(rows)) / _PRIOR**2
        now = np.concatenate([common[1:], apart, [stray]])
        step = np.linalg.solve(normal, weighted.T @ rest - now / _PRIOR**2)
        common[1:] += step[: terms - 1]
        apart += step[terms - 1 : -1]
        stray += float(step[-1])
    after = blocks.left / (np.exp(common @ by_common + apart @ by_apart) * blocks.right + stray)
    left, right = common + apart, common - apart
    # Relative to the axis of the left view.
    right[0] -= left[0]
    left[0] = 0.0
    return Illumination(
        left=_exponential(left),
        right=_exponential(right),
        stray_light=stray,
        before_rms=rms(blocks.left / blocks.right - 1),
        after_rms=rms(after - 1),
    )


def _exponential(coefficients: FloatArray) -> tuple[float, ...]:
    """Polynomial of the exponential of a polynomial, by least squares over the field."""
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-1, 1, 21)] * 2))
    inside = x**2 + y**2 <= 1.2
    x, y = x[inside], y[inside]
    light = np.exp(polynomial_at(coefficients, x, y))
    fitted = np.linalg.lstsq(polynomial_terms(x, y, _DEGREE).T, light, rcond=None)[0]
    return tuple(fitted.tolist())
