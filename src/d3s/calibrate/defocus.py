"""Focus and aperture of both cameras, from the blur of the board over its distances.

The blur variance of camera i is v_i = g² (1/Z - kappa_i)² + extra, in px², with g = w s0 A / p. The
g of the right camera may differ by a per cent, since its view was scaled to fit the left one. Two
quantities are measured, each as the ratio of the power spectra of two images of the same texture:

- left and right view of a frame: v_0 - v_1, linear in 1/Z and zero where both blur alike;
- one view at two distances, in blocks that cover the same piece of the board, so that a wave has
  the same number in both: v_i(Z) / m² - v_i(m Z), with the magnification m.

The first alone gives the mean focus, and the product of aperture and power difference. The second
separates these two, and from blur that does not depend on focus. A power spectrum does not change
when the image shifts, so that a disparity right to a pixel is enough. Parameters that the frames do
not determine stay near the design, which is a prior of the fit; `Defocus.undetermined` names them.

Blocks of both images show the same piece of the board. Blur reduces the power of high frequencies,
the higher the more; a gain changes all frequencies alike. A wave is one frequency of the discrete
Fourier transform of a block, counted in periods over the block.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.robust import robust_sigma
from d3s.errors import CalibrationError, InputError
from d3s.estimate.consensus.smoothing import noise_variance
from d3s.rig import Optics
from d3s.types import FloatArray, Image, Mask, Progress

# Largest frequency times sigma of the blur, in radians: beyond it the shape of the blur matters,
# not only its width.
_LARGEST_PHASE = 1.0
_HIGHEST_RAD_PER_PX = 0.6
# The taper of a block spreads each wave over two neighbours: lower waves mix with the mean.
_LOWEST_WAVE = 3
_WAVES = 9
_SMALLEST_BLOCK_PX = 96
_MOST_BLOCKS = 16
_OVERLAP = 0.5  # largest overlap of blocks
_INDEPENDENT = 0.6  # independent blocks per block, with this overlap
# Ratio of the distances of two frames to compare: large enough for their blur to differ.
_MAGNIFICATION = 1.25
_LEAST_MAGNIFICATION = 1.08
MODEL_SHARE = 0.03  # relative error of a difference of variances by the model of a disk
_SMALLEST_BLUR_PX2 = 0.05
_NONE = np.zeros((0, 0))  # no blocks


class Blur(NamedTuple):
    """Parameters of the blur model of both cameras."""

    gain: float  # w s0 A / p, in px m
    focus_dpt: tuple[float, float]  # 1 / focus distance of the left and the right camera
    extra_px2: float  # blur variance at every depth
    ratio: float  # gain of the right camera over that of the left one

    @classmethod
    def of(cls, optics: Optics) -> "Blur":
        """Blur model of a camera as designed."""
        gain = optics.aperture_gaussian_width * optics.focal_length_px * optics.aperture_radius_m
        left, right = (1.0 / distance_m for distance_m in optics.focus_distances_m)
        return cls(gain, (left, right), 0.0, 1.0)

    @property
    def vector(self) -> FloatArray:
        """Parameters as an array (5,), for the fit."""
        return np.array([self.gain, *self.focus_dpt, self.extra_px2, self.ratio])

    @classmethod
    def from_vector(cls, vector: FloatArray) -> "Blur":
        """Blur model from an array of parameters (5,)."""
        gain, left, right, extra, ratio = (float(value) for value in vector)
        return cls(gain, (left, right), extra, ratio)

    def variance_px2(self, depth_m: float, camera: int) -> float:
        """Blur variance of camera 0 (left) or 1 (right) at a depth."""
        gain = self.gain * (self.ratio if camera else 1.0)
        return (gain * (1.0 / depth_m - self.focus_dpt[camera])) ** 2 + self.extra_px2


class BlurComparison(NamedTuple):
    """Spectra of blocks of two images of the same texture.

    Frequencies are in radians per pixel of the second image, in which the board is smaller if the
    depths differ.
    """

    frames: tuple[int, int]
    cameras: tuple[int, int]
    depths_m: tuple[float, float]
    log_ratios: FloatArray = _NONE  # (blocks, waves): log of the power of the first over the second
    squares: FloatArray = _NONE  # (blocks, waves): mean squared frequency
    weights: FloatArray = _NONE  # (blocks, waves)
    independent: float = 0.0  # number of independent blocks

    def variances_px2(self, blur: Blur) -> tuple[float, float]:
        """Blur variance of both images by a model, in px² of the second image."""
        shrunk = (self.depths_m[0] / self.depths_m[1]) ** 2
        first, second = (
            blur.variance_px2(depth_m, camera)
            for depth_m, camera in zip(self.depths_m, self.cameras, strict=True)
        )
        return first * shrunk, second

    def measured_px2(self, blur: Blur) -> tuple[float, float]:
        """Measured variance of the first minus the second image, and its standard deviation.

        Blur multiplies the power of a wave by a function of its variance. The derivative of this
        function is taken at the mean variance of both images by the model. A gain, which multiplies
        all waves alike, is removed.
        """
        blocks, energies = self.blocks_px2(blur)
        mean = float(energies @ blocks / energies.sum())
        spread = float(np.sqrt(energies @ (blocks - mean) ** 2 / energies.sum()))
        spread = max(spread, MODEL_SHARE * abs(mean))
        return mean, spread / math.sqrt(max(self.independent - 1.0, 1.0))

    def blocks_px2(self, blur: Blur) -> tuple[FloatArray, FloatArray]:
        """Difference of variances of each block, as `measured_px2`, and its weight."""
        middle = max(0.5 * sum(self.variances_px2(blur)), _SMALLEST_BLUR_PX2)
        rate = _log_power_rate(self.squares, middle)
        mean_rate, mean_ratio = (
            (self.weights * values).sum(axis=1, keepdims=True)
            / self.weights.sum(axis=1, keepdims=True)
            for values in (rate, self.log_ratios)
        )
        rate = rate - mean_rate
        products = (self.weights * rate * (self.log_ratios - mean_ratio)).sum(axis=1)
        energies = (self.weights * rate**2).sum(axis=1)
        return products / energies, energies


def _log_power_rate(squares: FloatArray, variance_px2: float) -> FloatArray:
    """Derivative of the log power by the blur variance, for a disk; `squares` are frequencies²."""
    from scipy.special import j1, jv  # importing scipy takes longer than the rest of d3s

    # The transfer function of a disk of radius r = 2 sigma is 2 J1(x) / x, x = k r. The derivative
    # of its logarithm by x is -J2(x) / J1(x), that of x by the variance v is x / (2 v).
    phase = 2.0 * np.sqrt(squares * variance_px2)
    return np.asarray(-phase * jv(2, phase) / j1(phase) / variance_px2)


def farther_frame(number: int, depths_m: Sequence[float]) -> int | None:
    """Number of the frame whose depth is nearest to 1.25 times this one's; None if none is."""
    ratios = np.asarray(depths_m, dtype=np.float64) / depths_m[number]
    other = int(np.abs(ratios - _MAGNIFICATION).argmin())
    return other if ratios[other] > _LEAST_MAGNIFICATION else None


