"""Which of the depths? A semi-global search over whole shifts, where the views are small.

The cost of a shift is the misfit of the two views once they are blurred alike: at the right one
both cues agree, stereo and defocus. Paths from four sides then let neighbours decide where a window
alone cannot (Hirschmüller, "Stereo processing by semiglobal matching and mutual information",
PAMI 2008).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.estimate.operations import Array, Operations, Pick, View
from d3s.rig import Optics

# In units of the misfit that noise makes, which is one. Tuned by `benchmarks/ablation.py` on the
# tuning textures; half or twice of each changes the error on planes by less than a tenth.
_LIMIT = 2.0  # a misfit beyond this tells no more: what is occluded fits nowhere
_SMALL_STEP = 1.0  # price of a neighbour whose shift differs by one
_LARGE_STEP = 4.0  # price of a neighbour whose shift is any other
_TOLERANCE = 0.25  # misfit forgiven, as a share of the texture's energy: lenses are not perfect
_WINDOW_HALF = 2
_MEAN_HALF = 15  # brightness that varies more slowly than this is taken out
_NEVER = 1e3  # cost of a shift that is not to be looked at


class Model(NamedTuple):
    """The camera as the method sees it, in pixels of the frame."""

    per_dpt_px: float  # disparity of one dioptre
    offset_px: float  # disparity at infinity
    alpha_px2_m: float
    kappa_dpt: float

    @classmethod
    def of(cls, optics: Optics, *, use_defocus: bool) -> "Model":
        """Numbers of a rig; without defocus the views are compared as if blurred alike."""
        return cls(
            optics.focal_length_px * optics.baseline_m,
            optics.disparity_offset_px,
            optics.alpha_px2_m if use_defocus else 0.0,
            optics.kappa_dpt,
        )

    def defocus_line(self, scale: int) -> tuple[float, float]:
        """Half the blur-variance difference, right less left, as a line over the disparity.

        It is alpha (1/Z - kappa), and 1/Z is a line over the disparity. In pixels of which
        `scale` of the frame make one.
        """
        slope = self.alpha_px2_m / self.per_dpt_px
        constant = -slope * self.offset_px - self.alpha_px2_m * self.kappa_dpt
        return constant / scale**2, slope / scale

    def vergence_dpt(self, disparity_px: Array) -> Array:
        """1/Z at a disparity."""
        return (disparity_px - self.offset_px) / self.per_dpt_px


class Found(NamedTuple):
    """What the search found, at its own resolution; disparities in pixels of the frame."""

    disparity_px: Array
    margin: Array  # how much more misfit the next best valley has
    seen_px: Array  # disparity that the right view finds for the same point; NaN if out of it


def search(
    views: tuple[Array, Array],
    model: Model,
    shifts: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    *,
    scale: int,
    noise_floor: float,
    smoothness: float,
    ops: Operations,
) -> Found:
    """Best shift of each pixel.

    `shifts` are one apart, in pixels of these views, `scale` of the frame to one; `allowed` says
    which may be chosen. `noise_floor` is the misfit that noise alone makes.
    """
    left, right = (_with_laplacian(without_mean(view, ops), ops) for view in views)
    constant, slope = model.defocus_line(scale)
    costs = ops.matching_costs(
        left,
        right,
        shifts,
        constant + slope * shifts.astype(np.float64),
        half=_WINDOW_HALF,
        floor=noise_floor,
        tolerance=_TOLERANCE,
        limit=_LIMIT,
    )
    costs[:, :, ~allowed] = _NEVER
    total = ops.path_sums(costs, smoothness * _SMALL_STEP, smoothness * _LARGE_STEP)
    pick = ops.pick_left(total)
    first = int(shifts[0])  # a NumPy integer would make double precision of what it is added to
    step = ops.median_of_nine(pick.step)
    seen = _seen(step, ops.pick_right(total, first), first)
    return Found(scale * (step + first), _margin(costs, pick, ops), scale * (seen + first))


def _margin(costs: Array, pick: Pick, ops: Operations) -> Array:
    """How much worse the next best valley fits, over a window; infinite where there is no other.

    By the misfits themselves: paths add up the smallest preference, such as that for a valley that
    happens to lie at a whole shift, until it looks like certainty. So each valley counts by its
    lowest point between the shifts.
    """
    gap = np.where(pick.other < 0, _LIMIT, _valley(costs, pick.other) - _valley(costs, pick.lowest))
    return ops.window_sums(gap.astype(ops.dtype), _MEAN_HALF // 2) / window_counts(
        gap, _MEAN_HALF // 2
    )


def _valley(costs: Array, step: NDArray[np.int64]) -> Array:
    """Lowest point of the parabola through the cost of a step and its neighbours."""
    last = costs.shape[2] - 1
    before, here, after = (
        np.take_along_axis(costs, np.clip(step + k, 0, last)[..., None], axis=2)[..., 0]
        for k in (-1, 0, 1)
    )
    bend = before + after - 2 * here
    deep = (before - after) ** 2 / (8 * np.where(bend > 0, bend, 1))
    flat = np.minimum(np.minimum(before, after), here)
    return np.asarray(np.where(bend > 0, np.maximum(here - deep, 0), flat))


def without_mean(image: Array, ops: Operations) -> Array:
    """Image less what varies slowly in it."""
    return image - ops.window_sums(image, _MEAN_HALF) / window_counts(image, _MEAN_HALF)


def _with_laplacian(image: Array, ops: Operations) -> View:
    return View(image, ops.laplacian(image))


def window_counts(image: Array, half: int) -> Array:
    """How many pixels the window of each pixel has inside the frame."""
    rows, cols = (
        np.minimum(np.arange(size) + half, size - 1) - np.maximum(np.arange(size) - half, 0) + 1
        for size in image.shape
    )
    return np.outer(rows, cols).astype(image.dtype)


def _seen(step: Array, other: NDArray[np.int64], first: int) -> Array:
    """Step that the right view finds where the left one points to."""
    cols = np.arange(step.shape[1]) - np.rint(step).astype(np.int64) - first
    inside = (cols >= 0) & (cols < step.shape[1])
    back = np.take_along_axis(other, np.where(inside, cols, 0), axis=1)
    return np.where(inside & (back >= 0), back, np.nan).astype(step.dtype)
