"""Noise of raw frames against that of the calibration, and spots that stay at their places."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from d3s.check.drift_quantities import Quantity, unknown
from d3s.rig import Calibration
from d3s.rig.bayer import GREEN, LuminanceNoise, luminance_noise, site_channels
from d3s.rig.calibration import view_to_raw_places
from d3s.types import FloatArray, Image

NOISE, SPOTS = 0.25, 0.0  # changes that matter: of the standard deviation; any spot does
_BLOCK_PX = 16
_FEWEST_BLOCKS = 50
# The quietest blocks show noise: texture only adds. Their mean over that of all blocks of pure
# noise, found from simulated white noise with blocks of this size.
_QUIET_SHARE = 0.1
_WHITE = 1.3  # variance over 2 pixels, relative to 1 pixel, from which on it is texture
_NOISE_SIGMA = 0.03  # of the standard deviation: blocks of noise are no exact measure

_BIN_PX = 4
_SURROUNDINGS_BINS = 8.0  # standard deviation of the Gaussian around a spot, in bins
_FEWEST_FRAMES = 6
_SPOT_SIGMAS, _SPOT_DEPTH = 6.0, 0.03  # least size of a spot, and share of the light
_ALIKE = 0.35  # correlation of frames that show one scene
_MIDDLE_BINS = 8  # half the side of the middle, where frames of a calibration are alike


def measure_noise(raws: Sequence[Image], calibration: Calibration | None) -> Quantity:
    """Compare the noise of the quietest blocks with that of the calibration."""
    if calibration is None or calibration.noise_read is None or calibration.noise_gain is None:
        return unknown("noise", NOISE, "the rig does not say how much noise the sensor had.")
    if not raws:
        return unknown("noise", NOISE, "noise is compared in raw frames, and these are views.")
    of_pixels = _pixel_noise(calibration)
    ratios, whites = [], []
    for raw in raws:
        mean, over_1, over_2 = _noise_of_blocks(raw, calibration)
        expected = of_pixels.read + of_pixels.shot * np.maximum(mean, 0)
        if mean.size >= _FEWEST_BLOCKS:
            ratio = over_1 / np.maximum(expected, 1e-12)
            quiet = np.argsort(ratio)[: max(int(_QUIET_SHARE * ratio.size), 5)]
            ratios.append(float(np.sqrt(ratio[quiet].mean() / _quiet_over_mean())))
            noise = max(float(over_1[quiet].mean()) / _quiet_over_mean(), 1e-12)
            whites.append(float(over_2[quiet].mean()) / noise)
    if not ratios:
        return unknown("noise", NOISE, "too little of the frames is lit and not clipped.")
    quietest = int(np.argmin(ratios))
    value = ratios[quietest] - 1
    if value > NOISE / 2 and whites[quietest] > _WHITE:
        return unknown("noise", NOISE, "fine texture all over hides it. Take blurred frames too.")
    return Quantity("noise", value, _NOISE_SIGMA, NOISE)


def _pixel_noise(calibration: Calibration) -> LuminanceNoise:
    """Variance of read noise, and of shot noise at full scale: of all pixels, or of green ones."""
    read, shot = (calibration.noise_read or 0.0) ** 2, calibration.noise_gain or 0.0
    if calibration.bayer is None:
        return LuminanceNoise(read, shot)
    of_luminance = luminance_noise(calibration.channel_gains or (1.0, 1.0, 1.0))
    return LuminanceNoise(read / of_luminance.read, shot / of_luminance.shot)


@cache
def _quiet_over_mean() -> float:
    """Mean of the quietest blocks of white noise, over that of all."""
    rng = np.random.default_rng(0)
    one = _second_differences(rng.standard_normal((96 * _BLOCK_PX, 24 * _BLOCK_PX)), 1)
    means = np.sort(_block_means(one).ravel())
    return float(means[: int(_QUIET_SHARE * means.size)].mean() / means.mean())


def _noise_of_blocks(
    raw: Image, calibration: Calibration
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and noise variance, over 1 and over 2 pixels, of the blocks within the views."""
    parts = []
    low, high = np.nanmin(raw), np.nanmax(raw)
    views = [_view_in_raw(raw, calibration, camera) for camera in (0, 1)]
    for cut in (part for view in views for part in _of_one_colour(view, calibration)):
        usable = np.isfinite(cut) & (cut > low) & (cut < high)
        known = np.where(usable, cut, 0.0).astype(np.float64)
        variances = [_block_means(_second_differences(known, lag)) for lag in (1, 2)]
        is_whole = _block_means(usable.astype(np.float64)) == 1
        is_whole[[0, -1]] = is_whole[:, [0, -1]] = False
        parts.append([one[is_whole] for one in (_block_means(known), *variances)])
    mean, over_1, over_2 = (np.concatenate(both) for both in zip(*parts, strict=True))
    return mean, over_1, over_2