def compare_views(
    number: int, depth_m: float, pair: tuple[Image, Image], optics: Optics, design: Blur
) -> list[BlurComparison]:
    """Compare the left and the right view of a frame; empty if no block has enough waves.

    The blur as designed decides the size of blocks and the range of frequencies.
    """
    shift = round(float(optics.disparity_px(depth_m)))
    left, right = pair
    # Columns that show the same points: from the first that the right view shows.
    left, right = (left[:, shift:], right[:, : right.shape[1] - shift]) if shift > 0 else pair
    plan = BlurComparison((number, number), (0, 1), (depth_m, depth_m))
    return _compare((left, right), plan, design)


def compare_frames(
    near: int,
    far: int,
    depths_m: Sequence[float],
    pairs: tuple[tuple[Image, Image], tuple[Image, Image]],
    design: Blur,
) -> list[BlurComparison]:
    """Compare each view of a frame with the same view of a farther frame.

    `near` and `far` are the numbers of the frames; the pairs are rectified; the design is as for
    `compare_views`.
    """
    found: list[BlurComparison] = []
    for camera in (0, 1):
        images = pairs[0][camera], pairs[1][camera]
        plan = BlurComparison((near, far), (camera, camera), (depths_m[near], depths_m[far]))
        found += _compare(images, plan, design)
    return found


