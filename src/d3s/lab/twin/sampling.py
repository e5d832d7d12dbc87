"""Pixels of a textured surface, seen through a perfect lens: its texels, resampled and shaded.

A pixel integrates light over its square. Frequencies above the Nyquist frequency of the pixels are
removed, so that a view can be shifted by any fraction of a pixel without an error. Rasters are read
with a margin, and never wrapped.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.geometry import Window
from d3s.runtime.compile import compiled
from d3s.runtime.parallel import run_over_rows
from d3s.types import FloatArray, Image

# Margin of a raster in texels: the cubic kernel of four texels, and rounding.
_RASTER_MARGIN = 4

# Smallest number of texels per pixel, along the axis on which the pixel covers least; up to twice
# as many are used. With fewer, the raster would lack detail that the pixels resolve.
_TEXELS_PER_PIXEL = 1.2

_STEPS_PER_PIXEL = 2048
_ROWS_AT_ONCE = 256


class _PixelKernel(NamedTuple):
    """Kernel of a pixel along one axis: the width of the pixel, low-passed at Nyquist.

    A box of one pixel convolved with a sinc of a `cutoff` in units of the Nyquist frequency, under
    a Kaiser window of `reach_px` to each side.
    """

    reach_px: int
    cutoff: float
    beta: float

    def weights(self, offset_px: FloatArray) -> FloatArray:
        """Weight of light at an offset from the pixel centre, in pixels."""
        from scipy.special import sici

        upper, _ = sici(np.pi * self.cutoff * (offset_px + 0.5))
        lower, _ = sici(np.pi * self.cutoff * (offset_px - 0.5))
        inside = np.clip(1.0 - (offset_px / self.reach_px) ** 2, 0.0, None)
        window = np.i0(self.beta * np.sqrt(inside)) / np.i0(self.beta)
        return np.where(np.abs(offset_px) < self.reach_px, (upper - lower) / np.pi * window, 0.0)


# For a plane that both views share, shifted: aliasing is then equal in both views.
_SHARED = _PixelKernel(reach_px=4, cutoff=1.0, beta=6.0)
# For views sampled separately, where aliasing would differ and look like a disparity. At 0.4
# cycles/px it passes as much as the other kernel, 7 % at 0.55, nothing from 0.6 on.
_SEPARATE = _PixelKernel(reach_px=6, cutoff=0.92, beta=5.0)

_REACH_PX = max(_SHARED.reach_px, _SEPARATE.reach_px)
DECIMATION_MARGIN_PX = _SEPARATE.reach_px
"""Pixels around the frame that `decimate` needs samples of."""


class Raster(NamedTuple):
    """Part of a texture at one resolution.

    Texel (i, j) is centred at (x, y) = (first_col + j, first_row + i) times the pitch.
    """

    values: Image
    first_row: int
    first_col: int
    pitch_m: float


_MID_GREY = 0.5


class Surface(NamedTuple):
    """A texture with a physical size, at any resolution."""

    raster: Callable[[int, Window], Raster]
    """Texels at the pitch base_pitch_m * 2**level, numbered from the origin of the surface."""
    base_pitch_m: float  # of the finest raster
    angle_rad: float  # rotation on the surface, clockwise
    contrast: float  # factor on the difference from mid grey
    grey: float  # that mid grey becomes
    shading: float  # amplitude of the slow shading
    seed: int  # of the shading


def paint(surface: Surface, matrix: FloatArray, window: Window) -> Image:
    """Pixels of a window that sees a surface through a perfect lens, linear, full scale 1."""
    on_surface = matrix
    if surface.angle_rad:
        cos, sin = np.cos(surface.angle_rad), np.sin(surface.angle_rad)
        matrix = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]]) @ matrix
    finest_m = _finest_footprint(matrix, window)
    rasters = _rasters_for(surface, matrix, window, finest_m)
    is_scaling = np.count_nonzero(matrix - np.diag(np.diag(matrix))) == np.count_nonzero(
        matrix[:2, 2]
    )
    # A magnified texture, with texels larger than pixels, is interpolated.
    is_fine = rasters[0].pitch_m <= finest_m / matrix[2, 2]
    if is_scaling and is_fine and len(rasters) == 1:
        pixels = _sample_scaled(rasters[0], matrix, window)
    else:
        pixels = _sample_projected(rasters, matrix, window, finest_m)
    if surface.contrast != 1 or surface.grey != _MID_GREY:
        difference = np.float32(surface.contrast) * (pixels - np.float32(_MID_GREY))
        pixels = np.float32(surface.grey) + difference
    if surface.shading:
        pixels = pixels + _shading(on_surface, window, surface.shading, surface.seed)
    return pixels


def _rasters_for(
    surface: Surface, matrix: FloatArray, window: Window, finest_m: float
) -> list[Raster]:
    """Rasters that a window needs, each covering the part of the window that reads it."""
    reach = _REACH_PX + 1
    wide = window.grown(reach, reach)
    ends = wide.col + wide.cols - 1, wide.row + wide.rows - 1
    places = ((wide.col, wide.row), (ends[0], wide.row), ends, (wide.col, ends[1]))
    corners = np.array([(x, y, 1.0) for x, y in places])
    w = corners @ matrix[2]
    largest = finest_m / _TEXELS_PER_PIXEL
    first, last = (
        max(0, int(np.floor(np.log2(largest / end / surface.base_pitch_m) + 1e-9)))
        for end in (w.max(), w.min())
    )
    rasters = []
    for level in range(first, last + 1):
        pitch = surface.base_pitch_m * 2.0**level
        far = largest / pitch * 1.01 if level > first else np.inf
        near = largest / (2 * pitch) * 0.99 if level < last else 0.0
        part = _clipped(_clipped(corners, matrix[2], -near), -matrix[2], far)
        if len(part):
            texels = part @ matrix[:2].T / (part @ matrix[2])[:, np.newaxis] / pitch
            col, row = np.floor(texels.min(axis=0)).astype(int).tolist()
            last_col, last_row = np.ceil(texels.max(axis=0)).astype(int).tolist()
            seen = Window(row, col, last_row - row + 1, last_col - col + 1)
            rasters.append(surface.raster(level, seen.grown(_RASTER_MARGIN, _RASTER_MARGIN)))
    return rasters


def _clipped(polygon: FloatArray, line: FloatArray, offset: float) -> FloatArray:
    """Part of a convex polygon of points (x, y, 1) with line . point + offset >= 0."""
    if not np.isfinite(offset) or not len(polygon):
        return polygon
    height = polygon @ line + offset
    kept = []
    for i, (point, here) in enumerate(zip(polygon, height, strict=True)):
        before = height[i - 1]
        if (here >= 0) != (before >= 0):
            kept.append(polygon[i - 1] + (point - polygon[i - 1]) * before / (before - here))
        if here >= 0:
            kept.append(point)
    return np.array(kept)


# Separates the random numbers of the shading from those of the pattern with the same seed.
_SHADING_STREAM = int.from_bytes(b"shading")
_WAVES = 3
_SHORTEST_M, _LONGEST_M = 0.1, 0.4  # lengths of the waves on the surface


def _shading(matrix: FloatArray, window: Window, amplitude: float, seed: int) -> Image:
    """Slow variation of the light over a window, to be added to its pixels.

    The sum of three waves in random directions, 0.1 to 0.4 m long on the surface. Both views see
    the same shading at the same point.
    """
    rng = np.random.default_rng(np.random.SeedSequence((seed, _SHADING_STREAM)))
    length_m = np.exp(rng.uniform(np.log(_SHORTEST_M), np.log(_LONGEST_M), _WAVES))
    direction, phase = rng.uniform(0, 2 * np.pi, (2, _WAVES))
    share = rng.dirichlet(np.ones(_WAVES))
    col = np.arange(window.col, window.col + window.cols)
    row = np.arange(window.row, window.row + window.rows)[:, np.newaxis]
    x, y, w = (line[0] * col + line[1] * row + line[2] for line in matrix)
    total = np.zeros(window.shape)
    for k in range(_WAVES):
        along_m = (np.cos(direction[k]) * x + np.sin(direction[k]) * y) / w
        total += share[k] * np.cos(2 * np.pi * along_m / length_m[k] + phase[k])
    return (amplitude * total).astype(np.float32)


@cache
def _kernel_table() -> FloatArray:
    """Shared kernel, sampled so that linear interpolation has an error below 1e-6."""
    steps = np.arange(_SHARED.reach_px * _STEPS_PER_PIXEL + 2)
    return _SHARED.weights(steps / _STEPS_PER_PIXEL)


def _sample_scaled(raster: Raster, matrix: FloatArray, window: Window) -> Image:
    """Pixels of a window, for a homography (3, 3) to metres that scales and shifts each axis."""
    scale_x, shift_x = matrix[0, 0] / matrix[2, 2], matrix[0, 2] / matrix[2, 2]
    scale_y, shift_y = matrix[1, 1] / matrix[2, 2], matrix[1, 2] / matrix[2, 2]
    pitch = raster.pitch_m
    rows = (scale_y * window.row_numbers + shift_y) / pitch - raster.first_row
    cols = (scale_x * window.col_numbers + shift_x) / pitch - raster.first_col
    pixels = np.empty(window.shape, dtype=np.float32)
    down, across = _axis_taps(rows, scale_y / pitch), _axis_taps(cols, scale_x / pitch)
    _resample(raster.values, down, across, pixels)
    return pixels


def _sample_projected(
    rasters: list[Raster], matrix: FloatArray, window: Window, finest_m: float
) -> Image:
    """Pixels of a window, for any homography from pixels to metres.

    Each pixel is read from the coarsest raster that is fine enough, at as many points as the pixel
    is long in texels.

    `finest_m` is the smallest footprint of a pixel, from `_finest_footprint`.
    """
    pixels = np.empty(window.shape, dtype=np.float32)
    for first in range(0, window.rows, _ROWS_AT_ONCE):  # to limit the memory for samples
        part = window._replace(row=window.row + first, rows=min(_ROWS_AT_ONCE, window.rows - first))
        _sample_part(rasters, matrix, part, finest_m, pixels[first : first + part.rows])
    return pixels


def _finest_footprint(matrix: FloatArray, window: Window) -> float:
    """Smallest extent of a pixel on the surface in any direction, in metres, times w.

    w is the last row of the homography at the pixel. Over a plane the product is constant to a few
    percent.
    """
    return min(float(shortest * w) for _, shortest, w in _footprints(matrix, window))


def _footprints(
    matrix: FloatArray, window: Window
) -> Iterator[tuple[tuple[float, float], float, float]]:
    """Footprints of nine pixels: lengths in m of a step in x and in y, shortest length, w."""
    for row in (window.row, window.row + window.rows / 2, window.row + window.rows):
        for col in (window.col, window.col + window.cols / 2, window.col + window.cols):
            x, y, w = matrix @ (col, row, 1.0)
            place = np.array([x, y]) / w
            jacobian = (matrix[:2, :2] - place[:, np.newaxis] * matrix[2, :2]) / w
            lengths = np.hypot(*jacobian)
            shortest = np.linalg.svd(jacobian, compute_uv=False)[-1]
            yield (float(lengths[0]), float(lengths[1])), float(shortest), float(w)


def _sample_part(
    rasters: list[Raster], matrix: FloatArray, window: Window, finest_m: float, pixels: Image
) -> None:
    longest = np.max([np.multiply(step, w) for step, _, w in _footprints(matrix, window)], axis=0)
    many_x, many_y = (max(2, int(np.ceil(2 * length / finest_m))) for length in longest)
    reach = _SEPARATE.reach_px
    rows, cols = many_y * (window.rows + 2 * reach), many_x * (window.cols + 2 * reach)
    samples = np.empty((rows, cols), dtype=np.float32)
    lattice = _SampleLattice(
        window.col - reach - 0.5 + 0.5 / many_x,
        window.row - reach - 0.5 + 0.5 / many_y,
        1 / many_x,
        1 / many_y,
    )
    fine_first = sorted(rasters, key=lambda raster: raster.pitch_m)
    switches = [finest_m / _TEXELS_PER_PIXEL / raster.pitch_m for raster in fine_first[1:]]
    for raster, (highest, lowest) in zip(
        fine_first, pairwise([np.inf, *switches, -np.inf]), strict=True
    ):
        run_over_rows(
            _sample_cubic, rows, raster, matrix, lattice, float(lowest), float(highest), samples
        )
    # The first sample lies the reach of the kernel plus 1/2 px before the first pixel.
    down, across = _decimation_taps(many_y, window.rows), _decimation_taps(many_x, window.cols)
    _resample(samples, down, across, pixels)


def decimate(samples: Image, many: int, shift_px: float = 0.0) -> Image:
    """Pixels from light that was sampled more finely, low-passed like the views of the twin.

    `samples` has (rows, cols) times `many`, with a margin of `DECIMATION_MARGIN_PX` pixels. Each
    pixel lies `shift_px` to the right of its samples, -0.5 to 0.5.
    """
    rows, cols = (side // many - 2 * DECIMATION_MARGIN_PX for side in samples.shape)
    pixels = np.empty((rows, cols), dtype=np.float32)
    down, across = _decimation_taps(many, rows), _decimation_taps(many, cols, shift_px)
    _resample(np.ascontiguousarray(samples, dtype=np.float32), down, across, pixels)
    return pixels


def sample_points(raster: Raster, matrix: FloatArray, window: Window) -> Image:
    """Values of a raster at the centres of pixels, interpolated without a low-pass; for masks."""
    values = np.empty(window.shape, dtype=np.float32)
    lattice = _SampleLattice(float(window.col), float(window.row), 1.0, 1.0)
    run_over_rows(_sample_cubic, window.rows, raster, matrix, lattice, -np.inf, np.inf, values)
    return values


class _Taps(NamedTuple):
    """Texels that each pixel reads along one axis."""

    first: NDArray[np.int64]  # (pixels,) first texel
    weights: Image  # (pixels, taps)


def _axis_taps(centre: FloatArray, width: float) -> _Taps:
    """Taps of pixels with a centre and a width in texels."""
    reach = _SHARED.reach_px * abs(width)
    first = np.ceil(centre - reach).astype(np.int64)
    # A multiple of 4, for the unrolled loops; the last taps may have weight 0.
    taps = 4 * (int(np.floor(2 * reach)) // 4 + 1)
    table = _kernel_table()
    away = np.abs(((first - centre)[:, np.newaxis] + np.arange(taps)) * (1 / width))
    place = np.minimum(away * _STEPS_PER_PIXEL, table.size - 1.001)
    step = place.astype(np.int64)
    weights = table[step] + (table[step + 1] - table[step]) * (place - step)
    total = np.cumsum(weights, axis=1)[:, -1:]
    return _Taps(first, (weights / total).astype(np.float32))


def _decimation_taps(many: int, size: int, shift_px: float = 0.0) -> _Taps:
    """Taps of `size` pixels with `many` samples each, low-passed."""
    begin = (many + 1) // 2
    offset = (np.arange(2 * _SEPARATE.reach_px * many) + begin + 0.5) / many
    weights = _SEPARATE.weights(offset - _SEPARATE.reach_px - 0.5 - shift_px)
    taps = (weights / weights.sum()).astype(np.float32)
    return _Taps(many * np.arange(size) + begin, np.tile(taps, (size, 1)))


def _resample(texels: Image, down: _Taps, across: _Taps, pixels: Image) -> None:
    """Fill pixels from texels, first along the columns, then along the rows."""
    narrow = np.empty((pixels.shape[0], texels.shape[1]), dtype=np.float32)
    run_over_rows(_resample_rows, pixels.shape[0], texels, *down, narrow)
    run_over_rows(_resample_cols, pixels.shape[0], narrow, *across, pixels)


@compiled
def _resample_rows(
    start: int, stop: int, raster: Image, first: NDArray[np.int64], weights: Image, out: Image
) -> None:
    # Four taps at a time: each output row is read and written a quarter as often.
    cols = raster.shape[1]
    for i in range(start, stop):
        for j in range(cols):
            out[i, j] = 0.0
        for t in range(0, weights.shape[1], 4):
            row = first[i] + t
            row_0, row_1 = raster[row], raster[row + 1]
            row_2, row_3 = raster[row + 2], raster[row + 3]
            w_0, w_1 = weights[i, t], weights[i, t + 1]
            w_2, w_3 = weights[i, t + 2], weights[i, t + 3]
            for j in range(cols):
                out[i, j] += (w_0 * row_0[j] + w_1 * row_1[j]) + (w_2 * row_2[j] + w_3 * row_3[j])


@compiled
def _resample_cols(
    start: int, stop: int, raster: Image, first: NDArray[np.int64], weights: Image, out: Image
) -> None:
    # Four rows at a time share a weight, which is 2.5 times faster than single rows. The last rows
    # of a band may be computed twice.
    taps = weights.shape[1]
    for begin in range(start, stop, 4):
        i = begin if stop - begin >= 4 else max(start, stop - 4)
        last = min(i + 3, stop - 1)
        row_0, row_1 = raster[i], raster[min(i + 1, last)]
        row_2, row_3 = raster[min(i + 2, last)], raster[last]
        for j in range(out.shape[1]):
            total_0 = total_1 = total_2 = total_3 = np.float32(0.0)
            for t in range(taps):
                weight = weights[j, t]
                place = first[j] + t
                total_0 += weight * row_0[place]
                total_1 += weight * row_1[place]
                total_2 += weight * row_2[place]
                total_3 += weight * row_3[place]
            out[i, j] = total_0
            out[min(i + 1, last), j] = total_1
            out[min(i + 2, last), j] = total_2
            out[last, j] = total_3


@compiled
def _cubic_weights(t: float) -> tuple[float, float, float, float]:
    """Weights of four neighbours at `t` (0 to 1) beyond the second (Keys, a = -1/2)."""
    t2 = t * t
    t3 = t2 * t
    return (
        -0.5 * t3 + t2 - 0.5 * t,
        1.5 * t3 - 2.5 * t2 + 1.0,
        -1.5 * t3 + 2.0 * t2 + 0.5 * t,
        0.5 * t3 - 0.5 * t2,
    )


class _SampleLattice(NamedTuple):
    """First sample and step between samples, in pixels of the view."""

    first_x: float
    first_y: float
    step_x: float
    step_y: float


@compiled
def _sample_cubic(
    start: int,
    stop: int,
    raster: Raster,
    matrix: FloatArray,
    lattice: _SampleLattice,
    lowest: float,
    highest: float,
    out: Image,
) -> None:
    """Fill samples whose w, the last row of the homography, is within (lowest, highest]."""
    texels = raster.values
    last_row, last_col = texels.shape[0] - 2.001, texels.shape[1] - 2.001
    for i in range(start, stop):
        y = lattice.first_y + lattice.step_y * i
        for j in range(out.shape[1]):
            x = lattice.first_x + lattice.step_x * j
            w = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
            if w <= lowest or w > highest:
                continue
            scale = 1.0 / (w * raster.pitch_m)
            a = (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) * scale - raster.first_col
            b = (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) * scale - raster.first_row
            # Clamp to the raster: rounding may ask for slightly more than its margin.
            a = min(max(a, 1.0), last_col)
            b = min(max(b, 1.0), last_row)
            col, row = int(a), int(b)
            u = _cubic_weights(a - col)
            v = _cubic_weights(b - row)
            total = 0.0
            for m in range(4):
                line = texels[row - 1 + m]
                total += v[m] * (
                    u[0] * line[col - 1]
                    + u[1] * line[col]
                    + u[2] * line[col + 1]
                    + u[3] * line[col + 2]
                )
            out[i, j] = total
