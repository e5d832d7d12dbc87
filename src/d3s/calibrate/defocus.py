"""Where each camera is focused, from how much the views of a board blur over its distances.

The blur variance of camera i is v_i = g² (1/Z - kappa_i)² + extra, in px², with g = w s0 A / p; of
the right one g may differ by a per cent, since its view was magnified to fit the left one.
Two things are measured, both as the ratio of the power spectra of two images of the same texture:

- left and right view of a frame: v_0 - v_1, linear in 1/Z and zero where both blur alike;
- the same view at two distances, blocks of which cover the same piece of the board, so that the
  same wave has the same number in both: v_i(Z) / m² - v_i(m Z), with the magnification m.

The first alone gives the mean focus, and the product of aperture and power difference. The second
tells them apart, and from blur that no focus removes. A spectrum of power does not change when the
image shifts, so that neither needs a disparity to better than a pixel.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from d3s.calibrate.ratios import Image, Progress, Views
from d3s.errors import InputError
from d3s.estimate.prefilter import noise_variance
from d3s.optics.lens import FloatArray
from d3s.rig import Optics

# Waves up to this phase over the blur's sigma: beyond, the shape of the blur counts, not its width.
_LARGEST_PHASE = 1.0
_HIGHEST_RAD_PER_PX = 0.6
# The taper of a block spreads each wave over two of its neighbours, so the longest say nothing.
_LOWEST_WAVE = 3
_WAVES = 9
_SMALLEST_BLOCK_PX = 96
_MOST_BLOCKS = 16
# Blocks overlap by half at most, and then count as fewer.
_OVERLAP = 0.5
_INDEPENDENT = 0.6
# Frames that are compared: so much apart that their blur differs, and no more than that.
_MAGNIFICATION = 1.25
_LEAST_MAGNIFICATION = 1.08
_FRAMES_HELD = 2  # views hold what is dear to make again
# What the model may be wrong by: as a share of a difference, and in px².
_MODEL_SHARE = 0.03
_MODEL_PX2 = 0.01
# What is known without a measurement: the design, within these standard deviations.
_GAIN_SHARE = 0.3
_FOCUS_DPT = 0.5
_EXTRA_PX2 = 0.5
_RATIO = 0.02
# A number is found if the frames halve what the design leaves open about it, at least.
_FOUND_SHARE = 0.5
_GROSS_SIGMAS = 6.0
# The median of the magnitude of Gaussian errors, in standard deviations.
_MEDIAN_OF_MAGNITUDE = 0.6745
_LEAST_FRAMES = 5
_ROUNDS = 3
_SMALLEST_BLUR_PX2 = 0.05


class RelativeBlur(NamedTuple):
    """Differences of blur variance over the frames; NaN where a frame was left out."""

    vergence_dpt: FloatArray
    measured_px2: FloatArray  # left less right
    sd_px2: FloatArray
    fitted_px2: FloatArray


class Defocus(NamedTuple):
    """Focus of both cameras and their aperture; what the frames do not tell is of the design."""

    focus_dpt: tuple[float, float]  # 1 / focus distance, of the left and the right camera
    focus_sd_dpt: tuple[float, float]
    power_difference_dpt: float  # left less right
    power_difference_sd_dpt: float
    aperture_radius_m: float
    aperture_radius_sd_m: float
    extra_blur_px2: float  # variance that both views have at every depth
    extra_blur_sd_px2: float
    blur_ratio: float  # by which the right view, as rectified, blurs more per dioptre
    blur_ratio_sd: float
    relative: RelativeBlur
    comparisons: int  # of frames with others
    undetermined: tuple[str, ...]  # sentences
    left_out: dict[int, str]

    @property
    def focus_distances_m(self) -> tuple[float, float]:
        """Depth that each camera images sharply."""
        left, right = self.focus_dpt
        return 1.0 / left, 1.0 / right

    @property
    def focus_sds_m(self) -> tuple[float, float]:
        """Their standard deviations."""
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
    """Focus and aperture of both cameras, from boards at known depths.

    Parameters
    ----------
    views
        Rectified pairs of the board, one at each depth; the axis meets the middle of the view.
    depths_m
        Of the board, increasing.
    optics
        The design, with the calibrated disparity: where to look for waves, and what is kept of
        what the frames do not tell.
    progress
        Called after each frame.

    Raises
    ------
    InputError
        If the design has no aperture, or fewer than five frames have texture.
    """
    if optics.aperture_radius_m == 0:
        raise InputError("aperture_radius_m=0 must be above 0: a pinhole has no focus to find.")
    design = _Blur.of(optics)
    comparisons: list[_Comparison] = []
    read = lru_cache(maxsize=_FRAMES_HELD)(lambda number: views[number])
    for number, depth_m in enumerate(depths_m):
        comparisons += _of_frame(number, depth_m, read(number), optics, design)
        other = _partner(number, depths_m)
        if other is not None:
            pairs = read(number), read(other)
            comparisons += _of_two(number, other, depths_m, pairs, design)
        if progress is not None:
            progress(number + 1, len(views))
    return _fitted(comparisons, depths_m, optics, design)


class _Blur(NamedTuple):
    """The model: what decides the blur of both cameras."""

    gain: float  # w s0 A / p, in px m
    focus_dpt: tuple[float, float]
    extra_px2: float
    ratio: float  # of the gain of the right camera to that of the left one

    @classmethod
    def of(cls, optics: Optics) -> "_Blur":
        gain = optics.aperture_gaussian_width * optics.focal_length_px * optics.aperture_radius_m
        left, right = (1.0 / distance_m for distance_m in optics.focus_distances_m)
        return cls(gain, (left, right), 0.0, 1.0)

    @property
    def vector(self) -> FloatArray:
        return np.array([self.gain, *self.focus_dpt, self.extra_px2, self.ratio])

    @classmethod
    def from_vector(cls, vector: FloatArray) -> "_Blur":
        gain, left, right, extra, ratio = (float(value) for value in vector)
        return cls(gain, (left, right), extra, ratio)

    def variance_px2(self, depth_m: float, camera: int) -> float:
        gain = self.gain * (self.ratio if camera else 1.0)
        return (gain * (1.0 / depth_m - self.focus_dpt[camera])) ** 2 + self.extra_px2


class _Comparison(NamedTuple):
    """Two images of the same texture: camera and depth of each, and what blocks of them hold.

    Waves are in radians per pixel of the second image, which is the smaller by a magnification.
    """

    frames: tuple[int, int]
    cameras: tuple[int, int]
    depths_m: tuple[float, float]
    log_ratios: FloatArray  # (blocks, waves): of the power of the first to that of the second
    squares: FloatArray  # (blocks, waves): mean squared wave number
    weights: FloatArray  # (blocks, waves)
    independent: float  # how many blocks these are worth

    def variances_px2(self, blur: _Blur) -> tuple[float, float]:
        """Blur of both, in pixels of the second image."""
        shrunk = (self.depths_m[0] / self.depths_m[1]) ** 2
        first, second = (
            blur.variance_px2(depth_m, camera)
            for depth_m, camera in zip(self.depths_m, self.cameras, strict=True)
        )
        return first * shrunk, second

    def measured_px2(self, blur: _Blur) -> tuple[float, float]:
        """Variance of the first less that of the second, and its standard deviation.

        Blur multiplies the power of a wave by a function of its variance, whose derivative is
        taken at the mean of both as a model has them; a gain multiplies all waves alike.
        """
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
        blocks = products / energies
        mean = float(energies @ blocks / energies.sum())
        spread = float(np.sqrt(energies @ (blocks - mean) ** 2 / energies.sum()))
        spread = max(spread, _MODEL_SHARE * abs(mean))
        return mean, spread / math.sqrt(max(self.independent - 1.0, 1.0))


def _log_power_rate(squares: FloatArray, variance_px2: float) -> FloatArray:
    """Derivative of the log of a wave's power to the blur variance, for the blur of a disk."""
    from scipy.special import j1, jv  # importing scipy takes longer than the rest of d3s

    # The disk of radius r = 2 sigma passes 2 J1(x) / x of a wave, x = k r; its logarithm has the
    # derivative -J2(x) / J1(x) to x, and x has x / (2 v) to the variance v.
    phase = 2.0 * np.sqrt(squares * variance_px2)
    return np.asarray(-phase * jv(2, phase) / j1(phase) / variance_px2)


