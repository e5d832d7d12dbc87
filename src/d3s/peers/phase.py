"""Phase correlation in windows: classical stereo to small fractions of a pixel.

A shift turns the phase of each frequency in proportion to it, whatever the amplitudes are, so that
two windows have their disparity in the phase of their cross spectrum: Kuglin and Hines (IEEE
Cybernetics and Society, 1975), in windows with fractions by a fit to the peak as in Takita, Muquit,
Aoki and Higuchi (IEICE Transactions, 2004). A round blur has no phase where its transfer is
positive, so that a difference in focus hardly matters: of the classical matchers, the one that fits
this camera best. It does not use the defocus.

From coarse to fine:

1. Whole disparities by block matching, on views of half the size.
2. Windows on a grid, the right one taken where the first step says, to a quarter of a pixel, so
   that both hold the same; tapered by a Hann window. Then again where these say.
3. Their cross spectra, with amplitudes to a power between plain correlation and phase alone, and
   less of the high frequencies. The shift at which they correlate most, by Newton's steps.
4. Between the points of the grid linear, where neighbours agree, and where the right view says the
   same; the papers do not ask it.

Assumes rectified views and one depth in a window. `confidence` is the correlation at the best shift
over what it would be if all phases agreed. `sigma_m` is from the curvature of the peak and the
spread of the phases about it, times a factor that was found on the tuning textures.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.options import Window
from d3s.peers.common import Job, scaled, smoothed
from d3s.peers.fourier import Plane, Single, Spectrum
from d3s.peers.hypotheses import Hypotheses, Matched, block_match
from d3s.peers.search import CheckedOptions, Found, flagged, measured
from d3s.rig import Rig
from d3s.runtime.parallel import thread_count
from d3s.types import FloatArray, Image

# Of the search for whole disparities: pixels of the frame that make one of it.
_COARSE = 2
# Parts of a pixel to which the right window is placed: what is left is too small for the taper to
# weigh the two windows differently.
_PLACES = 4
_PLACEMENTS = 2
# What is tried before Newton's steps begin: the block matching may be wrong by a few pixels.
_FARTHEST_PX, _STEP_PX = 3.0, 0.5
_NEWTON_STEPS = 3
# Of windows whose spectra are in memory at once: so few stay in the cache.
_WINDOWS_AT_ONCE = 256
_TINY = 1e-20


class PhaseOptions(CheckedOptions):
    """Choices for windowed phase correlation.

    Defaults by benchmarks/tune_peers.py.
    """

    # The taper leaves a third of it. 48 px are half as bad again beyond 1.2 m; 80 px are a quarter
    # better on planes, and leave out a tenth more of scenes.
    window_px: int = Field(
        default=64, ge=8, le=256, description="the side of the tapered windows, in whole pixels"
    )
    # An eighth of the window: 4 px give the same, in three times the time.
    stride_px: int = Field(
        default=8, ge=1, le=64, description="the distance of windows on their grid"
    )
    # The smaller, the better at edges; 21 px are still enough at 0.25 m.
    coarse_window_px: Window = Field(
        default=21, description="the side of the window of the search for whole disparities, odd"
    )
    coarse_sigma_px: float = Field(
        default=1.0, ge=0, le=10, description="the Gaussian before that search"
    )
    # Phase alone takes frequencies of which the blur left nothing but noise as seriously as all
    # others: twice the error at most depths. Anything from 0.75 on is alike.
    amplitude_power: float = Field(
        default=0.8, ge=0, le=1, description="0 for phase alone, 1 for plain correlation"
    )
    # With amplitudes as weights there is little left to do for it.
    lowpass_sigma_px: float = Field(
        default=1.0, ge=0, le=20, description="the Gaussian whose transfer weighs the frequencies"
    )
    # Neighbours of the grid that differ by more are two surfaces, and nothing is put between them.
    agreement_px: float = Field(
        default=1.0, gt=0, le=100, description="what neighbours may differ by to be joined"
    )
    # What makes two thirds of the errors on the tuning planes smaller than sigma: the taper makes
    # neighbouring frequencies alike, and a difference in blur is not a difference in phase alone.
    sigma_factor: float = Field(
        default=3.0, gt=0, le=100, description="what the predicted deviation is multiplied by"
    )
    # Two pixels of the search.
    consistency_px: float = Field(
        default=4.0,
        ge=-1,
        le=256,
        description="the most both ways of that search may differ, -1 for no check",
    )
    # Leaves out windows that hold two surfaces: with 0.7 the error on scenes is five times as
    # large, at a twelfth more of the pixels.
    min_confidence: float = Field(
        default=0.9, ge=0, le=1, description="the confidence that a depth must reach"
    )


class _Peaks(NamedTuple):
    """What windows say, one each."""

    disparity_px: FloatArray
    sigma_px: FloatArray
    confidence: FloatArray


def estimate_phase(left: Image, right: Image, rig: Rig, options: PhaseOptions) -> DepthMap:
    """Place windows by block matching, and measure what is left by their phases."""
    job = Job.start("phase", left, right, rig, options)
    levels = scaled(job.views)
    if levels is None:
        return job.nothing(Flag.LOW_TEXTURE)
    start = _start(job, levels)
    if start is None:
        return job.nothing(Flag.BORDER)
    rows, cols = (np.arange(0, extent, options.stride_px) for extent in job.shape)
    peaks = _peaks(levels, start.disparity_px[np.ix_(rows, cols)], rows, cols, options)
    disparity_px, sigma_px, confidence = _between(peaks, job.shape, options)
    found = Found(disparity_px, start.disagreement_px, sigma_px, confidence)
    flags = flagged(job, levels[0], found, options.window_px, options.stride_px)
    return measured(job, flags, found)


def _start(job: Job, levels: tuple[FloatArray, FloatArray]) -> Matched | None:
    """Disparity of each pixel by block matching; None if the frame is too small for a window."""
    import cv2

    options = job.options
    window_px = max(options.coarse_window_px // _COARSE, 3) | 1
    rows, cols = (extent // _COARSE for extent in job.shape)
    if min(job.shape) < options.window_px or min(rows, cols) < window_px:
        return None
    tried = Hypotheses.of(job.rig.optics, job.range_m, float(_COARSE), job.shape[1])
    if tried is None:
        return None
    small = [
        np.asarray(
            cv2.resize(
                smoothed(view, options.coarse_sigma_px)[: rows * _COARSE, : cols * _COARSE],
                (cols, rows),
                interpolation=cv2.INTER_AREA,
            ),
            dtype=np.float64,
        )
        for view in levels
    ]
    coarse = Hypotheses(tried.disparity_px / _COARSE, 1.0)
    matched = block_match(small[0], small[1], coarse, window_px)
    # Pixels of the frame lie in those of the search; where it has an odd one more, the last again.
    places = [
        np.minimum(np.arange(extent) // _COARSE, last)
        for extent, last in zip(job.shape, (rows - 1, cols - 1), strict=True)
    ]
    return Matched(*(_COARSE * one[np.ix_(*places)] for one in matched))


def _peaks(
    levels: tuple[FloatArray, FloatArray],
    start_px: FloatArray,
    rows: NDArray[np.intp],
    cols: NDArray[np.intp],
    options: PhaseOptions,
) -> _Peaks:
    """Correlate the windows around the crossings of rows and columns."""
    left, right = _windows(levels, options.window_px)
    spectra = _Spectra.of(options)
    top, side = (axis.ravel() for axis in np.meshgrid(rows, cols, indexing="ij"))
    found = np.empty((len(_Peaks._fields), top.size))
    for start in range(0, top.size, _WINDOWS_AT_ONCE):
        part = slice(start, start + _WINDOWS_AT_ONCE)
        own = spectra.of_windows(left[top[part], side[part]])
        disparity_px = start_px.ravel()[part]
        # The second time they lie where the first one says.
        for _ in range(_PLACEMENTS):
            placed = np.rint(disparity_px * _PLACES).astype(np.intp)
            whole, back = -(-placed // _PLACES), -placed % _PLACES
            at = np.clip(side[part] - whole, 0, right.shape[2] - 1)
            cross = spectra.cross(own, right[back, top[part], at])
            lines = cross.sum(axis=1)
            shift = spectra.shift_px(lines)
            disparity_px = placed / _PLACES + shift
        found[:, part] = disparity_px, *spectra.certainty(cross, lines, shift)
    return _Peaks(*found.reshape(-1, rows.size, cols.size))


def _windows(
    levels: tuple[FloatArray, FloatArray], window_px: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Windows around each pixel of the left view, and of the right one moved by parts of a pixel.

    (rows, cols, window, window) and (parts, rows, cols, window, window), none of them copied. The
    views are mirrored at their borders.
    """
    rows, cols = levels[0].shape
    plane = Plane.around((rows, cols), 0, window_px)
    spectrum = plane.spectra(levels)[1]
    moved = [plane.image(spectrum * plane.moved(-part / _PLACES)) for part in range(_PLACES)]
    half = window_px // 2
    sides = [(half, window_px - half - 1)] * 2
    left, right = (
        np.lib.stride_tricks.sliding_window_view(
            np.pad(views, [(0, 0), *sides], mode="symmetric"), (window_px, window_px), axis=(1, 2)
        )
        for views in (levels[0][np.newaxis].astype(np.float32), np.stack(moved))
    )
    return left[0], right


