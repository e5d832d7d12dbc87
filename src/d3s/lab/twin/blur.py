"""Defocus blur of sharp layers, by transfer functions in the frequency domain."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import SceneError
from d3s.lab.twin.geometry import Affine, Window
from d3s.lab.twin.point_spread import Psf
from d3s.optics.lens import Lens
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows, thread_count
from d3s.types import FloatArray, Image

_Complex = NDArray[np.complex64]

# The FFT is periodic: a window fades into grey at its ends over this many pixels, so that no jump
# causes ringing.
_FADE_PX = 16
# Margin beyond the blur for the tail of a sub-pixel shift.
_TAIL_PX = 8

# Steps of the blur radius over a tilted surface. Between two radii the blurs are mixed so that the
# second moment is right; the remaining error is below 0.6 % of the contrast at any frequency.
_RADIUS_STEP_PX = 0.5
_RADIUS_STEP_SHARE = 0.1
_SAME_RADIUS_PX = 0.01

_HIGHEST_FREQUENCY = np.sqrt(0.5)  # cycles/px, in the corner of the spectrum


def margin_px(radius_px: float) -> int:
    """Margin around a frame, in pixels, that makes the blur right within the frame."""
    # Twice the radius is four sigma of a Gaussian. The tails beyond, also of diffraction, see the
    # mean of the scene.
    return int(np.ceil(2 * abs(radius_px))) + _TAIL_PX + _FADE_PX


def check_room(radius_px: float, frame: Window) -> None:
    """Raise a `SceneError` if a frame is smaller than one blurred point."""
    least = 2 * int(np.ceil(abs(radius_px))) + 1
    if min(frame.shape) < least:
        raise SceneError(
            f"shape={frame.shape} is too small for the blur: a point spreads over {least} px. Make "
            "it larger, or move the scene nearer to the focus distance."
        )


@lru_cache(maxsize=256)
def _otf_table(radius_px: float, lens: Lens, psf: Psf) -> Image:
    """Transfer function of a blur, evenly sampled from 0 to the corner of the spectrum.

    Linear interpolation between the samples has an error below 1e-4. A pinhole is sharp, without
    diffraction.
    """
    steps = int(256 * (8 + abs(radius_px)))
    frequency = np.linspace(0.0, _HIGHEST_FREQUENCY, steps + 1)
    table = psf(frequency, radius_px, lens) if lens.aperture_radius_m else np.ones_like(frequency)
    # Repeat the last sample: interpolation at the corner reads one beyond it.
    rounded = np.append(table, table[-1]).astype(np.float32)
    rounded.flags.writeable = False
    return rounded


@dataclass(frozen=True, kw_only=True, eq=False)
class Canvas:
    """A sharp layer on a window: light times mask, and the mask (None: opaque everywhere)."""

    window: Window
    colour: Image
    alpha: Image | None = None

    @cached_property
    def spectrum(self) -> _Complex:
        """Spectrum of the layer with faded ends; of colour + i alpha if there is a mask."""
        return _transform(*_faded_layer(self.colour, self.alpha))


def _faded_layer(colour: Image, alpha: Image | None) -> tuple[Image, Image | None]:
    # A masked layer fades to 0, since grey would extend the layer. An opaque layer fades to about
    # its mean, which keeps rounding errors small.
    if alpha is None:
        return _faded(colour, float(colour[::8, ::8].mean())), None
    return _faded(colour, 0.0), _faded(alpha, 0.0)


def _transform(colour: Image, alpha: Image | None) -> _Complex:
    from scipy import fft

    if alpha is None:
        return np.asarray(fft.rfft2(colour, workers=thread_count()))
    packed = np.empty(colour.shape, dtype=np.complex64)
    packed.real = colour
    packed.imag = alpha
    return np.asarray(fft.fft2(packed, overwrite_x=True, workers=thread_count()))


class Sheet(NamedTuple):
    """A layer as one camera sees it: pixel (x, y) reads the canvas at (x, y) + shift."""

    canvas: Canvas
    radius_px: Affine  # signed blur radius over the pixels of the view
    inverse_depth: Affine | Image  # 1/m over the pixels of the view, or an array on the canvas
    shift_px: tuple[float, float] = (0.0, 0.0)  # (x, y)


class BlurredLayer(NamedTuple):
    """A blurred layer, on the part of the frame that it reaches."""

    window: Window
    colour: Image
    alpha: Image | None


def blur_sheet(sheet: Sheet, frame: Window, lens: Lens, psf: Psf) -> BlurredLayer:
    """Blur and shift a sheet, on the pixels of `frame`."""
    canvas = sheet.canvas
    whole = (int(np.floor(sheet.shift_px[0])), int(np.floor(sheet.shift_px[1])))
    part = (sheet.shift_px[0] - whole[0], sheet.shift_px[1] - whole[1])
    if sheet.radius_px.is_constant:
        table = _otf_table(sheet.radius_px.constant, lens, psf)
        filtered = _filtered(canvas.spectrum, canvas.window.shape, table, part)
    else:
        filtered = _filtered_by_slices(sheet, lens, psf)
    window = Window(
        canvas.window.row - whole[1], canvas.window.col - whole[0], *canvas.window.shape
    )
    return _unpacked(filtered, window, window.common(frame), canvas.alpha is not None)


def _unpacked(filtered: _Complex, window: Window, kept: Window, has_alpha: bool) -> BlurredLayer:
    """Inverse transform on the pixels to keep; other rows are dropped between the two passes."""
    from scipy import fft

    rows, cols = kept.within(window)
    half = fft.ifft(filtered, axis=0, overwrite_x=True, workers=thread_count())[rows]
    if not has_alpha:
        image = fft.irfft(half, n=window.cols, axis=1, workers=thread_count())
        return BlurredLayer(kept, image[:, cols], None)
    packed = fft.ifft(half, axis=1, overwrite_x=True, workers=thread_count())[:, cols]
    return BlurredLayer(kept, packed.real, packed.imag)


def _filtered(
    spectrum: _Complex, shape: tuple[int, int], table: Image, shift_px: tuple[float, float]
) -> _Complex:
    """Spectrum of an image shifted by (x, y) and blurred."""
    rows, cols = shape
    x = np.fft.rfftfreq(cols) if spectrum.shape[1] < cols else np.fft.fftfreq(cols)
    y = np.fft.fftfreq(rows)
    out = np.empty_like(spectrum)
    run_over_rows(
        _filter_rows,
        rows // 2 + 1,
        spectrum,
        table,
        np.float32((table.size - 2) / _HIGHEST_FREQUENCY),
        np.square(y).astype(np.float32),
        np.square(x).astype(np.float32),
        _phase(y, shift_px[1]),
        _phase(x, shift_px[0]),
        any(shift_px),
        out,
    )
    return out


def _phase(frequency: NDArray[np.floating[Any]], shift_px: float) -> _Complex:
    phase = np.exp(2j * np.pi * frequency * shift_px)
    # At Nyquist both signs of the frequency coincide: take the mean of both phases.
    phase[np.abs(frequency) == 0.5] = np.cos(np.pi * shift_px)
    return np.asarray(phase, dtype=np.complex64)


def _filtered_by_slices(sheet: Sheet, lens: Lens, psf: Psf) -> _Complex:
    """Spectrum of a sheet with varying blur: each point spreads with the blur of its own depth.

    The light is divided among slices of constant blur, linearly in the squared radius.
    """
    window, canvas = sheet.canvas.window, sheet.canvas
    # A canvas with slices is never shared between views: its pixels are pixels of the view.
    square = np.square(
        sheet.radius_px.over(window.row_numbers, window.col_numbers), dtype=np.float64
    ).astype(np.float32)
    nodes = radius_nodes(float(np.sqrt(square.min())), float(np.sqrt(square.max())))
    # Fade once, before the light is divided: fading each slice would add its own grey.
    colour, mask = _faded_layer(canvas.colour, canvas.alpha)
    total: _Complex | None = None
    for i, node in enumerate(nodes):
        share = _hat(square, nodes[i - 1 : i] ** 2, node**2, nodes[i + 1 : i + 2] ** 2)
        part = _transform(share * colour, None if mask is None else share * mask)
        part = _filtered(part, window.shape, _otf_table(float(node), lens, psf), (0.0, 0.0))
        total = part if total is None else np.add(total, part, out=total)
    if total is None:
        raise RuntimeError("a sheet has at least one slice")
    return total


def radius_nodes(smallest: float, largest: float) -> FloatArray:
    """Radii in px from the smallest to the largest, dense enough for linear interpolation."""
    if largest - smallest < _SAME_RADIUS_PX:
        return np.array([0.5 * (smallest + largest)])
    nodes = [smallest]
    while nodes[-1] < largest:
        nodes.append(nodes[-1] + max(_RADIUS_STEP_PX, _RADIUS_STEP_SHARE * nodes[-1]))
    # Scale the steps so that the last radius is the largest one.
    return smallest + (np.array(nodes) - smallest) * (largest - smallest) / (nodes[-1] - smallest)


def _hat(values: Image, below: FloatArray, here: float, above: FloatArray) -> Image:
    """Hat function: 1 at a node, 0 at its neighbours; constant 1 beyond the first and last node."""
    share = np.ones_like(values)
    if below.size:
        np.minimum(share, (values - np.float32(below[0])) / np.float32(here - below[0]), out=share)
    if above.size:
        np.minimum(share, (np.float32(above[0]) - values) / np.float32(above[0] - here), out=share)
    return np.maximum(share, np.float32(0.0), out=share)


def _faded(image: Image, ground: float) -> Image:
    """Image whose outermost pixels fade to `ground`, so that its ends match."""
    rows, cols = image.shape
    faded = image - np.float32(ground)
    faded *= _ramp(rows)[:, np.newaxis] * _ramp(cols)
    faded += np.float32(ground)
    return faded


@lru_cache(maxsize=64)
def _ramp(size: int) -> Image:
    width = min(_FADE_PX, size // 4)
    ramp = np.ones(size, dtype=np.float32)
    rise = np.sin(0.5 * np.pi * (np.arange(width) + 0.5) / max(width, 1)) ** 2
    ramp[:width] = rise
    ramp[size - width :] = rise[::-1]
    return ramp


@compiled
def _filter_rows(
    start: int,
    stop: int,
    spectrum: _Complex,
    table: Image,
    steps_per_frequency: np.float32,
    y2: Image,
    x2: Image,
    phase_y: _Complex,
    phase_x: _Complex,
    is_shifted: bool,
    out: _Complex,
) -> None:
    """Multiply rows `start` to `stop` of a spectrum and their mirror rows, which share the gain."""
    rows, cols = spectrum.shape
    gain = np.empty(cols, dtype=np.float32)
    for i in range(start, stop):
        for j in range(cols):
            place = steps_per_frequency * np.sqrt(y2[i] + x2[j])
            step = int(place)
            below = table[step]
            gain[j] = below + (table[step + 1] - below) * (place - np.float32(step))
        for k in (i, rows - i):
            if k == rows or (k == i and i > rows - i) or (k != i and k <= i):
                continue
            if is_shifted:
                turn = phase_y[k]
                for j in range(cols):
                    out[k, j] = spectrum[k, j] * (gain[j] * (turn * phase_x[j]))
            else:
                for j in range(cols):
                    out[k, j] = spectrum[k, j] * gain[j]
