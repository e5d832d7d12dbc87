"""Focus over the field: field curvature, astigmatism and tilt of both lenses.

Two images of one piece of the board have the same texture, so the ratio of their power spectra is
that of their transfer functions, along every direction of a wave. With the blur of a disk, which
astigmatism makes an ellipse::

    ln P_1 - ln P_2 = c + 2 f(k·V_1 k) - 2 f(k·V_2 k),   f(q) = ln |J1(2 √q) / √q|

Here k is the wave vector, and V are the blur tensors of `LensMaps.blur_px2`. Compared are the two
views of a frame, which see a point a disparity apart, and each view of two frames, in which the
board has another depth and the piece another place. The unknowns are, of each lens, its focus on
the axis, the tilt of its focus over x and y, its sagittal and tangential curvature and their
centre; and for both the aperture, and blur that is there at every depth. The right view was scaled
to fit the left one, and its blur with it: the ratio of both is unknown too. All are fitted to all
blocks of many frames at once.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.alignment import with_lenses
from d3s.calibrate.defocus import farther_frame
from d3s.calibrate.distortion_fit import Board
from d3s.calibrate.frames import Views, on_each_frame
from d3s.calibrate.robust import huber_weighted, rms, robust_sigma
from d3s.rig import LensMaps, Optics, Rig
from d3s.types import FloatArray, Image, Progress

_BLOCK_PX = 192
_STEP_PX = 128
_MOST_FRAMES = 14
_SECTORS = 6  # directions of waves
_RINGS = np.array([2.6, 3.6, 4.7, 6.0, 7.6, 9.6, 12.2, 15.5, 19.7])  # periods over a block
_HIGHEST_RAD_PER_PX = 0.65
_LARGEST_PHASE2 = 1.2  # k·Vk beyond which the shape of the blur matters, not only its width
_LEAST_SNR = 8.0
_LEAST_SIGMA = 0.03  # of the logarithm of a ratio: the rims of the blocks differ
_REACHES = (0.45, 0.75, np.inf)  # field radii
_ROUNDS = 12
_SETTLED = 1e-4
_LARGEST_STEP = 0.5
# Standard deviations of the prior, in dioptres: focus on the axis beside that found before, tilt
# per field radius, curvature per square of it; and of the centre of curvature in field radii. Then
# of the logarithm of the aperture, of blur in px², and of the logarithm of the ratio of blurs.
_PRIOR = np.array([*([0.5, 0.5, 0.5, 3.0, 3.0, 0.1, 0.1] * 2), 0.1, 0.3, 0.01])
_LENS = 7  # focus, tilt along x and y, sagittal, tangential, centre of curvature
_CENTRES, _GAIN, _EXTRA, _RATIO = [5, 6, 12, 13], 14, 15, 16
_FIXED = 1e-4  # standard deviation of a number that is not fitted
_FARTHEST = 0.5  # of a centre of curvature from the axis, in field radii


class FocusMap(NamedTuple):
    """Focus of both lenses over the field."""

    focus_dpt: tuple[float, float]  # on the axis, left and right
    left_dpt: tuple[float, float, float, float]  # as in `LensMaps.focus_left_dpt`
    right_dpt: tuple[float, float, float, float]
    centre_left: tuple[float, float]
    centre_right: tuple[float, float]
    aperture_radius_m: float
    blur_ratio: float  # as in `LensMaps.blur_ratio`
    blocks: int
    before_rms: float  # of the logarithms of the ratios, with the focus of the axis everywhere
    after_rms: float

    def applied_to(self, rig: Rig) -> Rig:
        """Rig with this focus, on the axis and over the field, and this aperture."""
        optics = rig.optics
        left, right = (focus + 1 / optics.sensor_distance_m for focus in self.focus_dpt)
        changed = rig.replace(
            optics=optics.replace(
                optical_power_left_dpt=left,
                optical_power_right_dpt=right,
                aperture_radius_m=self.aperture_radius_m,
            )
        )
        return with_lenses(
            changed,
            focus_left_dpt=self.left_dpt,
            focus_right_dpt=self.right_dpt,
            focus_centre_left=self.centre_left,
            focus_centre_right=self.centre_right,
            blur_ratio=self.blur_ratio,
        )


class _Side(NamedTuple):
    """Places and depths of blocks in one image, (blocks,) each, and frequencies of their waves."""

    camera: NDArray[np.int64]
    x: FloatArray  # in units of the field radius
    y: FloatArray
    vergence_dpt: FloatArray
    squares: FloatArray  # (3, waves): kx², kx ky, ky² in rad²/px²


class _Waves(NamedTuple):
    """Ratios of the power of waves of two images of blocks, (waves,) each."""

    log_ratio: FloatArray
    weight: FloatArray
    block: NDArray[np.int64]  # number of the block
    first: _Side
    second: _Side

    def within(self, reach: float) -> "_Waves":
        """Waves of the blocks up to a distance from the axis."""
        is_in = (np.hypot(self.first.x, self.first.y) <= reach)[self.block]
        first, second = (
            side._replace(squares=side.squares[:, is_in]) for side in (self.first, self.second)
        )
        return _Waves(self.log_ratio[is_in], self.weight[is_in], self.block[is_in], first, second)


class _Block(NamedTuple):
    """A square of pixels of an image, and what it shows."""

    image: Image
    row: int
    col: int
    side: int
    camera: int
    depth_m: float

    @property
    def pixels(self) -> Image:
        """Pixels of the block."""
        return self.image[self.row : self.row + self.side, self.col : self.col + self.side]

    @property
    def is_inside(self) -> bool:
        """Whether the block lies within the image."""
        rows, cols = self.image.shape
        return bool(0 <= self.row <= rows - self.side and 0 <= self.col <= cols - self.side)

    def place(self, radius_px: float) -> tuple[float, float]:
        """Centre from the middle of the image, in units of the field radius."""
        rows, cols = self.image.shape
        half = (self.side - 1) / 2
        return (
            (self.col + half - (cols - 1) / 2) / radius_px,
            (self.row + half - (rows - 1) / 2) / radius_px,
        )


def find_focus_map(
    views: Views,
    depths_m: Sequence[float],
    optics: Optics,
    board: Board,
    field_radius_px: float,
    *,
    noise: float,
    progress: Progress | None = None,
) -> FocusMap:
    """Find the focus of both lenses over the field.

    `depths_m` are those of the board on the axis; `optics` has the focus and aperture found in the
    middle of the views; `noise` is the standard deviation of a pixel.
    """
    count = min(_MOST_FRAMES, len(depths_m))
    chosen = np.linspace(0, len(depths_m) - 1, count).round().astype(int).tolist()

    def waves_of(number: int) -> list[_Waves]:
        pairs = _pairs(chosen[number], views, depths_m, optics, board)
        found = [_compare(first, second, field_radius_px, noise) for first, second in pairs]
        return [one for one in found if one is not None]

    parts = [one for some in on_each_frame(waves_of, count, progress) for one in some]
    numbered = [part._replace(block=part.block + number) for number, part in enumerate(parts)]
    return _Fit(_joined(numbered), optics).result(len(parts))


def _pairs(
    number: int, views: Views, depths_m: Sequence[float], optics: Optics, board: Board
) -> Iterator[tuple[_Block, _Block]]:
    """Blocks of a frame that show the same piece: in both views, and in a farther frame."""
    pair, far = views[number], farther_frame(number, depths_m)
    other = None if far is None else views[far]
    shape = pair[0].shape
    side = min(_BLOCK_PX, min(shape) // 2 * 2)
    half = (side - 1) / 2
    for row in _starts(shape[0], side):
        for col in _starts(shape[1], side):
            at = np.array(col + half), np.array(row + half)
            depth_m = float(board.depth_m(*at, depths_m[number], shape, optics))
            shift = round(float(optics.disparity_px(depth_m)))
            left = _Block(pair[0], row, col, side, 0, depth_m)
            right = _Block(pair[1], row, col - shift, side, 1, depth_m)
            yield left, right
            if other is None or far is None:
                continue
            ratio = depths_m[number] / depths_m[far]
            for block, image in ((left, other[0]), (right, other[1])):
                yield block, _farther(block, image, ratio)


def _farther(block: _Block, image: Image, ratio: float) -> _Block:
    """Block that shows the same piece of the board farther away; `ratio` is the magnification."""
    side = round(block.side * ratio)
    row, col = (
        round((first + (block.side - 1) / 2 - middle) * ratio + middle - (side - 1) / 2)
        for first, middle in (
            (block.row, (image.shape[0] - 1) / 2),
            (block.col, (image.shape[1] - 1) / 2),
        )
    )
    return _Block(image, row, col, side, block.camera, block.depth_m / ratio)


def _starts(size: int, side: int) -> list[int]:
    count = max(1, round((size - side) / _STEP_PX) + 1)
    starts: list[int] = np.linspace(0, size - side, count).round().astype(int).tolist()
    return starts


def _compare(first: _Block, second: _Block, radius_px: float, noise: float) -> _Waves | None:
    """Ratio of the power of rings and sectors of waves of two blocks; None if there are too few."""
    if not (first.is_inside and second.is_inside):
        return None
    # The same waves of both blocks; the smaller one has fewer pixels per period.
    most = _HIGHEST_RAD_PER_PX * min(first.side, second.side) / (2 * np.pi)
    spectra = [_power(block, noise, most) for block in (first, second)]
    if any(one is None for one in spectra):
        return None
    (power, noise_power, count, squares), (other, other_noise, _, other_squares) = (
        one for one in spectra if one is not None
    )
    snr = np.minimum(power / noise_power, other / other_noise)
    good = (snr > _LEAST_SNR) & (count > 0)
    if np.count_nonzero(good) < _SECTORS:
        return None
    sides = []
    for block, of_block in ((first, squares), (second, other_squares)):
        x, y = (np.array([value]) for value in block.place(radius_px))
        vergence = np.array([1 / block.depth_m])
        sides.append(_Side(np.array([block.camera]), x, y, vergence, of_block[:, good]))
    sd = np.hypot(_LEAST_SIGMA, 2 / (snr[good] * np.sqrt(count[good])))
    return _Waves(np.log(power[good] / other[good]), 1 / sd, np.zeros(sd.size, np.int64), *sides)


def _power(block: _Block, noise: float, most: float) -> tuple[FloatArray, ...] | None:
    """Power by ring and sector of waves, that of noise, the number of waves, and mean k k^T.

    Waves have up to `most` periods over the block.
    """
    pixels = block.pixels
    if not np.isfinite(pixels).all():
        return None
    taper = np.hanning(block.side + 2)[1:-1]
    rows, cols, number, squares = _bins(block.side, most)
    bare = pixels - float(taper @ pixels @ taper) / taper.sum() ** 2
    spectrum = np.fft.rfft(bare * taper[:, np.newaxis] * taper, axis=1)[:, : cols.max() + 1]
    power = np.abs(np.fft.fft(spectrum, axis=0)[rows, cols]) ** 2
    bins = (len(_RINGS) - 1) * _SECTORS
    count = np.bincount(number, minlength=bins)
    total = np.bincount(number, power, bins)
    tensor = np.array([np.bincount(number, power * square, bins) for square in squares])
    noise_power = noise**2 * float(taper @ taper) ** 2 * np.maximum(count, 1)
    clean = np.maximum(total - noise_power, 1e-30)
    return clean, noise_power, count.astype(np.float64), tensor / np.maximum(total, 1e-30)


@lru_cache(maxsize=64)
def _bins(
    side: int, most: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Waves of a block: row and column of the spectrum, ring and sector, and (3, waves) k k^T."""
    highest = int(np.ceil(_RINGS[-1]))
    down, across = np.arange(-highest, highest + 1), np.arange(highest + 1)
    y, x = (axis.ravel() for axis in np.meshgrid(down, across, indexing="ij"))
    radius = np.hypot(x, y)
    ring = np.digitize(radius, _RINGS) - 1
    angle = np.mod(np.arctan2(y, x), np.pi)
    sector = np.floor(angle / np.pi * _SECTORS + 0.5).astype(np.int64) % _SECTORS
    unit = 2 * np.pi / side
    used = (ring >= 0) & (ring < len(_RINGS) - 1) & (radius <= most)
    x, y = x[used], y[used]
    squares = unit**2 * np.array([x**2, x * y, y**2], dtype=np.float64)
    return y % side, x, ring[used] * _SECTORS + sector[used], squares