def _partner(number: int, depths_m: Sequence[float]) -> int | None:
    """The frame whose distance is most nearly the wanted multiple of this one's."""
    ratios = np.asarray(depths_m, dtype=np.float64) / depths_m[number]
    other = int(np.abs(ratios - _MAGNIFICATION).argmin())
    return other if ratios[other] > _LEAST_MAGNIFICATION else None


def _of_frame(
    number: int, depth_m: float, pair: tuple[Image, Image], optics: Optics, design: _Blur
) -> list[_Comparison]:
    """Left and right view of a frame."""
    shift = round(float(optics.disparity_px(depth_m)))
    left, right = pair
    # Columns of the same points: from the first that the right view shows.
    left, right = (left[:, shift:], right[:, : right.shape[1] - shift]) if shift > 0 else pair
    both = (number, number), (0, 1), (depth_m, depth_m)
    return _compared((left, right), both, design, centred=False)


def _of_two(
    near: int,
    far: int,
    depths_m: Sequence[float],
    pairs: tuple[tuple[Image, Image], tuple[Image, Image]],
    design: _Blur,
) -> list[_Comparison]:
    """Each view of a frame and the same view of a farther one."""
    found: list[_Comparison] = []
    for camera in (0, 1):
        images = pairs[0][camera], pairs[1][camera]
        both = (near, far), (camera, camera), (depths_m[near], depths_m[far])
        found += _compared(images, both, design, centred=True)
    return found


