"""Between the shifts: least squares over a window, from coarse to fine, and how sure that is.

With r the residual of the views at a disparity d of each cell and g its derivative to d, the
disparity of a window is where the sum of (r + g (d_window - d))² is least, brightness apart. The
defocus is in both r and g. Sums are taken over cells of 2 x 2 pixels first: no window is so small
that it would show, and all that follows is a quarter of the work.

A cell of wide blur is fitted at a quarter or half of the size, where nothing is lost by it, and the
others in full. On all grids a pixel of scale s stands for s x s pixels of the frame.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.flags import Flag
from d3s.estimate.joint.backend import Operations
from d3s.estimate.joint.holes import Holes
from d3s.estimate.joint.model import Array
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import Fitting, Refined, cell_taps, chance, noise_gains, share_inside
from d3s.types import Mask

Views = tuple[Array, Array]

# Disparities of one surface differ by less than this within a window, in pixels or as a share.
_STEP_PX, _STEP_SHARE = 2.0, 0.06
# Share of the residual beyond noise that acts like noise. The rest is the blur that a Gaussian
# leaves out of a disk: as even as the texture, it hardly moves the fit. From the tuning textures.
_UNEXPLAINED = 0.3
# Share of a bend between windows that is an error of the middle one: a window on a fold, as where a
# thing stands on a floor, lies a half of it to one side; on even curvature it is a sixth. And what
# noise may make of its square, over the variance of the windows. From the tuning textures.
_BEND, _BEND_NOISE = 0.3, 16.0
# A window whose disparity is this many standard deviations off that of the small one within it
# does not lie on one surface.
_APART = 3.0
# How far the fit may go from where it started, in pixels of its scale.
_REACH = 1.5
# Half sides that windows have at least, by scale, in cells: where the views are shrunk the blur is
# wide, and a window narrower than it sees no texture.
_LEAST_HALF = {1: 1, 2: 1, 4: 3}


class Unseen(NamedTuple):
    """Holes of both kinds."""

    missing: Holes
    clipped: Holes


def refined(
    levels: dict[int, Views],
    start_px: Array,
    noise: Array,
    unseen: Unseen,
    plan: Plan,
    ops: Operations,
) -> Refined:
    """Fit of each cell of the frame.

    `levels` has the views by scale. `start_px` is the disparity of each cell, and `noise` the
    variance of one view's white noise around it.
    """
    scales = ops.refine.scales(start_px, plan.finer)
    kinds = [(flag, holes) for flag, holes in _kinds(unseen) if holes.exist]
    parts: dict[int, Refined] = {}
    for scale in sorted(levels, reverse=True):
        fitting = fitting_of(levels[scale][0].shape, scale, plan)
        is_coarse = scale * fitting.cell > plan.cell_px
        own = ops.refine.wanted(scales, scale, scale, is_coarse=is_coarse)
        # The coarsest scale helps its own cells only; the next one finds a start for the finest.
        below = (
            own
            if scale == max(levels)
            else ops.refine.wanted(scales, 1, scale, is_coarse=is_coarse)
        )
        if not below.any():
            continue
        begin = ops.refine.halved(start_px) if is_coarse else start_px
        level = _Level(levels[scale], scale, fitting, begin, kinds, plan, ops)
        is_last = bool(own.any())
        rounds = plan.options.rounds - (scale == 1 < max(levels))
        level.move(below, max(rounds, 1) - is_last)
        if scale > 1:
            start_px = ops.refine.merged(start_px, level.disparity_px, scales, scale)
        if is_last:
            noise_here = ops.refine.halved(noise) if is_coarse else noise
            parts[scale] = level.fitted(noise_here, own)
    return ops.refine.joined(parts, scales)


class _Level:
    """One scale."""

    def __init__(
        self,
        views: Views,
        scale: int,
        fitting: Fitting,
        begin_px: Array,
        kinds: list[tuple[Flag, Holes]],
        plan: Plan,
        ops: Operations,
    ) -> None:
        self._views, self._scale, self._fitting = views, scale, fitting
        self._plan, self._ops = plan, ops.refine
        self._current = begin_px * begin_px.dtype.type(1 / scale)
        self._usable: NDArray[np.uint8] | None = None
        cell_px = scale * fitting.cell
        self._reach = ceil(3 * plan.smoothing_px[scale] / cell_px)
        self._distances = [(flag, holes.distance(begin_px, cell_px)) for flag, holes in kinds]

    @property
    def disparity_px(self) -> Array:
        """Where the cells are, in pixels of the frame."""
        return np.asarray(self._current * self._current.dtype.type(self._scale))

    def move(self, wanted: Mask, rounds: int) -> None:
        """Better disparities for the wanted cells."""
        for _ in range(rounds):
            sums = self._ops.cells(*self._views, self._current, wanted, self._fitting)
            self._current = self._ops.moved(
                sums, self._current, self._windows(), wanted, self._fitting
            )

    def fitted(self, noise: Array, wanted: Mask) -> Refined:
        """Fit of the wanted cells."""
        fitting, scale = self._fitting, self._scale
        sums = self._ops.cells(*self._views, self._current, wanted, fitting)
        if scale == 1:
            # Residuals at the start are those of its error, too, and sigma needs what is left. At
            # the coarser scales it has moved before.
            start = self._current
            self._current = self._ops.moved(sums, start, self._windows(), wanted, fitting)
            sums = self._ops.settled(sums, start, self._current)
        own = noise * noise.dtype.type(1 / scale**2)
        fit = self._ops.fit(sums, self._current, self._windows(), own, wanted, fitting)
        part = self._ops.finished(fit, fitting, scale)
        for flag, distance in self._distances:
            halves = np.array(fitting.halves)[fit.used]
            part.flags[distance <= halves + self._reach] |= np.uint16(flag)
        return part

    def _windows(self) -> NDArray[np.uint8]:
        """How many of the larger windows lie within both views, on one surface, without holes."""
        if self._usable is None:
            scale = self._scale
            zero = self._plan.model.offset_px / scale
            numbers = (_STEP_PX / scale, _STEP_SHARE, zero)
            self._usable = self._ops.usable(self._current, self._fitting, *numbers)
            for _, distance in self._distances:
                for place, half in enumerate(self._fitting.halves[1:], start=1):
                    is_near = (distance <= half + self._reach) & (self._usable >= place)
                    self._usable[is_near] = place - 1
        return self._usable


def fitting_of(shape: tuple[int, ...], scale: int, plan: Plan) -> Fitting:
    """Numbers of the fit at a scale, for views of a shape."""
    cell = 1 if scale == 4 else plan.cell_px
    smoothing = plan.smoothing_px[scale] / scale
    gains = noise_gains(smoothing)
    cell_px = cell * scale
    least = _LEAST_HALF[scale]
    halves = {max(round((px / cell_px - 1) / 2), least) for px in plan.options.windows_px}
    sides = [(2 * half + 1) * cell for half in sorted(halves)]
    return Fitting(
        shape=(shape[0], shape[1]),
        cell=cell,
        halves=tuple(sorted(halves)),
        defocus=plan.model.defocus_line(scale),
        reach=_REACH,
        apart=_APART,
        unexplained=_UNEXPLAINED,
        bend=_BEND,
        bend_noise=_BEND_NOISE,
        smoothed_gain=gains.smoothed,
        laplacian_gain=gains.laplacian,
        gradient_gain=gains.gradient,
        area=gains.area_px,
        taps=cell_taps(smoothing, cell),
        share_inside=tuple(share_inside(smoothing, side) for side in sides),
        chance=tuple(chance(side**2 / gains.area_px) for side in sides),
    )


def _kinds(unseen: Unseen) -> list[tuple[Flag, Holes]]:
    return [(Flag.INVALID_INPUT, unseen.missing), (Flag.SATURATED, unseen.clipped)]
