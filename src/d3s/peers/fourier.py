"""Whole views in the frequency domain, where a blur and a shift are a product."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.runtime.parallel import thread_count
from d3s.types import FloatArray

Spectrum = NDArray[np.complex64]
Single = NDArray[np.float32]


class Plane(NamedTuple):
    """Frequencies of a frame that is continued on all sides.

    The frame is mirrored at its borders and fades to its mean from there on, so that what a shift
    brings in from the other side is nothing.
    """

    shape: tuple[int, int]
    margin: tuple[int, int]  # rows and columns added to each side, at the least
    size: tuple[int, int]  # with the margins, such that transforms are fast

    @classmethod
    def around(cls, shape: tuple[int, int], down_px: float, along_px: float) -> "Plane":
        """A plane for blurs that reach so far down, and shifts and blurs so far along the rows."""
        from scipy.fft import next_fast_len  # importing scipy takes longer than the rest of d3s

        margin = int(np.ceil(down_px)), int(np.ceil(along_px))
        rows, cols = (n + 2 * m for n, m in zip(shape, margin, strict=True))
        size = next_fast_len(rows, real=True), next_fast_len(cols, real=True)
        return cls(shape, margin, size)

    @property
    def along(self) -> FloatArray:
        """Frequencies along the rows, in cycles/px, (1, n)."""
        return np.asarray(np.fft.rfftfreq(self.size[1])[np.newaxis, :], dtype=np.float64)

    @property
    def radius(self) -> FloatArray:
        """Frequencies without their direction, in cycles/px, (m, n)."""
        down = np.fft.fftfreq(self.size[0])[:, np.newaxis]
        return np.asarray(np.hypot(down, self.along), dtype=np.float64)

    def spectra(self, views: tuple[FloatArray, FloatArray]) -> tuple[Spectrum, Spectrum]:
        """Of both views, less their common mean: each less its own would differ by a level."""
        mean = 0.5 * (float(views[0].mean()) + float(views[1].mean()))
        return self._spectrum(views[0] - mean), self._spectrum(views[1] - mean)

    def _spectrum(self, view: FloatArray) -> Spectrum:
        from scipy.fft import rfft2

        sides = [
            (margin, size - extent - margin)
            for extent, margin, size in zip(self.shape, self.margin, self.size, strict=True)
        ]
        wide = np.pad(view, sides, mode="symmetric")
        down, along = (_fade(extent, *side) for extent, side in zip(self.shape, sides, strict=True))
        wide *= down[:, np.newaxis] * along
        return np.asarray(rfft2(wide.astype(np.float32), workers=thread_count()))

    def moved(self, shift_px: float) -> Spectrum:
        """The factor that moves a view to the right."""
        return np.asarray(np.exp(-2j * np.pi * shift_px * self.along), dtype=np.complex64)

    def image(self, spectrum: Spectrum) -> Single:
        """The frame of a spectrum."""
        from scipy.fft import irfft2

        wide = irfft2(spectrum, s=self.size, workers=thread_count())
        (top, side), (rows, cols) = self.margin, self.shape
        return np.ascontiguousarray(wide[top : top + rows, side : side + cols])


def _fade(extent: int, before: int, after: int) -> FloatArray:
    """One in the frame and on to zero at the ends, smoothly."""
    rise = 0.5 - 0.5 * np.cos(np.pi * (np.arange(before) + 0.5) / max(before, 1))
    fall = 0.5 + 0.5 * np.cos(np.pi * (np.arange(after) + 0.5) / max(after, 1))
    return np.concatenate([rise, np.ones(extent), fall])