def _joined(parts: Sequence[_Waves]) -> _Waves:
    def together(arrays: Sequence[NDArray[Any]], empty: tuple[int, ...] = (0,)) -> NDArray[Any]:
        return np.concatenate(arrays, axis=-1) if arrays else np.zeros(empty)

    def sides(some: Sequence[_Side]) -> _Side:
        return _Side(
            together([one.camera for one in some]).astype(np.int64),
            together([one.x for one in some]),
            together([one.y for one in some]),
            together([one.vergence_dpt for one in some]),
            together([one.squares for one in some], (3, 0)),
        )

    return _Waves(
        together([part.log_ratio for part in parts]),
        together([part.weight for part in parts]),
        together([part.block for part in parts]).astype(np.int64),
        sides([part.first for part in parts]),
        sides([part.second for part in parts]),
    )


class _Fit:
    """Gauss-Newton steps with Huber weights; the gain of each block is eliminated."""

    def __init__(self, waves: _Waves, optics: Optics) -> None:
        self._optics = optics
        self._start = np.zeros(_PRIOR.size)
        self._start[[0, _LENS]] = [1 / distance_m for distance_m in optics.focus_distances_m]
        self.values = self._start.copy()
        # From the middle outwards: far from it, the focus of the axis is no start.
        # The centre of curvature shows only where the curvature does.
        for reach in _REACHES:
            self._waves = waves.within(reach)
            self._prior = _PRIOR.copy()
            if np.isfinite(reach):
                self._prior[_CENTRES] = _FIXED
            self._improve()

    def _improve(self) -> None:
        for _ in range(_ROUNDS):
            step = self._step()
            self.values = self.values + np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
            self.values[_CENTRES] = np.clip(self.values[_CENTRES], -_FARTHEST, _FARTHEST)
            if np.abs(step).max() < _SETTLED:
                break

    def _step(self) -> FloatArray:
        rest, weight = self._residual(self.values)
        used = weight > 0
        scale = max(robust_sigma(rest[used] * weight[used]), 1.0) if used.any() else 1.0
        rows = self._derivatives(weight)[used] * (weight[used] / scale)[:, np.newaxis]
        rows, right = huber_weighted(rows, rest[used] * weight[used] / scale)
        normal = rows.T @ rows + np.diag(self._prior**-2)
        prior = (self.values - self._start) / self._prior**2
        return np.asarray(np.linalg.solve(normal, rows.T @ right - prior))

    def _residual(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Measured minus expected logarithm of each ratio, and its weight."""
        waves = self._waves
        q_first, q_second = (self._phase2(side, values) for side in (waves.first, waves.second))
        weight = waves.weight * (np.maximum(q_first, q_second) < _LARGEST_PHASE2)
        rest = waves.log_ratio - _log_power(q_first) + _log_power(q_second)
        return self._without_gain(rest, weight), weight

    def _without_gain(self, values: FloatArray, weight: FloatArray) -> FloatArray:
        """Values less the weighted mean of their block."""
        block, squares = self._waves.block, weight**2
        mean = np.bincount(block, squares * values) / np.maximum(np.bincount(block, squares), 1e-12)
        return np.asarray(values - mean[block])

    def _derivatives(self, weight: FloatArray) -> FloatArray:
        """Derivatives (waves, unknowns) of the expected logarithms."""
        rows = np.zeros((weight.size, self.values.size))
        for side, sign in ((self._waves.first, 1.0), (self._waves.second, -1.0)):
            here = self._phase2(side, self.values)
            rate = sign * _log_power_rate(here)
            for number in range(self.values.size):
                moved = self.values.copy()
                moved[number] += 1e-3
                rows[:, number] += rate * (self._phase2(side, moved) - here) / 1e-3
        return np.stack([self._without_gain(one, weight) for one in rows.T], axis=1)

    def _phase2(self, side: _Side, values: FloatArray) -> FloatArray:
        """k·Vk of each wave."""
        maps, optics = self._maps(values)
        blur = np.empty((3, side.x.size))
        for camera in (0, 1):
            of = side.camera == camera
            blur[:, of] = maps.blur_px2(
                camera, side.x[of], side.y[of], side.vergence_dpt[of], optics
            )
        along, mixed, down = side.squares
        across, slanted, upright = blur[:, self._waves.block]
        return np.asarray(across * along + 2 * slanted * mixed + upright * down)

    def _maps(self, values: FloatArray) -> tuple[LensMaps, Optics]:
        left, right = values[:_LENS].tolist(), values[_LENS : 2 * _LENS].tolist()
        extra = (float(values[_EXTRA]),)
        maps = LensMaps(
            field_radius_px=2.0,  # places are in its units already
            focus_left_dpt=tuple(left[1:5]),
            focus_right_dpt=tuple(right[1:5]),
            focus_centre_left=tuple(left[5:]),
            focus_centre_right=tuple(right[5:]),
            blur_ratio=float(np.exp(values[_RATIO])),
            extra_blur_left_px2=extra,
            extra_blur_right_px2=extra,
        )
        optics, focal = self._optics, 1 / self._optics.sensor_distance_m
        return maps, optics.replace(
            optical_power_left_dpt=left[0] + focal,
            optical_power_right_dpt=right[0] + focal,
            aperture_radius_m=optics.aperture_radius_m * float(np.exp(values[_GAIN])),
        )

    def result(self, blocks: int) -> FocusMap:
        """Return the focus map."""
        after, weight = self._residual(self.values)
        before, _ = self._residual(self._start)
        used = weight > 0
        maps, optics = self._maps(self.values)
        return FocusMap(
            focus_dpt=(float(self.values[0]), float(self.values[_LENS])),
            left_dpt=maps.focus_left_dpt,
            right_dpt=maps.focus_right_dpt,
            centre_left=maps.focus_centre_left,
            centre_right=maps.focus_centre_right,
            aperture_radius_m=optics.aperture_radius_m,
            blur_ratio=maps.blur_ratio,
            blocks=blocks,
            before_rms=rms(before[used]),
            after_rms=rms(after[used]),
        )


def _log_power(phase2: FloatArray) -> FloatArray:
    """Logarithm of the squared transfer function of a disk, from k·Vk."""
    from scipy.special import j1  # importing scipy takes longer than the rest of d3s

    root = np.sqrt(np.maximum(phase2, 1e-9))
    return np.asarray(2 * np.log(np.maximum(np.abs(j1(2 * root) / root), 1e-6)))


def _log_power_rate(phase2: FloatArray) -> FloatArray:
    """Derivative of `_log_power` by k·Vk, up to a phase where the transfer function is 0."""
    from scipy.special import j1, jv

    root = np.sqrt(np.clip(phase2, 1e-9, 2 * _LARGEST_PHASE2))
    return np.asarray(-2 * jv(2, 2 * root) / (j1(2 * root) * root))
