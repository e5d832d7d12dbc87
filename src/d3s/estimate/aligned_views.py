"""Right views that lie lower, are turned or larger: measured in the pair, and taken out.

A turn of the right view by a small angle lowers its points by the angle times their column, and
moves them along the rows by the angle times their row; a scale does both by column and row. Rows
are measured at the matches, whatever the depth, and so tell of the disparity that they come with.
"""

from collections.abc import Callable
from dataclasses import replace
from math import cos, exp, hypot, sin
from typing import NamedTuple, Self

import numpy as np

from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.diagnosis.blocks import match_blocks
from d3s.estimate.diagnosis.crosstalk import measure_crosstalk
from d3s.estimate.diagnosis.findings import Diagnosis, diagnose, rows_terms
from d3s.estimate.diagnosis.light import Value
from d3s.estimate.flags import Flag
from d3s.rig import Rig
from d3s.rig.interpolation import BEHIND
from d3s.rig.split import resample
from d3s.types import FloatArray, Image

# Times that a pair is aligned: large rows hide where the views match, and are not quite linear.
_ROUNDS = 3
_LEAST_GAIN = 0.01  # gain beside crosstalk that is taken out too
_UNMIXINGS = 2  # times that crosstalk is taken out: the first finds nearly all
# Size from which on rows in the middle and disparities at the edges are taken out, in pixels, and
# sigmas: none of 200 good pairs of the tuning textures reaches 6. Others count from 3 on beside it.
_LEAST_PX, _SIGMAS, _BESIDE_SIGMAS = 0.05, 6.0, 3.0
# Rows from which on blocks, which are looked for on all rows, tell more than patches.
_LARGE_PX = 0.5
# Disparity at the edges and rows that must not be left, and that a calibrated camera must show; the
# first, over the sigma of its disparity.
_WORST_PX, _HELD_SIGMAS = (0.2, 0.3), 3.0
# The middle of a turn or a scale is the principal point, and known to this share of the view.
_CENTRE_SHARE = 0.02
# A scale down the columns of raw views is one along the rows too, that of a longer focal length. Of
# views that were rectified elsewhere it may be none: the real scenes that show one have none. So
# their width stays, and sigma holds this share of the scale, which is two sigmas then.
_SCALE_SHARE = 0.5
# Disparity by rows that are left over: texture at all angles passes about this share.
_ROWS_SHARE = 0.5


