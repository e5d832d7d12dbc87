"""Refinement: sub-pixel disparity and sigma of each cell by least squares over windows.

With r the residual of the views at the disparity d of each cell and g its derivative by d, the
disparity of a window minimises the sum of (r + g (d_window - d))², less the mean brightness
difference. Defocus is part of r and of g. Sums are taken over cells of 2 x 2 pixels first, which is
too small to show in any window and saves three quarters of the work.

Cells with wide blur are fitted at half or a quarter of the size, which loses nothing; the others in
full size. A pixel of scale s stands for s x s pixels of the frame.
"""

from math import ceil
from typing import NamedTuple

import numpy as np

from d3s.estimate.flags import Flag
from d3s.estimate.joint.kernels import cells, filters, grids, lenses, surfaces, windows
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.smoothing import (
    cell_taps,
    chance_correlation,
    energy_share,
    noise_gains,
)
from d3s.estimate.joint.types import Array, BlurPlane, CellFit, Counts, FitParameters, SurfaceLimits
from d3s.runtime.scratch import Scratch
from d3s.types import Mask

Views = tuple[Array, Array]

# Extent of the disparities of one surface within a window, in pixels or as a share.
_STEP_PX, _STEP_SHARE = 2.0, 0.06
# Share of the residual beyond noise that acts like noise. The rest is the difference between the
# blur of a disk and the model's Gaussian: as even as the texture, it hardly moves the fit. From
# the tuning textures.
UNEXPLAINED = 0.3
# Share of a bend between windows that is an error of the middle one: on a fold, as where an object
# stands on a floor, a window lies half of the bend to one side; on even curvature a sixth. And the
# squared bend that noise makes, over the variance of the windows. From the tuning textures.
_BEND, _BEND_NOISE = 0.3, 16.0
# A window whose disparity differs by more sigmas from that of the next smaller one within it does
# not lie on one surface.
_AGREEMENT_SIGMAS = 3.0
# Standard deviation of the search's disparity, in pixels of the search: it counts as a measurement
# beside the window's, and matters where the window has a large residual, as across an edge. The
# search does not know defocus: its fraction of a pixel is off wherever the two blurs differ, alike
# for all pixels of a plane.
_SHARP_ANCHOR_PX, _DEFOCUSED_ANCHOR_PX = 0.1, 0.4
# Smallest half side of a window, by scale, in cells: where views are shrunk the blur is wide, and
# a narrower window sees no texture.
_MIN_HALF = {1: 1, 2: 1, 4: 3}

# Medians over 3 x 3 cells of the coarsest scale that the disparities of the search go through,
# where blur changes over the field: 20 px, about the blur of such cells.
_SPECK_ROUNDS = 2
# Factor on the distance that these cells may move from the search, which knows nothing of blur.
_BLURRED_MOVES = 2.0


class Holes(NamedTuple):
    """Pixels of both views without an intensity; an empty mask stands for a view without any."""

    left: Mask
    right: Mask

    @property
    def exist(self) -> bool:
        """Whether either view has holes."""
        return bool(self.left.any() or self.right.any())

    def distance(self, disparity_px: Array, cell_px: int) -> Array:
        """Return the chessboard distance from each cell, or its match, to a hole, in cells."""
        shape = disparity_px.shape[0], disparity_px.shape[1]
        left, right = (_hole_distance(mask, cell_px, shape) for mask in self)
        rows, cols = shape
        matches = np.rint(np.arange(cols) - np.clip(disparity_px / cell_px, -cols, cols))
        columns = np.clip(matches, 0, cols - 1).astype(np.int64)
        return np.minimum(left, right[np.arange(rows)[:, None], columns])


def _hole_distance(mask: Mask, cell_px: int, shape: tuple[int, int]) -> Array:
    if not mask.any():
        return np.full(shape, np.inf, dtype=np.float32)
    import cv2  # imported here: slow to load, and most pictures have no holes

    padded = np.pad(mask, [(0, -size % cell_px) for size in mask.shape])
    cells = padded.reshape(shape[0], cell_px, shape[1], cell_px).any(axis=(1, 3))
    free = np.logical_not(cells).astype(np.uint8)
    return np.asarray(cv2.distanceTransform(free, cv2.DIST_C, 3))


