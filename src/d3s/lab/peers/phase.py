"""Phase correlation in windows: classical stereo to small fractions of a pixel.

Papers: Kuglin and Hines, "The phase correlation image alignment method" (IEEE Cybernetics and
Society, 1975); Takita, Muquit, Aoki and Higuchi, "A sub-pixel correspondence search technique for
computer vision applications" (IEICE Transactions, 2004).

Taken from the papers: a shift changes the phase of each frequency in proportion to the frequency
and leaves the amplitudes as they are, so the phase of the cross spectrum of two windows holds their
disparity (Kuglin and Hines). Windows are matched from coarse to fine, and a fit to the correlation
peak gives the subpixel part (Takita and others). A round blur has no phase where its transfer
function is positive, so a difference in focus hardly matters: of the classical matchers this one
fits the camera best. It does not use the defocus. It assumes rectified views and one depth per
window.

Steps:

1. Whole disparities by block matching, on views of half the size.
2. Windows on a grid, tapered by a Hann window. The right window is placed at the disparity of step
   1, to a quarter of a pixel, so that both show the same content; then once more at the result.
3. Weighted cross spectra, and the shift of their correlation peak by Newton's method.
4. Linear interpolation between grid points whose disparities agree.

Different from the papers:

- Amplitudes enter with a power between phase alone and plain correlation, and high frequencies are
  attenuated: with phase alone, noise dominates here.
- The windows are placed twice, to a quarter of a pixel.
- A left-right check of step 1 rejects pixels visible in one view only.

`confidence` is the correlation at the peak over the correlation if all phases agreed. `sigma_m` is
from the curvature of the peak and the scatter of the phases, times a factor found on the tuning
textures.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import MinConfidence, Window
from d3s.lab.peers.common import (
    Float32Array,
    MethodCall,
    NormalisedPair,
    gaussian_blur,
    normalise_pair,
)
from d3s.lab.peers.matching import (
    BlockMatch,
    DisparityGrid,
    MatchedDisparity,
    MatchingOptions,
    PaddedFft,
    SigmaFactor,
    Spectrum,
    block_match,
    flag_matches,
)
from d3s.rig import Rig
from d3s.runtime.parallel import thread_count
from d3s.types import FloatArray, Image

# Reduction of the views before block matching.
_COARSE_FACTOR = 2
# Positions per pixel of the right window. The remaining shift is too small for the taper to weight
# the two windows differently.
_POSITIONS_PER_PX = 4
_PLACEMENTS = 2
# Shifts tried before Newton's method: block matching may be wrong by a few pixels.
_LARGEST_SHIFT_PX, _SHIFT_STEP_PX = 3.0, 0.5
_NEWTON_STEPS = 3
# Windows per batch: their spectra fit into the cache.
_BATCH = 256
_TINY = 1e-20  # avoids a division by zero


class PhaseOptions(MatchingOptions):
    """Options of windowed phase correlation.

    Defaults by benchmarks/tune_peers.py.
    """

    # The taper leaves a third of the window. 48 px are half as bad again beyond 1.2 m; 80 px are a
    # quarter better on planes and reject a tenth more of the scenes.
    window_px: int = Field(
        default=64, ge=8, le=256, description="the side of the tapered windows, in whole pixels"
    )
    # An eighth of the window: 4 px give the same result in three times the time.
    stride_px: int = Field(
        default=8, ge=1, le=64, description="the distance of neighbouring windows"
    )
    # Smaller is better at edges; 21 px are still enough at 0.25 m.
    coarse_window_px: Window = Field(
        default=21, description="the side of the window of the block matching, odd"
    )
    coarse_sigma_px: float = Field(
        default=1.0, ge=0, le=10, description="the Gaussian before the block matching"
    )
    # Phase alone gives frequencies that the blur removed, and that hold noise only, the same weight
    # as all others: twice the error at most depths. From 0.75 on all are equal.
    amplitude_power: float = Field(
        default=0.8, ge=0, le=1, description="0 for phase alone, 1 for plain correlation"
    )
    # Little effect, since the amplitudes are weights already.
    lowpass_sigma_px: float = Field(
        default=1.0, ge=0, le=20, description="the Gaussian whose transfer weighs the frequencies"
    )
    # Grid neighbours that differ by more belong to two surfaces: no interpolation between them.
    agreement_px: float = Field(
        default=1.0, gt=0, le=100, description="the largest difference of neighbours to interpolate"
    )
    # Two thirds of the errors on the tuning planes are smaller than sigma. The factor is large
    # because the taper correlates neighbouring frequencies, and because a difference in blur also
    # changes amplitudes.
    sigma_factor: SigmaFactor = 3.0
    # Two pixels of the reduced views.
    consistency_px: float = Field(
        default=4.0,
        ge=-1,
        le=256,
        description="the largest left-right difference of the block matching, -1 for no check",
    )
    # Rejects windows that hold two surfaces: with 0.7 the error on scenes is five times as large,
    # for a twelfth more pixels.
    min_confidence: MinConfidence = 0.9


class _WindowShifts(NamedTuple):
    """Disparity, its standard deviation and its confidence, of each window or each pixel."""

    disparity_px: FloatArray
    sigma_px: FloatArray
    confidence: FloatArray


def estimate_phase(left: Image, right: Image, rig: Rig, options: PhaseOptions) -> DepthMap:
    """Place windows by block matching, and measure the remaining shift by phase correlation."""
    call = MethodCall("phase", (left, right), rig, options)
    pair = normalise_pair(call.views)
    if pair is None:
        return call.finish_empty(Flag.LOW_TEXTURE)
    coarse = _coarse_match(call, pair)
    if coarse is None:
        return call.finish_empty(Flag.BORDER)
    rows, cols = (np.arange(0, extent, options.stride_px) for extent in call.shape)
    shifts = _correlate_windows(pair, coarse.disparity_px[np.ix_(rows, cols)], rows, cols, options)
    disparity_px, sigma_px, confidence = _interpolate(shifts, call.shape, options)
    found = MatchedDisparity(disparity_px, coarse.left_right_difference_px, sigma_px, confidence)
    flags = flag_matches(call, pair[0], found, options.window_px, options.stride_px)
    sigma_px = options.sigma_factor * sigma_px
    return call.finish_disparity(flags, disparity_px, sigma_px, confidence)


def _coarse_match(call: MethodCall, pair: NormalisedPair) -> BlockMatch | None:
    """Disparity of each pixel by block matching; None if the frame is too small for a window."""
    import cv2

    options = call.options
    window_px = max(options.coarse_window_px // _COARSE_FACTOR, 3) | 1
    rows, cols = (extent // _COARSE_FACTOR for extent in call.shape)
    if min(call.shape) < options.window_px or min(rows, cols) < window_px:
        return None
    grid = DisparityGrid.covering(
        call.rig.optics, call.range_m, float(_COARSE_FACTOR), call.shape[1]
    )
    if grid is None:
        return None
    whole = np.s_[: rows * _COARSE_FACTOR, : cols * _COARSE_FACTOR]
    small = [
        np.asarray(
            cv2.resize(
                gaussian_blur(view, options.coarse_sigma_px)[whole],
                (cols, rows),
                interpolation=cv2.INTER_AREA,
            ),
            dtype=np.float64,
        )
        for view in pair
    ]
    coarse_grid = DisparityGrid(grid.disparity_px / _COARSE_FACTOR, 1.0)
    match = block_match(small[0], small[1], coarse_grid, window_px)
    # Each pixel takes the value of its reduced pixel; a last odd row or column repeats it.
    index = [
        np.minimum(np.arange(extent) // _COARSE_FACTOR, last)
        for extent, last in zip(call.shape, (rows - 1, cols - 1), strict=True)
    ]
    return BlockMatch(*(_COARSE_FACTOR * one[np.ix_(*index)] for one in match))


def _correlate_windows(
    pair: NormalisedPair,
    start_px: FloatArray,
    rows: NDArray[np.intp],
    cols: NDArray[np.intp],
    options: PhaseOptions,
) -> _WindowShifts:
    """Correlate the windows centred at `rows` x `cols`, starting from disparities `start_px`."""
    left, right = _sliding_windows(pair, options.window_px)
    correlator = _Correlator.from_options(options)
    row, col = (axis.ravel() for axis in np.meshgrid(rows, cols, indexing="ij"))
    found = np.empty((len(_WindowShifts._fields), row.size))
    for start in range(0, row.size, _BATCH):
        batch = slice(start, start + _BATCH)
        left_spectra = correlator.spectra(left[row[batch], col[batch]])
        disparity_px = start_px.ravel()[batch]
        # The second pass places the right windows at the disparity of the first.
        for _ in range(_PLACEMENTS):
            position = np.rint(disparity_px * _POSITIONS_PER_PX).astype(np.intp)
            whole, fraction = -(-position // _POSITIONS_PER_PX), -position % _POSITIONS_PER_PX
            right_col = np.clip(col[batch] - whole, 0, right.shape[2] - 1)
            cross = correlator.cross(left_spectra, right[fraction, row[batch], right_col])
            column_sums = cross.sum(axis=1)
            shift_px = correlator.shift_px(column_sums)
            disparity_px = position / _POSITIONS_PER_PX + shift_px
        found[:, batch] = disparity_px, *correlator.certainty(cross, column_sums, shift_px)
    return _WindowShifts(*found.reshape(-1, rows.size, cols.size))


def _sliding_windows(pair: NormalisedPair, window_px: int) -> tuple[Float32Array, Float32Array]:
    """Windows around each pixel, as views on memory without a copy.

    Left: (rows, cols, window, window). Right: (fractions, rows, cols, window, window), shifted by
    fractions of a pixel. The images are mirrored at their borders.
    """
    rows, cols = pair[0].shape
    fft = PaddedFft.with_margin((rows, cols), 0, window_px)
    spectrum = fft.spectra(pair)[1]
    shifted = [
        fft.image(spectrum * fft.shift_factor(-number / _POSITIONS_PER_PX))
        for number in range(_POSITIONS_PER_PX)
    ]
    half = window_px // 2
    sides = [(half, window_px - half - 1)] * 2
    left, right = (
        np.lib.stride_tricks.sliding_window_view(
            np.pad(views, [(0, 0), *sides], mode="symmetric"), (window_px, window_px), axis=(1, 2)
        )
        for views in (pair[0][np.newaxis].astype(np.float32), np.stack(shifted))
    )
    return left[0], right


class _Correlator(NamedTuple):
    """Phase correlation of windows: everything that depends on the options only."""

    taper: Float32Array  # (window, window)
    weight: Float32Array  # of a cross spectrum, (window, window / 2 + 1)
    phase_rad_per_px: FloatArray  # phase per pixel of shift, of each horizontal frequency
    power: float  # exponent of the amplitudes

    @classmethod
    def from_options(cls, options: PhaseOptions) -> "_Correlator":
        size = options.window_px
        frequency_x, frequency_y = np.fft.rfftfreq(size), np.fft.fftfreq(size)[:, np.newaxis]
        hann = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2
        # The half spectrum counts each frequency twice, for its negative. Zero and the Nyquist
        # frequency have no horizontal phase and count nothing.
        multiplicity = np.where((frequency_x == 0) | (frequency_x == 0.5), 0.0, 2.0)
        squared = frequency_x**2 + frequency_y**2
        lowpass = np.exp(-2 * (np.pi * options.lowpass_sigma_px) ** 2 * squared)
        return cls(
            taper=np.outer(hann, hann).astype(np.float32),
            weight=(multiplicity * lowpass).astype(np.float32),
            phase_rad_per_px=np.asarray(2 * np.pi * frequency_x, dtype=np.float64),
            power=options.amplitude_power,
        )

    def spectra(self, windows: Float32Array) -> Spectrum:
        """Spectra of windows (n, window, window) minus their mean, tapered.

        With the mean left in, the taper itself would correlate.
        """
        from scipy.fft import rfft2  # importing scipy takes longer than the rest of d3s

        mean = np.einsum("kij,ij->k", windows, self.taper) / self.taper.sum()
        level = mean[:, np.newaxis, np.newaxis].astype(np.float32)
        return np.asarray(rfft2((windows - level) * self.taper, workers=thread_count()))

    def cross(self, left: Spectrum, right: Float32Array) -> Spectrum:
        """Weighted cross spectra of left spectra and right windows."""
        product = left * np.conj(self.spectra(right))
        amplitude = np.maximum(np.abs(product), np.float32(_TINY))
        product *= self.weight * amplitude ** np.float32(self.power - 1)
        return product

    def shift_px(self, column_sums: Spectrum) -> FloatArray:
        """Shift of the left windows to the right in px, from cross spectra summed over rows."""
        tried = np.arange(
            -_LARGEST_SHIFT_PX, _LARGEST_SHIFT_PX + _SHIFT_STEP_PX / 2, _SHIFT_STEP_PX
        )
        waves = np.exp(1j * np.outer(self.phase_rad_per_px, tried)).astype(np.complex64)
        shift = np.asarray(tried[(column_sums @ waves).real.argmax(axis=1)], dtype=np.float64)
        for _ in range(_NEWTON_STEPS):
            _, slope, curvature = self._correlation(column_sums, shift)
            step = np.where(curvature < 0, -slope / np.minimum(curvature, -_TINY), 0.0)
            shift += np.clip(step, -_SHIFT_STEP_PX, _SHIFT_STEP_PX)
        return shift

    def certainty(
        self, cross: Spectrum, column_sums: Spectrum, shift: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Standard deviation of a shift in px, and the correlation relative to equal phases."""
        height, _, curvature = self._correlation(column_sums, shift)
        rotation = np.exp(1j * shift[:, np.newaxis] * self.phase_rad_per_px).astype(np.complex64)
        noise = (cross * rotation[:, np.newaxis]).imag
        scatter = np.einsum("kij,kij,j->k", noise, noise, self.phase_rad_per_px**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            agreement = height / np.abs(cross).sum(axis=(1, 2))
            return np.sqrt(scatter) / np.abs(curvature), agreement

    def _correlation(
        self, column_sums: Spectrum, shift: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Correlation at a shift, with its first and second derivative."""
        rotated = column_sums * np.exp(1j * shift[:, np.newaxis] * self.phase_rad_per_px)
        return (
            rotated.real.sum(axis=1),
            -(rotated.imag @ self.phase_rad_per_px),
            -(rotated.real @ self.phase_rad_per_px**2),
        )


def _interpolate(
    shifts: _WindowShifts, shape: tuple[int, int], options: PhaseOptions
) -> _WindowShifts:
    """Value of each pixel: bilinear where the four windows agree, else of the nearest window."""
    positions = [np.arange(extent) / options.stride_px for extent in shape]
    lasts = [extent - 1 for extent in shifts.disparity_px.shape]
    low = [np.minimum(p.astype(np.intp), n) for p, n in zip(positions, lasts, strict=True)]
    high = [np.minimum(i + 1, n) for i, n in zip(low, lasts, strict=True)]
    nearest = np.ix_(
        *(np.minimum(np.rint(p).astype(np.intp), n) for p, n in zip(positions, lasts, strict=True))
    )
    weight_y, weight_x = (np.minimum(p - i, 1.0) for p, i in zip(positions, low, strict=True))
    corners = [
        shifts.disparity_px[np.ix_(i, j)] for i in (low[0], high[0]) for j in (low[1], high[1])
    ]
    upper, lower = (
        first + weight_x * (second - first) for first, second in (corners[:2], corners[2:])
    )
    bilinear = upper + weight_y[:, np.newaxis] * (lower - upper)
    agree = np.ptp(corners, axis=0) <= options.agreement_px
    return _WindowShifts(
        np.where(agree, bilinear, shifts.disparity_px[nearest]),
        shifts.sigma_px[nearest],
        shifts.confidence[nearest],
    )