class _Spectra(NamedTuple):
    """What turns windows into peaks: all that depends on the options alone."""

    taper: Single  # (window, window)
    weight: Single  # of a cross spectrum, (window, window / 2 + 1)
    turn_rad: FloatArray  # of a frequency along the rows, per pixel
    power: float

    @classmethod
    def of(cls, options: PhaseOptions) -> "_Spectra":
        size = options.window_px
        along, down = np.fft.rfftfreq(size), np.fft.fftfreq(size)[:, np.newaxis]
        hann = np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2
        # Each frequency stands for its negative too, but zero and the highest, which have no sign.
        twice = np.where((along == 0) | (along == 0.5), 0.0, 2.0)
        lowpass = np.exp(-2 * (np.pi * options.lowpass_sigma_px) ** 2 * (along**2 + down**2))
        return cls(
            taper=np.outer(hann, hann).astype(np.float32),
            weight=(twice * lowpass).astype(np.float32),
            turn_rad=np.asarray(2 * np.pi * along, dtype=np.float64),
            power=options.amplitude_power,
        )

    def of_windows(self, windows: Single) -> Spectrum:
        """Tapered, and less their means, or the taper itself would be what is alike."""
        from scipy.fft import rfft2  # importing scipy takes longer than the rest of d3s

        mean = np.einsum("kij,ij->k", windows, self.taper) / self.taper.sum()
        level = mean[:, np.newaxis, np.newaxis].astype(np.float32)
        return np.asarray(rfft2((windows - level) * self.taper, workers=thread_count()))

    def cross(self, left: Spectrum, right: Single) -> Spectrum:
        """Cross spectra of left spectra and right windows, as they are weighed."""
        product = left * np.conj(self.of_windows(right))
        size = np.maximum(np.abs(product), np.float32(_TINY))
        product *= self.weight * size ** np.float32(self.power - 1)
        return product

    def shift_px(self, lines: Spectrum) -> FloatArray:
        """How far the left windows lie to the right, from cross spectra summed over the rows."""
        tried = np.arange(-_FARTHEST_PX, _FARTHEST_PX + _STEP_PX / 2, _STEP_PX)
        waves = np.exp(1j * np.outer(self.turn_rad, tried)).astype(np.complex64)
        shift = np.asarray(tried[(lines @ waves).real.argmax(axis=1)], dtype=np.float64)
        for _ in range(_NEWTON_STEPS):
            _, slope, bend = self._height(lines, shift)
            step = np.where(bend < 0, -slope / np.minimum(bend, -_TINY), 0.0)
            shift += np.clip(step, -_STEP_PX, _STEP_PX)
        return shift

    def certainty(
        self, cross: Spectrum, lines: Spectrum, shift: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Deviation of a shift, and the share of the amplitudes that agree with it."""
        height, _, bend = self._height(lines, shift)
        turn = np.exp(1j * shift[:, np.newaxis] * self.turn_rad).astype(np.complex64)
        noise = (cross * turn[:, np.newaxis]).imag
        spread = np.einsum("kij,kij,j->k", noise, noise, self.turn_rad**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            agreement = height / np.abs(cross).sum(axis=(1, 2))
            return np.sqrt(spread) / np.abs(bend), agreement

    def _height(
        self, lines: Spectrum, shift: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Correlation at a shift, its slope, and its bend."""
        turned = lines * np.exp(1j * shift[:, np.newaxis] * self.turn_rad)
        return (
            turned.real.sum(axis=1),
            -(turned.imag @ self.turn_rad),
            -(turned.real @ self.turn_rad**2),
        )


def _between(peaks: _Peaks, shape: tuple[int, int], options: PhaseOptions) -> _Peaks:
    """Each pixel from the four windows around it: linear where they agree, else the nearest."""
    places = [np.arange(extent) / options.stride_px for extent in shape]
    lasts = [extent - 1 for extent in peaks.disparity_px.shape]
    low = [np.minimum(p.astype(np.intp), n) for p, n in zip(places, lasts, strict=True)]
    high = [np.minimum(i + 1, n) for i, n in zip(low, lasts, strict=True)]
    near = np.ix_(
        *(np.minimum(np.rint(p).astype(np.intp), n) for p, n in zip(places, lasts, strict=True))
    )
    down, along = (np.minimum(p - i, 1.0) for p, i in zip(places, low, strict=True))
    corners = [
        peaks.disparity_px[np.ix_(i, j)] for i in (low[0], high[0]) for j in (low[1], high[1])
    ]
    upper, lower = (
        first + along * (second - first) for first, second in (corners[:2], corners[2:])
    )
    linear = upper + down[:, np.newaxis] * (lower - upper)
    agree = np.ptp(corners, axis=0) <= options.agreement_px
    return _Peaks(
        np.where(agree, linear, peaks.disparity_px[near]),
        peaks.sigma_px[near],
        peaks.confidence[near],
    )