class Turn(NamedTuple):
    """Place of the right view: rows in its middle, roll and scale about it, with their sigmas."""

    rows_px: Value  # by which it lies lower
    roll_rad: Value
    scale: Value  # 0 if both views are alike

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> Self | None:
        """Return what the patches of a pair show, or its blocks if there are no patches."""
        compared, found = diagnosis.comparison, diagnosis.found
        if compared is not None:
            return cls._over(
                (compared.rows_px, compared.rows_x_px, compared.rows_y_px), diagnosis.shape
            )
        return None if found is None else cls._over(found.rows_terms, diagnosis.shape)

    @classmethod
    def of_blocks(cls, pair: CheckedPair) -> Self | None:
        """Return the large parts, as blocks show them that are looked for on other rows too."""
        shape = pair.left.shape[0], pair.left.shape[1]
        blocks = match_blocks(*pair)
        terms = None if blocks is None else rows_terms(blocks)
        if terms is None or not any(one.exceeds(_LARGE_PX, _SIGMAS) for one in terms):
            return None
        return cls._over(
            tuple(
                one if one.exceeds(_LARGE_PX, _SIGMAS) else Value(0.0, one.sigma) for one in terms
            ),
            shape,
        )

    @classmethod
    def _over(cls, terms: tuple[Value, ...] | None, shape: tuple[int, int]) -> Self | None:
        """Return rows in the middle, at the right edge and at the bottom by pixel."""
        if terms is None:
            return None
        halves = 1.0, 0.5 * shape[1], 0.5 * shape[0]
        return cls(
            *(Value(one.value / by, one.sigma / by) for one, by in zip(terms, halves, strict=True))
        )

    def significant(self, shape: tuple[int, int], least_px: float, rows_px: float) -> Self | None:
        """Return the parts that matter, None if none does.

        Parameters
        ----------
        shape
            Rows and columns of a view.
        least_px
            Disparity at the edges that a roll or a scale must move.
        rows_px
            Rows in the middle that matter.
        """
        reaches = 1.0, 0.5 * shape[0], 0.5 * shape[1]
        limits = rows_px, least_px, least_px
        sure = [
            abs(one.value) * reach > limit and abs(one.value) > _SIGMAS * one.sigma
            for one, reach, limit in zip(self, reaches, limits, strict=True)
        ]
        if not any(sure):
            return None
        kept = (abs(one.value) > _BESIDE_SIGMAS * one.sigma for one in self)
        return type(self)(
            *(
                Value(one.value * is_kept, one.sigma)
                for one, is_kept in zip(self, kept, strict=True)
            )
        )

    def after(self, other: Self) -> Self:
        """Return the sum with a turn that was taken out before; sigmas are those of this one."""
        both = zip(self, other, strict=True)
        return type(self)(*(Value(one.value + first.value, one.sigma) for one, first in both))

    def sigma_px(self, shape: tuple[int, int], width: bool) -> FloatArray:
        """Return the standard deviation of the disparity (rows, cols) that is left by it.

        `width` says whether the scale was taken out along the rows too.
        """
        y, x = (np.arange(side) - 0.5 * (side - 1) for side in shape)
        centre = _CENTRE_SHARE * hypot(self.roll_rad.value, self.scale.value) * max(shape)
        everywhere = hypot(centre, _ROWS_SHARE * self.rows_px.sigma)
        kept = 0.0 if width else _SCALE_SHARE * self.scale.value
        scale = hypot(self.scale.sigma, kept)
        down, across = np.square(self.roll_rad.sigma * y), np.square(scale * x)
        return np.asarray(np.sqrt(everywhere**2 + down[:, np.newaxis] + across))


def estimate_aligned(
    run: Callable[[CheckedPair], DepthMap], pair: CheckedPair
) -> tuple[DepthMap, Diagnosis]:
    """Estimate a pair, and again with what it shows of a turn of the right view taken out.

    Most pairs show none, and are estimated once. The sigma of the others holds what is left; where
    that cannot be told, or rows still disagree, there is no depth.

    Parameters
    ----------
    run
        Estimate of a pair.
    pair
        The views.
    """
    found = run(pair)
    if not getattr(found.options, "align_views", False):
        return found, diagnose(pair, found)
    found, pair, shares = _without_crosstalk(run, pair, found)
    first = last = diagnose(pair, found)._replace(crosstalk=shares)
    turn, width = None, found.rig.optics.aperture_radius_m > 0
    for _ in range(_ROUNDS):
        more = _significant(last, found.rig)
        if more is None:
            break
        # Patches are matched on equal rows, and tell of few rows only.
        turn = Turn.of_blocks(pair) or more if turn is None else more.after(turn)
        aligned = CheckedPair(pair.left, _aligned(pair.right, turn, width))
        found = run(aligned)
        last = diagnose(aligned, found)._replace(crosstalk=shares)
    if turn is None:
        return found, first
    left_over = Turn.of(last)
    if left_over is None or left_over.significant(last.shape, *_WORST_PX) is not None:
        return _emptied(found), last._replace(turn=turn, is_aligned=False)
    values = zip(turn, left_over, strict=True)
    sigmas = (Value(one.value, hypot(rest.value, rest.sigma)) for one, rest in values)
    sigma_px = Turn(*sigmas).sigma_px(last.shape, width)
    # Drifts of many frames are those of the views as they came.
    diagnosis = last._replace(turn=turn, is_aligned=True, comparison=first.comparison)
    return _with_sigma(found, sigma_px), diagnosis


def _aligned(view: Image, turn: Turn, width: bool) -> Image:
    return moved(view, turn.rows_px.value, turn.roll_rad.value, turn.scale.value, width)