_Both = tuple[tuple[int, int], tuple[int, int], tuple[float, float]]


def _compared(
    images: tuple[Image, Image], both: _Both, design: _Blur, *, centred: bool
) -> list[_Comparison]:
    """Spectra of blocks of both images; nothing if no block has the waves."""
    frames, cameras, depths_m = both
    magnification = depths_m[1] / depths_m[0]
    empty = np.zeros((0, 0))
    plan = _Comparison(frames, cameras, depths_m, empty, empty, empty, 0.0)
    sigma_px = math.sqrt(max(*plan.variances_px2(design), 1.0))
    highest = min(_HIGHEST_RAD_PER_PX, _LARGEST_PHASE / sigma_px)
    side = max(_SMALLEST_BLOCK_PX, math.ceil(2.0 * math.pi * _WAVES / highest))
    side = min(side, math.floor(min(images[0].shape) / magnification))
    waves = math.floor(highest * side / (2.0 * math.pi))
    if waves < _LOWEST_WAVE + 2:
        return []
    sides = round(side * magnification), side
    places = _places(images[0].shape, sides[0])
    noises = [noise_variance(image[::2, ::2]) for image in images]
    rows = []
    for place in places:
        there = _same_point(place, images, sides, magnification) if centred else place
        blocks = [
            image[y : y + size, x : x + size]
            for image, (y, x), size in zip(images, (place, there), sides, strict=True)
        ]
        if not any(np.isnan(block).any() for block in blocks):
            rows.append(_waves(blocks, noises, waves))
    if not rows:
        return []
    log_ratios, squares, weights = (np.array(part) for part in zip(*rows, strict=True))
    usable = (weights > 0).sum(axis=1) >= 3
    if not usable.any():
        return []
    squares = squares * (2.0 * math.pi / side) ** 2
    worth = _INDEPENDENT * np.count_nonzero(usable)
    return [
        plan._replace(
            log_ratios=log_ratios[usable],
            squares=squares[usable],
            weights=weights[usable],
            independent=worth,
        )
    ]


def _places(shape: tuple[int, ...], side: int) -> list[tuple[int, int]]:
    """Upper left corners of blocks, all over an image and not too many."""
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


def _same_point(
    place: tuple[int, int],
    images: tuple[Image, Image],
    sides: tuple[int, int],
    magnification: float,
) -> tuple[int, int]:
    """Corner of the block that shows the same piece of the board, of a farther frame."""
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


