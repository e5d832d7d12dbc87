"""Blur and subpixel shift of whole views in the frequency domain."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.peers.common import Float32Array, NormalisedPair
from d3s.runtime.parallel import thread_count
from d3s.types import FloatArray

Spectrum = NDArray[np.complex64]
"""Half spectrum of a real image, as `scipy.fft.rfft2` returns it."""


class PaddedFft(NamedTuple):
    """Fourier transform of frames with a padded margin.

    The margin mirrors the frame and fades to the mean, so that a shift or blur does not wrap
    content around from the opposite side.
    """

    shape: tuple[int, int]  # rows and columns of the frame
    margin: tuple[int, int]  # rows and columns added before the frame; after it, at least as many
    size: tuple[int, int]  # padded rows and columns, rounded up to a fast transform length

    @classmethod
    def with_margin(
        cls, shape: tuple[int, int], margin_y_px: float, margin_x_px: float
    ) -> "PaddedFft":
        """Transform with a margin on each side: the widest blur; along x plus the largest shift."""
        from scipy.fft import next_fast_len  # importing scipy takes longer than the rest of d3s

        margin = int(np.ceil(margin_y_px)), int(np.ceil(margin_x_px))
        rows, cols = (n + 2 * m for n, m in zip(shape, margin, strict=True))
        size = next_fast_len(rows, real=True), next_fast_len(cols, real=True)
        return cls(shape, margin, size)

    @property
    def frequency_x(self) -> FloatArray:
        """Horizontal frequencies in cycles/px, (1, n)."""
        return np.asarray(np.fft.rfftfreq(self.size[1])[np.newaxis, :], dtype=np.float64)

    @property
    def frequency_radius(self) -> FloatArray:
        """Radial frequencies in cycles/px, (m, n)."""
        frequency_y = np.fft.fftfreq(self.size[0])[:, np.newaxis]
        return np.asarray(np.hypot(frequency_y, self.frequency_x), dtype=np.float64)

    def spectra(self, views: NormalisedPair) -> tuple[Spectrum, Spectrum]:
        """Spectra of both views minus their common mean, which keeps a difference in level."""
        mean = 0.5 * (float(views[0].mean()) + float(views[1].mean()))
        return self._spectrum(views[0] - mean), self._spectrum(views[1] - mean)

    def _spectrum(self, view: FloatArray) -> Spectrum:
        from scipy.fft import rfft2

        sides = [
            (margin, size - extent - margin)
            for extent, margin, size in zip(self.shape, self.margin, self.size, strict=True)
        ]
        padded = np.pad(view, sides, mode="symmetric")
        fade_y, fade_x = (
            _fade(extent, *side) for extent, side in zip(self.shape, sides, strict=True)
        )
        padded *= fade_y[:, np.newaxis] * fade_x
        return np.asarray(rfft2(padded.astype(np.float32), workers=thread_count()))

    def shift_factor(self, shift_px: float) -> Spectrum:
        """Factor on a spectrum that shifts its image to the right by `shift_px`, (1, n)."""
        return np.asarray(np.exp(-2j * np.pi * shift_px * self.frequency_x), dtype=np.complex64)

    def image(self, spectrum: Spectrum) -> Float32Array:
        """Inverse transform, cut to the frame (rows, cols)."""
        from scipy.fft import irfft2

        padded = irfft2(spectrum, s=self.size, workers=thread_count())
        (top, side), (rows, cols) = self.margin, self.shape
        return np.ascontiguousarray(padded[top : top + rows, side : side + cols])


def _fade(extent: int, before: int, after: int) -> FloatArray:
    """Weight of 1 over the frame and a raised cosine down to 0 over the margins."""
    rise = 0.5 - 0.5 * np.cos(np.pi * (np.arange(before) + 0.5) / max(before, 1))
    fall = 0.5 + 0.5 * np.cos(np.pi * (np.arange(after) + 0.5) / max(after, 1))
    return np.concatenate([rise, np.ones(extent), fall])