class BlockSize(NamedTuple):
    """Side of blocks in pixels, and the number of waves that are compared."""

    side_px: int
    waves: int


def block_size(plan: BlurComparison, design: Blur, room_px: float) -> BlockSize | None:
    """Size of blocks that suits the expected blur; None if so many pixels hold too few waves.

    `plan` has the cameras and depths of both images; `room_px` is the largest side of a block of
    the second one.
    """
    sigma_px = math.sqrt(max(*plan.variances_px2(design), 1.0))
    highest = min(_HIGHEST_RAD_PER_PX, _LARGEST_PHASE / sigma_px)
    side = max(_SMALLEST_BLOCK_PX, math.ceil(2.0 * math.pi * _WAVES / highest))
    side = min(side, math.floor(room_px))
    waves = math.floor(highest * side / (2.0 * math.pi))
    return None if waves < _LOWEST_WAVE + 2 else BlockSize(side, waves)


def compare_blocks(
    pairs: Sequence[Sequence[Image]], noises: Sequence[float], size: BlockSize, plan: BlurComparison
) -> tuple[BlurComparison, Mask]:
    """Compare blocks that show the same texture: spectra, and which blocks have enough waves.

    `pairs` are the block of the first and of the second image, square, of each place; `noises` the
    variances of both images; `size` is that of blocks of the second image.
    """
    rows = [_power_ratios(pair, noises, size.waves) for pair in pairs]
    if not rows:
        return plan, np.zeros(0, dtype=np.bool_)
    log_ratios, squares, weights = (np.array(part) for part in zip(*rows, strict=True))
    usable = np.asarray((weights > 0).sum(axis=1) >= 3)
    squares = squares * (2.0 * math.pi / size.side_px) ** 2
    compared = plan._replace(
        log_ratios=log_ratios[usable],
        squares=squares[usable],
        weights=weights[usable],
        independent=_INDEPENDENT * np.count_nonzero(usable),
    )
    return compared, usable


def _compare(
    images: tuple[Image, Image], plan: BlurComparison, design: Blur
) -> list[BlurComparison]:
    """Compare blocks of both images; empty if no block has enough waves."""
    magnification = plan.depths_m[1] / plan.depths_m[0]
    size = block_size(plan, design, min(images[0].shape) / magnification)
    if size is None:
        return []
    sides = round(size.side_px * magnification), size.side_px
    noises = [noise_variance(image[::2, ::2]) for image in images]
    pairs = []
    for place in _block_corners(images[0].shape, sides[0]):
        there = _matching_corner(place, images, sides, magnification)
        blocks = [
            image[y : y + side, x : x + side]
            for image, (y, x), side in zip(images, (place, there), sides, strict=True)
        ]
        if not any(np.isnan(block).any() for block in blocks):
            pairs.append(blocks)
    compared, usable = compare_blocks(pairs, noises, size, plan)
    return [compared] if usable.any() else []


def _block_corners(shape: tuple[int, ...], side: int) -> list[tuple[int, int]]:
    """Upper left corners (row, col) of at most 16 blocks over the whole image."""
    counts = [max(1, math.floor((size - side) / (_OVERLAP * side)) + 1) for size in shape]
    while counts[0] * counts[1] > _MOST_BLOCKS:
        counts[int(counts[1] > counts[0])] -= 1
    rows, cols = (
        np.linspace(0, size - side, count + 2)[1:-1].round().astype(int)
        if count == 1
        else np.linspace(0, size - side, count).round().astype(int)
        for size, count in zip(shape, counts, strict=True)
    )
    return [(int(row), int(col)) for row in rows for col in cols]