def _waves(
    blocks: Sequence[Image], noises: Sequence[float], waves: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log ratio of the power of two blocks, mean squared number and weight, of rings of waves."""
    powers = [_power(block, waves) for block in blocks]
    down = np.arange(-waves, waves + 1)[:, np.newaxis]
    square = down**2 + np.arange(waves + 1) ** 2
    ring = np.rint(np.sqrt(square)).astype(np.int64)
    ring[ring > waves] = 0
    counts, first, second, energy = (
        np.bincount(ring.ravel(), values.ravel(), minlength=waves + 1)[_LOWEST_WAVE:]
        for values in (np.ones(ring.shape), *powers, (powers[0] + powers[1]) * square)
    )
    # Where noise is more than half of the power, what is left says nothing.
    signals = first - counts * noises[0], second - counts * noises[1]
    known = (signals[0] > 0.5 * first) & (signals[1] > 0.5 * second)
    ratio = np.divide(signals[0], signals[1], out=np.ones_like(first), where=known)
    return np.log(ratio), energy / (first + second), np.where(known, counts, 0.0)


def _power(block: Image, waves: int) -> FloatArray:
    """Power of the waves of a tapered block, (-waves .. waves, 0 .. waves), white noise being 1."""
    taper = np.hanning(block.shape[0] + 2)[1:-1]
    values = block - float(taper @ block @ taper) / taper.sum() ** 2
    spectrum = np.fft.rfft(values * taper[:, np.newaxis] * taper, axis=1)[:, : waves + 1]
    spectrum = np.fft.fft(spectrum, axis=0)
    kept = np.concatenate([spectrum[-waves:], spectrum[: waves + 1]])
    return np.asarray(np.abs(kept) ** 2 / (taper @ taper) ** 2)


def _fitted(
    comparisons: list[_Comparison], depths_m: Sequence[float], optics: Optics, design: _Blur
) -> Defocus:
    left_out: dict[int, str] = {}
    while True:
        _check_count(comparisons, left_out)
        fit = _fit(comparisons, design)
        worst = int(np.abs(fit.residuals).argmax())
        if abs(fit.residuals[worst]) < _GROSS_SIGMAS:
            return _defocus(fit, comparisons, depths_m, optics, design, left_out)
        number = _culprit(worst, comparisons, fit.residuals)
        left_out[number] = (
            f"its blur is {abs(fit.residuals[worst]):.0f} standard deviations off from the others'"
        )
        comparisons = [one for one in comparisons if number not in one.frames]


def _check_count(comparisons: Sequence[_Comparison], left_out: dict[int, str]) -> None:
    frames = {one.frames[0] for one in comparisons if one.cameras == (0, 1)}
    if len(frames) < _LEAST_FRAMES:
        why = "".join(f" Frame {number}: {reason}." for number, reason in left_out.items())
        raise InputError(
            f"the blur of {len(frames)} frames can be compared, and {_LEAST_FRAMES} are needed."
            f"{why} Use a board with texture of all sizes, and views that are large enough."
        )


def _culprit(worst: int, comparisons: Sequence[_Comparison], residuals: FloatArray) -> int:
    """Of the two frames of the worst comparison, the one that fits worse elsewhere."""

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
    blur: _Blur
    covariance: FloatArray  # of the vector of the blur
    measured: FloatArray  # (comparisons, 2): difference of variance, and its standard deviation
    residuals: FloatArray  # (comparisons,), in standard deviations, those of the model included


def _fit(comparisons: Sequence[_Comparison], design: _Blur) -> _Fit:
    """The blur that explains the comparisons best, the design being one more thing known."""
    from scipy.optimize import least_squares

    prior = np.array([_GAIN_SHARE * design.gain, _FOCUS_DPT, _FOCUS_DPT, _EXTRA_PX2, _RATIO])
    blur = design
    for _ in range(_ROUNDS):
        measured = np.array([one.measured_px2(blur) for one in comparisons])
        sd = np.hypot(measured[:, 1], _MODEL_PX2 + _MODEL_SHARE * np.abs(measured[:, 0]))

        def residuals(
            vector: FloatArray, measured: FloatArray = measured, sd: FloatArray = sd
        ) -> FloatArray:
            tried = _Blur.from_vector(vector)
            expected = [np.subtract(*one.variances_px2(tried)) for one in comparisons]
            unknown = (vector - design.vector) / prior
            return np.concatenate([(measured[:, 0] - expected) / sd, unknown])

        # Gain enters squared: without a bound it may as well come out negative.
        bounds = ([0.1 * design.gain, -np.inf, -np.inf, -np.inf, 0.5], np.inf)
        found = least_squares(residuals, blur.vector, x_scale=prior, loss="soft_l1", bounds=bounds)
        blur = _Blur.from_vector(found.x)
    rest = residuals(found.x)[: len(comparisons)]
    scale = max(1.0, float(np.median(np.abs(rest))) / _MEDIAN_OF_MAGNITUDE)
    covariance = scale**2 * np.linalg.inv(found.jac.T @ found.jac)
    return _Fit(blur, covariance, measured, rest / scale)


def _defocus(
    fit: _Fit,
    comparisons: Sequence[_Comparison],
    depths_m: Sequence[float],
    optics: Optics,
    design: _Blur,
    left_out: dict[int, str],
) -> Defocus:
    per_px = optics.aperture_gaussian_width * optics.focal_length_px
    left, right = fit.blur.focus_dpt
    sds = np.sqrt(np.diag(fit.covariance)).tolist()
    gain_sd, left_sd, right_sd, extra_sd, ratio_sd = sds
    difference = np.array([0.0, 1.0, -1.0, 0.0, 0.0])
    difference_sd = float(np.sqrt(difference @ fit.covariance @ difference))
    # The model is as wrong for every comparison, which averaging does not help; of what it does to
    # both cameras alike, a ratio keeps little.
    gain_sd = math.hypot(gain_sd, 0.5 * _MODEL_SHARE * fit.blur.gain)
    ratio_sd = math.hypot(ratio_sd, 0.1 * _MODEL_SHARE)
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
    fit: _Fit, comparisons: Sequence[_Comparison], depths_m: Sequence[float]
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


def _undetermined(focus_sd: tuple[float, float], gain_sd: float, design: _Blur) -> list[str]:
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