def refine(
    levels: dict[int, Views],
    start_px: Array,
    noise: Array,
    holes: list[tuple[Flag, Holes]],
    plan: Plan,
    memory: Scratch,
    rows_px: Array | None = None,
) -> CellFit:
    """Fit the disparity of each cell of the frame.

    Parameters
    ----------
    levels
        Left and right view by scale.
    start_px
        Disparity of each cell to start from, in pixels of the frame.
    noise
        Variance of one view's white noise around each cell.
    holes
        Missing and clipped pixels, by the flag that stands for them.
    plan
        Camera and options.
    memory
        Where intermediate images live.
    rows_px
        Rows by which the right view lies lower at each cell, in pixels of the frame; None for 0.
    """
    field = plan.blur_field
    if field is None:
        scales = grids.scales_by_disparity(memory, start_px, plan.finer_px)
    else:
        limits = plan.scale_limits
        scales = lenses.scales_by_blur(memory, start_px, field, plan.cell_px, limits)
    parts: dict[int, CellFit] = {}
    for scale in sorted(levels, reverse=True):
        parameters = fit_parameters(levels[scale][0].shape, scale, plan)
        is_coarse = scale * parameters.cell_side > plan.cell_px
        own = grids.select_cells(memory, scales, scale, scale, is_coarse=is_coarse)
        # The coarsest scale serves its own cells only; the next one also finds a start for the
        # finest.
        served = (
            own
            if scale == max(levels)
            else grids.select_cells(memory, scales, 1, scale, is_coarse=is_coarse)
        )
        if not served.any():
            continue
        begin = filters.halve(memory, start_px) if is_coarse else start_px
        if field is not None and scale == 4:
            begin = _without_specks(begin, own, memory)
        lower = rows_px if rows_px is None or not is_coarse else filters.halve(memory, rows_px)
        level = _Level(levels[scale], scale, parameters, begin, holes, plan, memory, lower)
        is_last = bool(own.any())
        rounds = plan.options.rounds - (scale == 1 < max(levels))
        level.move(served, max(rounds, 1) - is_last)
        if scale > 1:
            start_px = grids.merge_coarse(
                memory, start_px, level.disparity_px, scales, scale, plan.max_move_px
            )
        if is_last:
            noise_here = filters.halve(memory, noise) if is_coarse else noise
            part = level.fit(noise_here, own)
            cell_px = scale * parameters.cell_side
            parts[scale] = _without_remaining(part, cell_px, scale, plan, memory)
    return grids.join_scales(memory, parts, scales)


def _without_specks(disparity_px: Array, wanted: Mask, memory: Scratch) -> Array:
    """Return the disparities of wanted cells as medians over their neighbours.

    Where the blur of the views differs much, the search is off by a pixel here and there. Nothing
    is lost: these cells are narrower than the blur.
    """
    median = disparity_px
    for _ in range(_SPECK_ROUNDS):
        median = filters.median_3x3(memory, median)
    return np.where(wanted, median, disparity_px)


def _without_remaining(
    part: CellFit, cell_px: int, scale: int, plan: Plan, memory: Scratch
) -> CellFit:
    """Subtract the disparity that lenses add."""
    field = plan.field
    if field is None or not field.changes_disparity:
        return part
    added_px = lenses.remaining_disparity(memory, part.disparity_px, field, cell_px, scale)
    return part._replace(disparity_px=part.disparity_px - added_px)