def _without_crosstalk(
    run: Callable[[CheckedPair], DepthMap], pair: CheckedPair, found: DepthMap
) -> tuple[DepthMap, CheckedPair, tuple[float, float] | None]:
    """Take the share of each view that the other shows out of it, twice if more is found."""
    total, sigma_px = None, 0.0
    for _ in range(_UNMIXINGS):
        shares = measure_crosstalk(*pair, found.depth_m, found.rig.optics)
        if shares is None:
            break
        pair = CheckedPair(*shares.taken_out(*pair))
        found = run(pair)
        sigma_px = shares.sigma_px
        before = total or (0.0, 0.0)
        total = before[0] + shares.left.value, before[1] + shares.right.value
    compared = None if total is None else diagnose(pair, found).comparison
    if compared is not None and compared.gain.exceeds(_LEAST_GAIN, _SIGMAS):
        # Views that lose what the other one gets are darker.
        pair = pair._replace(right=pair.right * np.float32(exp(-compared.gain.value)))
        found = run(pair)
    return found if total is None else _with_sigma(found, sigma_px), pair, total


def _significant(diagnosis: Diagnosis, rig: Rig) -> Turn | None:
    """Return what matters of a turn for a camera, None if nothing does.

    A calibrated camera is aligned by its calibration, which knows its errors.
    """
    limits = _LEAST_PX, _LEAST_PX
    if rig.calibration is not None:
        limits = max(_WORST_PX[0], _HELD_SIGMAS * (diagnosis.held_px or 0.0)), _WORST_PX[1]
    turn = Turn.of(diagnosis)
    return None if turn is None else turn.significant(diagnosis.shape, *limits)


def _with_sigma(found: DepthMap, sigma_px: FloatArray | float) -> DepthMap:
    """Add an error of the disparity to sigma."""
    optics = found.rig.optics
    with np.errstate(invalid="ignore"):
        per_px = np.square(found.depth_m) / (optics.focal_length_px * optics.baseline_m)
        sigma_m = np.hypot(found.sigma_m, per_px * sigma_px).astype(np.float32)
    return replace(found, sigma_m=sigma_m)


def _emptied(found: DepthMap) -> DepthMap:
    """Take all depths out, as those of views that do not fit."""
    flags = found.flags.copy()
    flags[found.valid] |= np.uint16(Flag.INCONSISTENT)
    none = np.full_like(found.depth_m, np.nan)
    return replace(found, depth_m=none, sigma_m=none.copy(), flags=flags)


def moved(
    view: Image,
    rows_px: float = 0.0,
    roll_rad: float = 0.0,
    scale: float = 0.0,
    width: bool = True,
) -> Image:
    """Right view that lies lower, is turned and larger, resampled to where it should lie.

    NaN where the view does not reach.

    Parameters
    ----------
    view
        View (rows, cols).
    rows_px
        Rows by which its middle lies lower.
    roll_rad
        Angle by which it is turned: from right to down.
    scale
        Share by which it is higher.
    width
        Whether it is wider by that share, too.
    """
    middle = 0.5 * (np.array(view.shape[::-1]) - 1)
    turn = np.array([[cos(roll_rad), -sin(roll_rad)], [sin(roll_rad), cos(roll_rad)]])
    linear = turn * [[1 + scale * width], [1 + scale]]
    start = middle - linear @ middle + np.array([0.0, rows_px])
    y, x = (np.arange(side, dtype=np.float64) for side in view.shape)
    # The kernel reaches beyond the view, which is mirrored there.
    wide = np.pad(view, BEHIND, mode="reflect")
    ends = float(np.nanmin(view)), float(np.nanmax(view))
    out = resample(wide, np.column_stack([linear, start + BEHIND]), view.shape, ends, 1.0)
    for axis, size in enumerate(view.shape[::-1]):
        place = linear[axis, 0] * x + (linear[axis, 1] * y + start[axis])[:, np.newaxis]
        out[(place < -0.5) | (place > size - 0.5)] = np.nan
    return out
