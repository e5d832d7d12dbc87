"""Difference of the blur of two images of the same texture, from the ratio of power spectra.

Blocks of both images show the same piece of the board. Blur reduces the power of high frequencies,
the higher the more; a gain changes all frequencies alike.

Here a wave is one frequency of the discrete Fourier transform of a block, counted in periods over
the block.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from d3s.estimate.consensus.prefilter import noise_variance
from d3s.rig import Optics
from d3s.types import FloatArray, Image, Mask

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


class Comparison(NamedTuple):
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
) -> list[Comparison]:
    """Compare the left and the right view of a frame; empty if no block has enough waves.

    The blur as designed decides the size of blocks and the range of frequencies.
    """
    shift = round(float(optics.disparity_px(depth_m)))
    left, right = pair
    # Columns that show the same points: from the first that the right view shows.
    left, right = (left[:, shift:], right[:, : right.shape[1] - shift]) if shift > 0 else pair
    plan = Comparison((number, number), (0, 1), (depth_m, depth_m))
    return _compare((left, right), plan, design)


def compare_frames(
    near: int,
    far: int,
    depths_m: Sequence[float],
    pairs: tuple[tuple[Image, Image], tuple[Image, Image]],
    design: Blur,
) -> list[Comparison]:
    """Compare each view of a frame with the same view of a farther frame.

    `near` and `far` are the numbers of the frames; the pairs are rectified; the design is as for
    `compare_views`.
    """
    found: list[Comparison] = []
    for camera in (0, 1):
        images = pairs[0][camera], pairs[1][camera]
        plan = Comparison((near, far), (camera, camera), (depths_m[near], depths_m[far]))
        found += _compare(images, plan, design)
    return found


class BlockSize(NamedTuple):
    """Side of blocks in pixels, and the number of waves that are compared."""

    side_px: int
    waves: int


def block_size(plan: Comparison, design: Blur, room_px: float) -> BlockSize | None:
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
    pairs: Sequence[Sequence[Image]], noises: Sequence[float], size: BlockSize, plan: Comparison
) -> tuple[Comparison, Mask]:
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


def _compare(images: tuple[Image, Image], plan: Comparison, design: Blur) -> list[Comparison]:
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