class _Level:
    """Disparities at one scale while they are refined."""

    def __init__(
        self,
        views: Views,
        scale: int,
        parameters: FitParameters,
        begin_px: Array,
        holes: list[tuple[Flag, Holes]],
        plan: Plan,
        memory: Scratch,
        lower_px: Array | None,
    ) -> None:
        self._views, self._scale, self._parameters = views, scale, parameters
        self._plan, self._memory = plan, memory
        self._disparity = begin_px * begin_px.dtype.type(1 / scale)  # in pixels of the scale
        self._anchor = self._disparity
        self._lower_px = lower_px  # rows by which the right view lies lower
        self._usable: Counts | None = None
        cell_px = scale * parameters.cell_side
        self._smoothing_reach = ceil(3 * plan.smoothing_px[scale] / cell_px)
        self._hole_distances = [(flag, one.distance(begin_px, cell_px)) for flag, one in holes]

    @property
    def disparity_px(self) -> Array:
        """Disparity of each cell, in pixels of the frame."""
        return np.asarray(self._disparity * self._disparity.dtype.type(self._scale))

    def move(self, wanted: Mask, rounds: int) -> None:
        """Improve the disparities of the wanted cells, in so many rounds of least squares."""
        for _ in range(rounds):
            sums = self._sums(wanted, self._blur())
            self._disparity = windows.update_disparity(
                self._memory,
                sums,
                self._disparity,
                self._anchor,
                self._usable_windows(),
                wanted,
                self._parameters,
            )

    def fit(self, noise: Array, wanted: Mask) -> CellFit:
        """Fit the wanted cells, with sigma and all else that is known of them."""
        parameters, scale = self._parameters, self._scale
        blur = self._blur()
        sums = self._sums(wanted, blur)
        if scale == 1:
            # Sigma needs the residual that is left after the last move. At the coarser scales the
            # disparities have moved before.
            start = self._disparity
            self._disparity = windows.update_disparity(
                self._memory, sums, start, self._anchor, self._usable_windows(), wanted, parameters
            )
            sums = cells.shift_sums(self._memory, sums, start, self._disparity)
        noise_here = noise * noise.dtype.type(1 / scale**2)
        fit = windows.fit_windows(
            self._memory,
            sums,
            self._disparity,
            self._anchor,
            self._usable_windows(),
            noise_here,
            wanted,
            parameters,
            blur,
        )
        part = surfaces.correct_slopes(self._memory, fit, parameters, scale)
        halves = np.array(parameters.window_halves)[fit.window]
        for flag, distance in self._hole_distances:
            part.flags[distance <= halves + self._smoothing_reach] |= np.uint16(flag)
        return part

    def _blur(self) -> Array | None:
        """Return the difference of blur at the place and disparity of each cell."""
        lower_px, field = self._lower_px, self._plan.blur_field
        if lower_px is not None:
            field = self._plan.field
        if field is None:
            return None
        side = self._parameters.cell_side
        planes = lenses.blur_differences(self._memory, self._disparity, field, self._scale, side)
        if lower_px is not None:
            planes[BlurPlane.HIGHER] = lower_px * lower_px.dtype.type(-1 / self._scale)
        return planes

    def _sums(self, wanted: Mask, blur: Array | None) -> Array:
        return cells.sum_cells(
            self._memory, *self._views, self._disparity, wanted, self._parameters, blur
        )

    def _usable_windows(self) -> Counts:
        """Count the larger windows within both views, on one surface and without holes."""
        if self._usable is None:
            scale = self._scale
            zero = self._plan.model.offset_px / scale
            limits = SurfaceLimits(_STEP_PX / scale, _STEP_SHARE, zero)
            self._usable = surfaces.count_usable(
                self._memory, self._disparity, self._parameters, limits
            )
            for _, distance in self._hole_distances:
                for place, half in enumerate(self._parameters.window_halves[1:], start=1):
                    is_near = distance <= half + self._smoothing_reach
                    self._usable[is_near & (self._usable >= place)] = place - 1
        return self._usable


def fit_parameters(shape: tuple[int, ...], scale: int, plan: Plan) -> FitParameters:
    """Return the parameters of the window fit at one scale.

    Parameters
    ----------
    shape
        Rows and columns of the views at the scale.
    scale
        Frame pixels per pixel of the views: 1, 2 or 4.
    plan
        Camera and options.
    """
    cell_side = 1 if scale == 4 else plan.cell_px
    smoothing = plan.smoothing_px[scale] / scale
    gains = noise_gains(smoothing)
    cell_px = cell_side * scale
    least = _MIN_HALF[scale]
    is_blurred = scale == 4 and plan.blur_field is not None
    anchor_px = _SHARP_ANCHOR_PX if plan.is_sharp else _DEFOCUSED_ANCHOR_PX
    halves = {max(round((px / cell_px - 1) / 2), least) for px in plan.windows_px}
    sides = [(2 * half + 1) * cell_side for half in sorted(halves)]
    return FitParameters(
        view_shape=(shape[0], shape[1]),
        cell_side=cell_side,
        window_halves=tuple(sorted(halves)),
        defocus=plan.model.defocus_line(scale),
        max_move=plan.max_move_px / scale * (_BLURRED_MOVES if is_blurred else 1),
        anchor_sigma=anchor_px * plan.search_scale / scale,
        agreement_sigmas=_AGREEMENT_SIGMAS,
        unexplained_share=UNEXPLAINED,
        bend_share=_BEND,
        bend_noise=_BEND_NOISE,
        smoothed_gain=gains.smoothed,
        laplacian_gain=gains.laplacian,
        gradient_gain=gains.gradient,
        noise_area=gains.area_px,
        cell_taps=cell_taps(smoothing, cell_side),
        energy_share=tuple(energy_share(smoothing, side) for side in sides),
        chance_correlation=tuple(chance_correlation(side**2 / gains.area_px) for side in sides),
    )