def _of_one_colour(cut: Image, calibration: Calibration) -> list[Image]:
    """Green pixels, those of every other row; all pixels of a mono sensor."""
    if calibration.bayer is None:
        return [cut]
    places = np.argwhere(site_channels(calibration.bayer) == GREEN)
    return [cut[row::2, col::2] for row, col in places]


def _view_in_raw(raw: Image, calibration: Calibration, camera: int) -> Image:
    """Upright box of the raw frame inside of one view, from an even row and column on."""
    rows, cols = calibration.crop_rows_px, calibration.crop_cols_px
    x, y = view_to_raw_places(
        calibration, camera, np.array([0.0, cols - 1.0]), np.array([0.0, rows - 1.0])
    )
    top, bottom = (int(np.clip(one, 0, raw.shape[0])) for one in (y[0], y[1] + 1))
    first, last = (int(np.clip(one, 0, raw.shape[1])) for one in (x[0], x[1] + 1))
    return raw[top + top % 2 : bottom, first + first % 2 : last]


def _second_differences(image: FloatArray, lag: int) -> FloatArray:
    """Squares of second differences along both axes, of variance 1 for white noise of 1."""
    rows, cols = image.shape
    padded = np.pad(image, lag, mode="edge")
    down = padded[:rows] - 2 * padded[lag : lag + rows] + padded[2 * lag : 2 * lag + rows]
    both = down[:, :cols] - 2 * down[:, lag : lag + cols] + down[:, 2 * lag : 2 * lag + cols]
    return np.asarray(both**2 / 36)


def _block_means(image: FloatArray) -> FloatArray:
    return _binned(image, _BLOCK_PX)


def _binned(image: FloatArray | Image, side: int) -> FloatArray:
    rows, cols = (size // side for size in image.shape)
    whole = image[: rows * side, : cols * side].reshape(rows, side, cols, side)
    return np.asarray(whole.mean(axis=(1, 3), dtype=np.float64))


def find_spots(raws: Sequence[Image], calibration: Calibration | None) -> Quantity:
    """Count places of the sensor that are darker or brighter in all frames.

    The frames show different scenes.
    """
    if calibration is None or not raws:
        return unknown("spots", SPOTS, "spots are looked for in raw frames, and these are views.")
    if len(raws) < _FEWEST_FRAMES:
        reason = f"spots are told from texture by {_FEWEST_FRAMES} frames or more."
        return unknown("spots", SPOTS, reason)
    count = 0
    for camera in (0, 1):
        maps = [_relative(_view_in_raw(raw, calibration, camera)) for raw in raws]
        values = [one for one, _ in maps]
        row, col = (size // 2 for size in values[0].shape)
        middle = slice(max(row - _MIDDLE_BINS, 0), row + _MIDDLE_BINS)
        across = slice(max(col - _MIDDLE_BINS, 0), col + _MIDDLE_BINS)
        # A board that only comes nearer stays itself around the axis; signs, since dirt is strong.
        if max(_alike(values), _alike([np.sign(one[middle, across]) for one in values])) > _ALIKE:
            return unknown("spots", SPOTS, "the frames show one scene. Take frames of others.")
        count += _count_spots(maps)
    return Quantity("spots", float(count), 0.0, SPOTS)


def _relative(cut: Image) -> tuple[FloatArray, FloatArray]:
    """Log of the light of each bin over that around it, and the variance of its surroundings."""
    import cv2

    light = _binned(np.nan_to_num(cut, nan=0.0), _BIN_PX)
    log = np.log(np.maximum(light, 1e-3))
    values = np.asarray(log - cv2.GaussianBlur(log, (0, 0), _SURROUNDINGS_BINS), np.float64)
    variance = cv2.GaussianBlur(values**2, (0, 0), _SURROUNDINGS_BINS)
    return values, np.asarray(variance, np.float64) + 1e-5


def _alike(maps: list[FloatArray]) -> float:
    """Median correlation of neighbouring frames."""
    pairs = pairwise(maps)
    return float(np.median([np.corrcoef(one.ravel(), two.ravel())[0, 1] for one, two in pairs]))


def _count_spots(maps: list[tuple[FloatArray, FloatArray]]) -> int:
    """Connected places whose weighted mean over the frames is away from zero."""
    import cv2

    weight = sum(1 / variance for _, variance in maps)
    mean = sum(values / variance for values, variance in maps) / weight
    # A place may be extreme in one frame only: the median must agree.
    middle = np.median([values for values, _ in maps], axis=0)
    size = np.abs(mean) * np.sqrt(weight)
    spread = max(float(np.median(size)) / 0.6745, 1.0)
    is_spot = (size > _SPOT_SIGMAS * spread) & (np.abs(mean) > _SPOT_DEPTH)
    is_spot &= (np.abs(middle) > 0.5 * np.abs(mean)) & (np.sign(middle) == np.sign(mean))
    count, _ = cv2.connectedComponents(is_spot.astype(np.uint8))
    return int(count) - 1
