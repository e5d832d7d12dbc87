"""Noise of the sensor over brightness, from frames of a textured board.

Second differences in both directions remove most of a blurred image and keep white noise (Immerkær,
"Fast noise variance estimation", CVIU 1996). Their squares are averaged over small blocks, and the
blocks are sorted by brightness. At each brightness only the quietest frames count: texture can only
add. So some of the frames must be out of focus, as the ends of a long series are. Where fine
texture is sharp in every frame, the noise is overestimated.

Noise of columns, one offset for a whole column of a frame, is removed by second differences. It is
found from what the columns of blocks of rows have in common: texture is another one in each block.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.fields import Fields
from d3s.calibrate.frames import Captures, ColourSensor
from d3s.errors import CalibrationError
from d3s.types import FloatArray, Image, Mask

_FRAMES = 12  # frames that are used, from the nearest to the farthest
_BLOCK_PX = 8
_LEVELS = 16  # levels of brightness
_FEWEST_BLOCKS = 100  # of one frame at one level
_FEWEST_LEVELS = 3
# The 64 squared second differences of a block are correlated, and worth 64 / 3.78 independent ones.
# Their mean has nearly a gamma distribution of this shape: half as much.
_SHAPE = _BLOCK_PX**2 / 2 / (1 + 2 * (16 + 1) / 36) ** 2
_BAND_PX = 64  # height of the blocks of rows for the noise of columns
_SECOND_DIFFERENCE = 6.0  # variance of 1, -2, 1 on independent numbers of variance 1
_QUIET_SPREADS = 3.0  # a frame is quiet within so many spreads of the quietest one
_LEAST_SPREAD = 0.01  # relative, of a level: the blocks of one level differ in brightness
_TOO_LOUD = 1.1  # times the fit: at such a level every frame has texture
# Second differences along both diagonals of the lattice of green pixels: 6² times the variance of
# white noise.
_GREEN_DIFFERENCES = np.array(
    [
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, -2.0, 0.0, -2.0, 0.0],
        [1.0, 0.0, 4.0, 0.0, 1.0],
        [0.0, -2.0, 0.0, -2.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
    ]
)


class Noise(NamedTuple):
    """Noise of raw frames: variance = read² + gain * intensity, with full scale 1."""

    read: float
    gain: float
    read_std: float
    gain_std: float
    intensity: FloatArray  # (levels,)
    variance: FloatArray  # (levels,)
    variance_std: FloatArray
    is_fitted: NDArray[np.bool_]  # levels that the fit uses
    spread: float  # relative RMS distance of these levels from the fit
    frames: tuple[int, ...]  # numbers of the frames that are quiet at a fitted level
    left_out: dict[int, str]
    column: float = 0.0  # standard deviation of the offset of a column, another one in each frame

    def variance_at(self, intensity: FloatArray | float) -> FloatArray:
        """Noise variance of a pixel of an intensity, with full scale 1."""
        return np.asarray(self.read**2 + self.gain * np.maximum(intensity, 0.0))


class _Level(NamedTuple):
    """Noise of one frame at one level of brightness."""

    frame: int
    intensity: float
    variance: float
    spread: float  # relative standard deviation of the variance


def find_noise(captures: Captures, fields: Fields) -> Noise:
    """Find the noise of the sensor from 12 of the frames."""
    numbers = np.unique(np.linspace(0, len(captures) - 1, _FRAMES).round().astype(int)).tolist()
    masks = fields.mask(0), fields.mask(1)
    edges = np.linspace(0.0, max(fields.light) * 1.25, _LEVELS + 1)
    found: dict[int, list[_Level]] = {level: [] for level in range(_LEVELS)}
    sensor = captures.sensor
    shape = _SHAPE if sensor is None else _SHAPE / 2  # half of the pixels are green
    median_over_mean = (1 - 1 / (9 * shape)) ** 3  # Wilson and Hilferty
    median_spread = 1.2533 / np.sqrt(shape)  # relative, of the variance of one block
    for number in numbers:
        mean, variance = _block_statistics(captures.raw(number), fields, masks, sensor)
        for level in range(_LEVELS):
            inside = (mean >= edges[level]) & (mean < edges[level + 1])
            count = int(np.count_nonzero(inside))
            if count >= _FEWEST_BLOCKS:
                middle = float(np.median(variance[inside])) / median_over_mean
                spread = median_spread / np.sqrt(count)
                found[level].append(_Level(number, float(mean[inside].mean()), middle, spread))
    column = _column_sigma(captures, fields, numbers)
    quiet = [_quietest(levels) for levels in found.values() if levels]
    if len(quiet) < _FEWEST_LEVELS:
        raise CalibrationError(
            "the noise of the sensor could not be found: the board shows fewer than "
            f"{_FEWEST_LEVELS} levels of brightness. Take one with black, grey and white."
        )
    noise = _fit_line(quiet, numbers)._replace(column=column)
    return noise if sensor is None else _of_luminance(noise, sensor)


def _of_luminance(noise: Noise, sensor: ColourSensor) -> Noise:
    """Noise of the luminance of a colour sensor, from that of its green pixels."""
    read = noise.read * np.sqrt(sensor.noise.read)
    gain = noise.gain * sensor.noise.shot
    before = np.maximum(noise.variance_at(noise.intensity), 1e-300)
    factor = (read**2 + gain * noise.intensity) / before
    return noise._replace(
        read=float(read),
        gain=float(gain),
        read_std=float(noise.read_std * np.sqrt(sensor.noise.read)),
        gain_std=float(noise.gain_std * sensor.noise.shot),
        variance=noise.variance * factor,
        variance_std=noise.variance_std * factor,
    )


def _column_sigma(captures: Captures, fields: Fields, numbers: list[int]) -> float:
    """Standard deviation of the offsets of columns: the median over frames and views."""
    variances = []
    for number in numbers:
        image = captures.image(number)
        for box in (fields.left, fields.right):
            middle = np.s_[box.rows // 4 : 3 * box.rows // 4, box.cols // 4 : 3 * box.cols // 4]
            part = np.asarray(box.of(image)[middle], dtype=np.float64)
            bands = part[: part.shape[0] // _BAND_PX * _BAND_PX]
            means = bands.reshape(-1, _BAND_PX, part.shape[1]).mean(axis=1)
            bare = means[:, 2:] - 2 * means[:, 1:-1] + means[:, :-2]
            count = len(bare)
            if count > 1:
                # Products of different bands: the square of their sum less their squares.
                common = bare.sum(axis=0) ** 2 - (bare**2).sum(axis=0)
                variances.append(float(common.mean()) / (count * (count - 1)))
    typical = float(np.median(variances)) if variances else 0.0
    return float(np.sqrt(max(typical, 0.0) / _SECOND_DIFFERENCE))


def _block_statistics(
    frame: Image, fields: Fields, masks: tuple[Mask, Mask], sensor: ColourSensor | None
) -> tuple[FloatArray, FloatArray]:
    """Mean and noise variance of all blocks that are lit and not clipped; of green, in colour."""
    low, high = frame.min(), frame.max()
    is_inside = (frame > low) & (frame < high)
    if sensor is not None:
        frame = sensor.green_frame(frame)
    squares_of_frame = None if sensor is None else _green_squares(frame)
    means, variances = [], []
    for box, mask in zip((fields.left, fields.right), masks, strict=True):
        part = np.ascontiguousarray(box.of(frame), dtype=np.float32)
        rows, cols = (size // _BLOCK_PX for size in part.shape)
        inner = np.s_[: rows * _BLOCK_PX, : cols * _BLOCK_PX]
        squares = _squares(part) if squares_of_frame is None else box.of(squares_of_frame)
        usable = np.logical_and(mask, box.of(is_inside))

        def averaged(values: NDArray[np.generic], rows: int = rows, cols: int = cols) -> FloatArray:
            blocks = values.reshape(rows, _BLOCK_PX, cols, _BLOCK_PX)
            return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float64))

        is_whole = averaged(usable[inner]) == 1
        is_whole[[0, -1]] = is_whole[:, [0, -1]] = False  # the filter mirrors the image there
        share = 1.0 if sensor is None else 0.5  # half of the pixels are green, and the rest is 0
        means.append(averaged(part[inner])[is_whole] / share)
        variances.append(averaged(squares[inner])[is_whole] / share)
    return np.concatenate(means), np.concatenate(variances)


def _squares(part: Image) -> Image:
    """Squared second differences in both directions, which have the variance of white noise."""
    import cv2

    difference = np.array([1.0, -2.0, 1.0]) / np.sqrt(6.0)
    return np.asarray(cv2.sepFilter2D(part, cv2.CV_32F, difference, difference) ** 2)


def _green_squares(green: Image) -> Image:
    """Squared second differences along both diagonals of green pixels, and 0 at the others."""
    import cv2

    differences = cv2.filter2D(green, cv2.CV_32F, _GREEN_DIFFERENCES / 6.0)
    return np.asarray(np.where(green != 0, differences**2, np.float32(0)))


def _quietest(levels: list[_Level]) -> tuple[_Level, list[int]]:
    """Mean over the quietest frames at one level of brightness, and the numbers of the frames."""
    least = min(levels, key=lambda level: level.variance)
    chosen = [
        level
        for level in levels
        if level.variance
        <= least.variance
        * (1 + _QUIET_SPREADS * np.hypot(level.spread, least.spread) + _LEAST_SPREAD)
    ]
    weights = np.array([level.spread**-2 for level in chosen])
    mean = [float(np.average([level[i] for level in chosen], weights=weights)) for i in (1, 2)]
    spread = float(np.hypot(weights.sum() ** -0.5, _LEAST_SPREAD))
    return _Level(least.frame, mean[0], mean[1], spread), [level.frame for level in chosen]


def _fit_line(quiet: list[tuple[_Level, list[int]]], numbers: list[int]) -> Noise:
    """Fit a line to the levels, rejecting those with texture in every frame."""
    from scipy.optimize import nnls

    intensity = np.array([level.intensity for level, _ in quiet])
    variance = np.array([level.variance for level, _ in quiet])
    std = variance * np.array([level.spread for level, _ in quiet])
    used = np.ones(len(quiet), dtype=np.bool_)
    design = np.stack([np.ones_like(intensity), intensity], axis=1)
    while True:
        line, _ = nnls(design[used] / std[used, np.newaxis], variance[used] / std[used])
        excess = variance / np.maximum(design @ line, 1e-300)
        loudest = int(np.argmax(np.where(used, excess, 0.0)))
        if excess[loudest] <= _TOO_LOUD or used.sum() == _FEWEST_LEVELS:
            break
        used[loudest] = False
    covariance = np.linalg.pinv(design[used].T @ (design[used] / std[used, np.newaxis] ** 2))
    read = float(np.sqrt(line[0]))
    frames = sorted(
        {frame for (_, some), is_used in zip(quiet, used, strict=True) if is_used for frame in some}
    )
    return Noise(
        read=read,
        gain=float(line[1]),
        # The standard deviation of a square root; near zero, the root of the standard deviation.
        read_std=float(np.sqrt(covariance[0, 0]) / max(2 * read, covariance[0, 0] ** 0.25)),
        gain_std=float(np.sqrt(covariance[1, 1])),
        intensity=intensity,
        variance=variance,
        variance_std=std,
        is_fitted=used,
        spread=float(np.sqrt(np.mean((excess[used] - 1) ** 2))),
        frames=tuple(frames),
        left_out={
            number: "its texture is too sharp to be told from noise"
            for number in numbers
            if number not in frames
        },
    )
