"""Focus and aperture of both cameras, from the blur of the board over its distances.

The blur variance of camera i is v_i = g² (1/Z - kappa_i)² + extra, in px², with g = w s0 A / p. The
g of the right camera may differ by a per cent, since its view was scaled to fit the left one. Two
quantities are measured, each as the ratio of the power spectra of two images of the same texture
(`spectra`):

- left and right view of a frame: v_0 - v_1, linear in 1/Z and zero where both blur alike;
- one view at two distances, in blocks that cover the same piece of the board, so that a wave has
  the same number in both: v_i(Z) / m² - v_i(m Z), with the magnification m.

The first alone gives the mean focus, and the product of aperture and power difference. The second
separates these two, and from blur that does not depend on focus. A power spectrum does not change
when the image shifts, so that a disparity right to a pixel is enough. Parameters that the frames do
not determine stay near the design, which is a prior of the fit; `Defocus.undetermined` names them.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.robust import robust_sigma
from d3s.calibrate.spectra import (
    MODEL_SHARE,
    Blur,
    Comparison,
    compare_frames,
    compare_views,
    farther_frame,
)
from d3s.errors import CalibrationError, InputError
from d3s.rig import Optics
from d3s.types import FloatArray, Progress

# Standard deviations of the prior, which is the design.
_GAIN_SHARE = 0.3
_FOCUS_DPT = 0.5
_EXTRA_PX2 = 0.5
_RATIO = 0.02
# A parameter is determined if the fit reduces its prior standard deviation to this share.
_FOUND_SHARE = 0.5
_GROSS_SIGMAS = 6.0
# Error of the model of a difference of variances, in addition to `MODEL_SHARE` of the difference.
_MODEL_PX2 = 0.01
_ROUNDS = 3


class RelativeBlur(NamedTuple):
    """Differences of the blur variances of the views, (frames,); NaN where rejected."""

    vergence_dpt: FloatArray  # 1 / depth of the board
    measured_px2: FloatArray  # left minus right
    sd_px2: FloatArray
    fitted_px2: FloatArray


class Defocus(NamedTuple):
    """Focus and aperture of both cameras; those of the design where not determined."""

    focus_dpt: tuple[float, float]  # 1 / focus distance, of the left and the right camera
    focus_sd_dpt: tuple[float, float]
    power_difference_dpt: float  # left minus right
    power_difference_sd_dpt: float
    aperture_radius_m: float
    aperture_radius_sd_m: float
    extra_blur_px2: float  # blur variance of both views at every depth
    extra_blur_sd_px2: float
    blur_ratio: float  # blur per dioptre of the rectified right view over that of the left
    blur_ratio_sd: float
    relative: RelativeBlur
    comparisons: int  # number of pairs of images
    undetermined: tuple[str, ...]  # sentences on parameters that the frames do not determine
    left_out: dict[int, str]

    @property
    def focus_distances_m(self) -> tuple[float, float]:
        """Depth that each camera images sharply."""
        left, right = self.focus_dpt
        return 1.0 / left, 1.0 / right

    @property
    def focus_sds_m(self) -> tuple[float, float]:
        """Standard deviations of the focus distances."""
        (left, right), (left_sd, right_sd) = self.focus_dpt, self.focus_sd_dpt
        return left_sd / left**2, right_sd / right**2

    def applied_to(self, optics: Optics) -> Optics:
        """Optics with these powers and this aperture."""
        left, right = (focus + 1.0 / optics.sensor_distance_m for focus in self.focus_dpt)
        return optics.replace(
            optical_power_left_dpt=left,
            optical_power_right_dpt=right,
            aperture_radius_m=self.aperture_radius_m,
        )


def find_defocus(
    views: Views,
    depths_m: Sequence[float],
    optics: Optics,
    *,
    progress: Progress | None = None,
) -> Defocus:
    """Find focus and aperture of both cameras from boards at known depths.

    The depths increase. `optics` is the design with the calibrated disparity: prior of the fit.
    """
    if optics.aperture_radius_m == 0:
        raise InputError("aperture_radius_m=0 must be above 0: a pinhole has no focus to find.")
    design = Blur.of(optics)

    def compare(number: int) -> list[Comparison]:
        pair = views[number]
        found = compare_views(number, depths_m[number], pair, optics, design)
        other = farther_frame(number, depths_m)
        if other is None:
            return found
        return found + compare_frames(number, other, depths_m, (pair, views[other]), design)

    comparisons = list(chain.from_iterable(on_each_frame(compare, len(depths_m), progress)))
    return _fit_without_outliers(comparisons, depths_m, optics, design)


def _fit_without_outliers(
    comparisons: list[Comparison], depths_m: Sequence[float], optics: Optics, design: Blur
) -> Defocus:
    left_out: dict[int, str] = {}
    while True:
        _check_count(comparisons, left_out, len(depths_m))
        fit = _fit(comparisons, design)
        worst = int(np.abs(fit.residuals).argmax())
        if abs(fit.residuals[worst]) < _GROSS_SIGMAS:
            return _defocus(fit, comparisons, depths_m, optics, design, left_out)
        number = _worse_frame(worst, comparisons, fit.residuals)
        left_out[number] = (
            f"its blur is {abs(fit.residuals[worst]):.0f} standard deviations off from the others'"
        )
        comparisons = [one for one in comparisons if number not in one.frames]


def _check_count(comparisons: Sequence[Comparison], left_out: dict[int, str], frames: int) -> None:
    compared = {one.frames[0] for one in comparisons if one.cameras == (0, 1)}
    if len(compared) < FEWEST_FRAMES:
        blank = {
            number: "its views have no texture by which to compare their blur"
            for number in range(frames)
            if number not in compared
        }
        raise CalibrationError(
            f"the blur of {len(compared)} of {frames} frames can be compared, and {FEWEST_FRAMES} "
            "are needed. Use a board with texture of all sizes, and views that are large enough.",
            left_out=blank | left_out,
        )


def _worse_frame(worst: int, comparisons: Sequence[Comparison], residuals: FloatArray) -> int:
    """The frame of the worst comparison whose other comparisons fit worse."""

    def elsewhere(number: int) -> float:
        return max(
            (
                abs(float(residual))
                for i, (one, residual) in enumerate(zip(comparisons, residuals, strict=True))
                if i != worst and number in one.frames
            ),
            default=0.0,
        )

    return max(comparisons[worst].frames, key=elsewhere)


class _Fit(NamedTuple):
    blur: Blur
    covariance: FloatArray  # (5, 5) of `Blur.vector`
    measured: FloatArray  # (comparisons, 2): difference of variances, and its standard deviation
    residuals: FloatArray  # (comparisons,): in standard deviations, with those of the model


def _fit(comparisons: Sequence[Comparison], design: Blur) -> _Fit:
    """Fit the blur model to the comparisons, with the design as prior."""
    from scipy.optimize import least_squares

    prior = np.array([_GAIN_SHARE * design.gain, _FOCUS_DPT, _FOCUS_DPT, _EXTRA_PX2, _RATIO])
    blur = design
    for _ in range(_ROUNDS):
        measured = np.array([one.measured_px2(blur) for one in comparisons])
        sd = np.hypot(measured[:, 1], _MODEL_PX2 + MODEL_SHARE * np.abs(measured[:, 0]))

        def residuals(
            vector: FloatArray, measured: FloatArray = measured, sd: FloatArray = sd
        ) -> FloatArray:
            tried = Blur.from_vector(vector)
            expected = [np.subtract(*one.variances_px2(tried)) for one in comparisons]
            unknown = (vector - design.vector) / prior
            return np.concatenate([(measured[:, 0] - expected) / sd, unknown])

        # Gain enters squared: without a bound it could come out negative.
        bounds = ([0.1 * design.gain, -np.inf, -np.inf, -np.inf, 0.5], np.inf)
        found = least_squares(residuals, blur.vector, x_scale=prior, loss="soft_l1", bounds=bounds)
        blur = Blur.from_vector(found.x)
    rest = residuals(found.x)[: len(comparisons)]
    scale = max(1.0, robust_sigma(rest))
    covariance = scale**2 * np.linalg.inv(found.jac.T @ found.jac)
    return _Fit(blur, covariance, measured, rest / scale)


def _defocus(
    fit: _Fit,
    comparisons: Sequence[Comparison],
    depths_m: Sequence[float],
    optics: Optics,
    design: Blur,
    left_out: dict[int, str],
) -> Defocus:
    per_px = optics.aperture_gaussian_width * optics.focal_length_px
    left, right = fit.blur.focus_dpt
    sds = np.sqrt(np.diag(fit.covariance)).tolist()
    gain_sd, left_sd, right_sd, extra_sd, ratio_sd = sds
    difference = np.array([0.0, 1.0, -1.0, 0.0, 0.0])
    difference_sd = float(np.sqrt(difference @ fit.covariance @ difference))
    # The error of the model is the same in every comparison, so that averaging does not reduce it.
    # It is nearly the same for both cameras, so that their ratio keeps little of it.
    gain_sd = math.hypot(gain_sd, 0.5 * MODEL_SHARE * fit.blur.gain)
    ratio_sd = math.hypot(ratio_sd, 0.1 * MODEL_SHARE)
    return Defocus(
        focus_dpt=(left, right),
        focus_sd_dpt=(left_sd, right_sd),
        power_difference_dpt=left - right,
        power_difference_sd_dpt=difference_sd,
        aperture_radius_m=fit.blur.gain / per_px,
        aperture_radius_sd_m=gain_sd / per_px,
        extra_blur_px2=fit.blur.extra_px2,
        extra_blur_sd_px2=extra_sd,
        blur_ratio=fit.blur.ratio,
        blur_ratio_sd=ratio_sd,
        relative=_relative(fit, comparisons, depths_m),
        comparisons=len(comparisons),
        undetermined=tuple(_undetermined((left_sd, right_sd), gain_sd, design)),
        left_out=left_out,
    )


def _relative(
    fit: _Fit, comparisons: Sequence[Comparison], depths_m: Sequence[float]
) -> RelativeBlur:
    depths = np.asarray(depths_m, dtype=np.float64)
    measured, sd = np.full((2, depths.size), np.nan)
    for one, (value, spread) in zip(comparisons, fit.measured, strict=True):
        if one.cameras == (0, 1):
            measured[one.frames[0]] = value
            sd[one.frames[0]] = spread
    fitted = [
        fit.blur.variance_px2(depth_m, 0) - fit.blur.variance_px2(depth_m, 1) for depth_m in depths
    ]
    return RelativeBlur(1.0 / depths, measured, sd, np.array(fitted))


def _undetermined(focus_sd: tuple[float, float], gain_sd: float, design: Blur) -> list[str]:
    words = [
        f"the focus of the {name} camera is the design's, within {sd:.2g} dpt: the frames do not "
        "tell it. Add boards nearer and farther than where it is sharp."
        for name, sd in zip(("left", "right"), focus_sd, strict=True)
        if sd > _FOUND_SHARE * _FOCUS_DPT
    ]
    if gain_sd > _FOUND_SHARE * _GAIN_SHARE * design.gain:
        words.append(
            f"the aperture is the design's, within {100 * gain_sd / design.gain:.0f} %: the frames "
            "do not tell it. Add boards at more distances."
        )
    return words