def _matching_corner(
    place: tuple[int, int],
    images: tuple[Image, Image],
    sides: tuple[int, int],
    magnification: float,
) -> tuple[int, int]:
    """Corner (row, col) of the block of the second image that shows the same piece of the board."""
    row, col = (
        round(
            0.5 * (images[1].shape[axis] - 1)
            + (place[axis] + 0.5 * (sides[0] - 1) - 0.5 * (images[0].shape[axis] - 1))
            / magnification
            - 0.5 * (sides[1] - 1)
        )
        for axis in (0, 1)
    )
    return row, col


def _power_ratios(
    blocks: Sequence[Image], noises: Sequence[float], waves: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log power ratio, mean squared wave and weight of rings of waves, of two blocks."""
    powers = [_power(block, waves) for block in blocks]
    down = np.arange(-waves, waves + 1)[:, np.newaxis]
    square = down**2 + np.arange(waves + 1) ** 2
    ring = np.rint(np.sqrt(square)).astype(np.int64)
    ring[ring > waves] = 0
    counts, first, second, energy = (
        np.bincount(ring.ravel(), values.ravel(), minlength=waves + 1)[_LOWEST_WAVE:]
        for values in (np.ones(ring.shape), *powers, (powers[0] + powers[1]) * square)
    )
    # Rings in which noise is more than half of the power are not used.
    signals = first - counts * noises[0], second - counts * noises[1]
    known = (signals[0] > 0.5 * first) & (signals[1] > 0.5 * second)
    ratio = np.divide(signals[0], signals[1], out=np.ones_like(first), where=known)
    return np.log(ratio), energy / (first + second), np.where(known, counts, 0.0)


def _power(block: Image, waves: int) -> FloatArray:
    """Power spectrum of a tapered block, (-waves .. waves, 0 .. waves); 1 for unit white noise."""
    taper = np.hanning(block.shape[0] + 2)[1:-1]
    values = block - float(taper @ block @ taper) / taper.sum() ** 2
    spectrum = np.fft.rfft(values * taper[:, np.newaxis] * taper, axis=1)[:, : waves + 1]
    spectrum = np.fft.fft(spectrum, axis=0)
    kept = np.concatenate([spectrum[-waves:], spectrum[: waves + 1]])
    return np.asarray(np.abs(kept) ** 2 / (taper @ taper) ** 2)


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
    views: Views, depths_m: Sequence[float], optics: Optics, *, progress: Progress | None = None
) -> Defocus:
    """Find focus and aperture of both cameras from boards at known depths.

    The depths increase. `optics` is the design with the calibrated disparity: prior of the fit.
    """
    if optics.aperture_radius_m == 0:
        raise InputError("aperture_radius_m=0 must be above 0: a pinhole has no focus to find.")
    design = Blur.of(optics)

    def compare(number: int) -> list[BlurComparison]:
        pair = views[number]
        found = compare_views(number, depths_m[number], pair, optics, design)
        other = farther_frame(number, depths_m)
        if other is None:
            return found
        return found + compare_frames(number, other, depths_m, (pair, views[other]), design)

    comparisons = list(chain.from_iterable(on_each_frame(compare, len(depths_m), progress)))
    return _fit_without_outliers(comparisons, depths_m, optics, design)


def _fit_without_outliers(
    comparisons: list[BlurComparison], depths_m: Sequence[float], optics: Optics, design: Blur
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


def _check_count(
    comparisons: Sequence[BlurComparison], left_out: dict[int, str], frames: int
) -> None:
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


def _worse_frame(worst: int, comparisons: Sequence[BlurComparison], residuals: FloatArray) -> int:
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


def _fit(comparisons: Sequence[BlurComparison], design: Blur) -> _Fit:
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
    comparisons: Sequence[BlurComparison],
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
    fit: _Fit, comparisons: Sequence[BlurComparison], depths_m: Sequence[float]
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
