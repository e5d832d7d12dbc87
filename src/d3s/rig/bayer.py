"""Luminance of raw frames of colour sensors, whose pixels lie behind a Bayer pattern of filters.

Each 2 x 2 block has one red, two green and one blue pixel; multiplied by its channel gain, each
shows the same grey. A demosaicing would guess the missing colours from edges around a pixel, and
leave noise and errors that depend on the content. Depth needs one linear, shift invariant image, in
which both lenses show the same point alike:

    luminance = (1 - a) * (green + W * ((red + blue) / 2 - green)) + a * all pixels

Green pixels form a lattice at 45 degrees whose first false frequency is far off, at (pi, pi): it is
interpolated by a half-band filter, flat to the second order. Red and blue have one at (pi, 0) and
(0, pi), where fine detail is. They count below half of that only: W is 0.3 times a binomial of 9
pixels, which is zero, eightfold, at all three false frequencies. Where a scene is grey, sharp
detail of all pixels has no false frequencies at all: their image, with zeros at the three for what
colour there is, has the share a, the larger the less red, green and blue differ in a frame.
"""

from functools import cache
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.types import FloatArray, Image, Mask

Bayer = Literal["RGGB", "BGGR", "GRBG", "GBRG"]
"""Colours of the first 2 x 2 pixels of a frame, along its rows."""

ORDERS: tuple[str, ...] = get_args(Bayer)

MONO = "none"
"""Said of frames that have no colours, whatever they look like."""

RED, GREEN, BLUE = range(3)

# Share of red and blue at the lowest frequencies. With none, red on blue would not be seen; with
# more, false detail grows, and the noise of red and blue, which get less light. Chosen on leaves,
# stone and wood, grey and of independent colours, in and out of focus.
SHARE = 0.3

# cos(w) -> (cos x + cos y) / 2 turns the half-band filter 1/2 + 9/16 cos w - 1/16 cos 3w into one
# for the lattice of green pixels, flat at (0, 0) and zero at (pi, pi) (McClellan, 1973).
_STEP = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]) / 4
_BINOMIAL = np.array([1.0, 8.0, 28.0, 56.0, 70.0, 56.0, 28.0, 8.0, 1.0]) / 256

# Image of all pixels: 1 - ((1 - cos w) / 2)² along rows and columns, flat at 0 and zero at pi.
_ALL = np.array([-1.0, 4.0, 10.0, 4.0, -1.0]) / 16
# Its share in a grey frame. With more of it, noise and false detail hardly become less. It falls
# to 0 as the part of red and blue that green does not explain grows to _COLOURFUL of their
# variance: from there on false detail of colours would be more than that of grey. Chosen as SHARE
# was.
_ALL_SHARE, _COLOURFUL = 0.7, 0.4
_PATCH_PX, _BANDS = 8, 4  # colours are compared in such patches, in every fourth band of rows
_FEWEST_PATCHES = 50
_OUTLIER = 3.0  # times the median change: outlines of the lit fields are no texture

_FEWEST_CLIPPED = 9  # pixels at the largest value: fewer are no plateau
# Grey that is lit: above this share of the brightest.
_LIT = 0.25


def check_order(order: Any) -> Bayer:
    """Order of the colours, in capitals."""
    if isinstance(order, str) and order.upper() in ORDERS:
        return cast(Bayer, order.upper())
    raise InputError(
        f"bayer={order!r} must be {', '.join(ORDERS)}: the colours of the first two pixels of the "
        "first row, then of the second."
    )


def check_said(said: str | None, own: str | None) -> str | None:
    """Return the order of the colours that is said of frames, checked against that of their rig.

    `said` is an order, `MONO`, or None if nothing is said; `own` is that of the frames that the rig
    was calibrated with, None if not known.
    """
    if said is None:
        return own
    order = said if said == MONO else check_order(said)
    if own is not None and order != own:
        raise InputError(
            f"bayer={order!r}, and the rig was calibrated with {own} frames. Leave it; if the "
            "camera has changed its mode, calibrate again."
        )
    return order


def site_channels(order: str) -> NDArray[np.int64]:
    """Channel of the first 2 x 2 pixels: 0 red, 1 green, 2 blue."""
    letters = [RED if one == "R" else GREEN if one == "G" else BLUE for one in check_order(order)]
    return np.array(letters).reshape(2, 2)


def on_sites(values: Any, order: str, shape: tuple[int, int]) -> Image:
    """Image of (rows, columns) with the value of three at each red, green and blue pixel."""
    block = np.asarray(values, dtype=np.float32)[site_channels(order)]
    rows, cols = shape
    return np.tile(block, (-(-rows // 2), -(-cols // 2)))[:rows, :cols]


def channel_means(frame: NDArray[Any], order: str) -> FloatArray:
    """Mean of red, green and blue over the lit part of a frame; NaN if no part is lit."""
    rows, cols = (size // 2 for size in frame.shape)
    blocks = np.asarray(frame[: 2 * rows, : 2 * cols], dtype=np.float32).reshape(rows, 2, cols, 2)
    grey = blocks.mean(axis=(1, 3))
    known = grey[np.isfinite(grey)]
    if not known.size:
        return np.full(3, np.nan)
    top = float(np.fmax.reduce(frame, axis=None))
    lit = (grey > _LIT * np.percentile(known, 99)) & (blocks.max(axis=(1, 3)) < top)
    sites = site_channels(order)
    sums, counts = np.zeros(3), np.zeros(3)
    for i, j in np.ndindex(2, 2):
        sums[sites[i, j]] += blocks[:, i, :, j][lit].sum(dtype=np.float64)
        counts[sites[i, j]] += np.count_nonzero(lit)
    return np.asarray(sums / counts if counts.all() else np.full(3, np.nan))


def gains_of_means(means: FloatArray) -> tuple[float, float, float]:
    """Factors on red, green and blue that make their means equal; that of green is 1."""
    if not (np.isfinite(means).all() and (means > 0).all()):
        raise InputError(
            f"the means of red, green and blue are {', '.join(f'{one:.3g}' for one in means)}: "
            "each must be above 0. Is the frame lit, and is it raw?"
        )
    red, green, blue = (float(means[GREEN] / one) for one in means)
    return red, green, blue


def luminance(
    frame: NDArray[Any], order: str, gains: tuple[float, float, float] | None = None
) -> Image:
    """Luminance at full size of a raw frame of a colour sensor; linear, with the unit of the frame.

    Pixels that were clipped get one value above all others, so that they are still known by it.
    NaN spreads to the pixels around it. `gains` are factors on red, green and blue that make grey
    even; if None, their means over the lit part of this frame are made equal.
    """
    import cv2

    if min(frame.shape) < len(_BINOMIAL):
        raise InputError(
            f"a frame of {frame.shape[0]} x {frame.shape[1]} px is too small for a Bayer pattern."
        )
    shape = frame.shape[0], frame.shape[1]
    if gains is None:
        gains = gains_of_means(channel_means(frame, order))
    even = np.asarray(frame, dtype=np.float32) * on_sites(gains, order, shape)
    share = _ALL_SHARE * max(1 - unexplained_colour(even, order) / _COLOURFUL, 0.0)
    green = even * on_sites((0, 1, 0), order, shape)
    # The border is mirrored at the outermost pixel, which keeps the colours in their order.
    out: Image = np.asarray(
        cv2.filter2D(green, cv2.CV_32F, _green_kernel(), borderType=cv2.BORDER_REFLECT_101),
        dtype=np.float32,
    )
    out += _separable(even - 2 * green, np.sqrt(2 * SHARE) * _BINOMIAL)  # red and blue, less green
    if share:
        out += np.float32(share) * (_separable(even, _ALL) - out)
    for extreme in (np.fmax, np.fmin):  # which pass over NaN
        held = _clipped(frame, float(extreme.reduce(frame, axis=None)))
        if held is not None:
            out[held & ~np.isnan(out)] = extreme.reduce(out, axis=None)
    return out


def unexplained_colour(even: Image, order: str) -> float:
    """Part of the texture of red and blue that is not that of green: 0 if grey, 1 if unrelated.

    Noise counts as unrelated: it is 1 for frames without texture. `even` has its gains.
    """
    size, half = _PATCH_PX, _PATCH_PX // 2
    rows, cols = (extent // size for extent in even.shape)
    bands = even[: rows * size, : cols * size].reshape(rows, half, 2, -1)[::_BANDS]
    patches = bands.sum(axis=1).reshape(len(bands), 2, cols, half, 2).sum(axis=3)
    sites = site_channels(order)
    red, green, blue = (
        patches.transpose(1, 3, 0, 2)[sites == one].mean(axis=0) for one in range(3)
    )
    changes = np.stack([np.diff(one, axis=1) for one in (red, green, blue)])
    known = np.isfinite(changes).all(axis=0)
    if np.isfinite(green).any():
        lit = green > _LIT * np.nanpercentile(green, 99)
        known &= lit[:, 1:] & lit[:, :-1]
    if np.count_nonzero(known) < _FEWEST_PATCHES:
        return 1.0
    some = changes[:, known]
    limits = _OUTLIER * np.median(np.abs(some), axis=1, keepdims=True)
    some = np.clip(some, -limits, limits)
    products = np.asarray(some @ some.T, dtype=np.float64)
    squares = np.diag(products)
    explained = products[GREEN] ** 2 / np.maximum(squares[GREEN] * squares, 1e-30)
    return float(1 - 0.5 * (explained[RED] + explained[BLUE]))


def _separable(image: Image, weights: FloatArray) -> Image:
    import cv2

    taps = weights.astype(np.float32)
    border = cv2.BORDER_REFLECT_101
    return np.asarray(cv2.sepFilter2D(image, cv2.CV_32F, taps, taps, borderType=border))


def colours(
    frame: NDArray[Any], order: str, gains: tuple[float, float, float] | None = None
) -> Image:
    """Red, green and blue of a raw frame at full size, (rows, cols, 3), to look at.

    Each channel is interpolated between its own pixels. Depth is not estimated from these.
    """
    import cv2

    shape = frame.shape[0], frame.shape[1]
    if gains is None:
        gains = gains_of_means(channel_means(frame, order))
    even = np.asarray(frame, dtype=np.float32) * on_sites(gains, order, shape)
    tent = np.array([1.0, 2.0, 1.0], dtype=np.float32) / 2
    planes = []
    for channel in (RED, GREEN, BLUE):
        sites = on_sites(np.arange(3) == channel, order, shape)
        plane = cv2.sepFilter2D(
            even * sites, cv2.CV_32F, tent, tent, borderType=cv2.BORDER_REFLECT_101
        )
        planes.append(plane / 2 if channel == GREEN else plane)  # twice as many are green
    return np.stack(planes, axis=2)


@cache
def _green_kernel() -> Image:
    """Interpolation of the green lattice, (7, 7): 1 at its own pixels, 3/2 c - 1/2 c³ between."""
    from scipy.signal import convolve2d

    cubed = convolve2d(convolve2d(_STEP, _STEP), _STEP)
    kernel = -0.5 * cubed
    kernel[2:5, 2:5] += 1.5 * _STEP
    kernel[3, 3] += 1.0
    return np.asarray(kernel, dtype=np.float32)


def _clipped(frame: NDArray[Any], limit: float) -> Mask | None:
    """Pixels near those that, with their neighbours of the same colour, have the value `limit`."""
    import cv2

    at_limit = np.asarray(frame == limit, dtype=np.uint8)
    if np.count_nonzero(at_limit) < _FEWEST_CLIPPED:
        return None
    same_colour = np.zeros((5, 5), dtype=np.uint8)
    same_colour[::2, ::2] = 1
    plateau = cv2.erode(at_limit, same_colour)
    return np.asarray(cv2.dilate(plateau, np.ones((7, 7), dtype=np.uint8)) > 0)


@cache
def _channel_noise() -> tuple[float, float]:
    """Noise variance of the luminance that disturbs a fit, for noise of variance 1 in a channel.

    Of green pixels, and of red and blue ones.

    The mean of its spectrum over the frequencies of a smoothed gradient, as `joint` compares the
    views by: exp(-2 f²) f_x² / f². Noise of single pixels would be 1, if all pixels were alike. It
    is that of colourful frames: grey ones have up to 8 % less noise.
    """
    cycles = np.fft.fftfreq(128) * 2 * np.pi
    x, y = np.meshgrid(cycles, cycles)
    step = (np.cos(x) + np.cos(y)) / 2
    green = 1.0 + 1.5 * step - 0.5 * step**3
    smooth = ((1 + np.cos(x)) / 2 * (1 + np.cos(y)) / 2) ** 4 * 2 * SHARE
    squared = x**2 + y**2
    weight = np.exp(-2 * squared) * x**2 / np.maximum(squared, 1e-9)
    weight /= weight.sum()
    # Half of the pixels are green, and half are red or blue.
    of_green, of_others = (weight * (green - smooth) ** 2).sum(), (weight * smooth**2).sum()
    return float(0.5 * of_green), float(0.5 * of_others)


class LuminanceNoise(NamedTuple):
    """Noise variance of the luminance, over that of a green pixel of the same grey."""

    read: float
    shot: float


def luminance_noise(gains: tuple[float, float, float]) -> LuminanceNoise:
    """Noise variance of the luminance over that of a green pixel, by the gains of the channels."""
    red, green, blue = gains
    of_green, of_others = _channel_noise()
    return LuminanceNoise(
        read=of_green + of_others * 0.5 * (red**2 + blue**2) / green**2,
        shot=of_green + of_others * 0.5 * (red + blue) / green,
    )


# Colour sensors noticed ---------------------------------------------------------------------------

# Colour filters change the brightness with a period of exactly two pixels: along rows and columns
# by (red - blue) / 4, and like a chessboard by (red + blue - 2 green) / 4. Such lines in the
# spectrum have one sign all over a frame of one tint; where colours change, those along rows and
# columns change together. Fine texture has another sign in each place and direction. Columns that
# are read by two amplifiers differ along rows only.
_TILE_PX = 32
_MOST_TILES = 1024
_QUICK_TILES = 128  # in every frame that is split: a hundredth of the time of a depth map
_CANDIDATES = 4  # tiles that are looked at, for each that counts: others are dark
_FEWEST_TILES = 12
_LIT_TILE = 0.15  # tiles that count are brighter than this share of the brightest
_LARGEST = 3.0  # amplitude over its surroundings at which a tile counts no more
# Distance in bins of the surroundings of a line: beyond the main lobe of the window.
_RING = (3, 5)
# A line is seen if the mean over tiles, of values of spread 1, is this many of its standard
# deviations from 0: chance alone never goes so far, and texture is not quite chance.
_SEEN = 7.0
# Correlation, over the tiles, of the lines along rows and columns: 1 or -1 for colours, and of
# texture as many standard deviations from 0 as a line may be.
_PAIRED = 0.5
# A line counts if it is at least this share of the brightness: pixels of one sensor are not quite
# alike, and a drawn pattern whose period is an even number of pixels has weak lines too.
_LEAST_SHARE = 0.005


def looks_coloured(frame: NDArray[Any], *, most_tiles: int = _MOST_TILES) -> bool:
    """Whether a raw frame (rows, cols), of any real type and unit, is like that of a colour sensor.

    At most so many tiles of 32 x 32 px are looked at. The pattern is not seen in a frame without
    light or smaller than 128 x 128 px, nor where colours do not differ: such frames are as those of
    a mono sensor.
    """
    tiles = _lit_tiles(frame, most_tiles)
    if len(tiles) < _FEWEST_TILES:
        return False
    brightness = tiles.mean(axis=(1, 2))
    tiles -= brightness[:, np.newaxis, np.newaxis]
    lines, around = _lines(tiles)
    shares = lines / brightness[:, np.newaxis]
    least = 1e-12 * brightness[:, np.newaxis]
    over = np.clip(lines / np.maximum(around, least), -_LARGEST, _LARGEST)
    significance = over.sum(axis=0) / np.sqrt(np.maximum((over**2).sum(axis=0), len(tiles)))
    large = np.abs(np.median(shares, axis=0)) > _LEAST_SHARE
    seen = (np.abs(significance) > _seen_from(len(tiles))) & large
    return bool(seen[2] or (seen[0] and seen[1]) or _are_paired(over[:, 0], over[:, 1]))


def unsaid_warning(frame: NDArray[Any], *, is_quick: bool = False) -> str:
    """Warn of a frame of a colour sensor that was not said to be one, after its name; else empty.

    A quick look is at few tiles of the frame.
    """
    if not looks_coloured(frame, most_tiles=_QUICK_TILES if is_quick else _MOST_TILES):
        return ""
    return (
        "looks like the raw frame of a colour sensor, and was not said to be one: its depth is "
        "biased. Say the order of its colours with --bayer, or bayer in Python, and calibrate with "
        "such frames; --bayer none if the sensor is a mono one."
    )


def _are_paired(across: FloatArray, down: FloatArray) -> bool:
    """Whether the lines along rows and columns go together, as red and blue make them."""
    energy = float(np.sqrt((across**2).sum() * (down**2).sum()))
    together = abs(float((across * down).sum())) / max(energy, 1e-12)
    return together > max(_PAIRED, _seen_from(across.size) / float(np.sqrt(across.size)))


def _seen_from(tiles: int) -> float:
    """Significance from which on a line is seen: few tiles cannot reach that of many."""
    return min(_SEEN, 0.8 * float(np.sqrt(tiles)))


def _lit_tiles(frame: NDArray[Any], most: int) -> FloatArray:
    """Tiles of the lit part of a frame, evenly chosen, (count, rows, cols); without NaN."""
    rows, cols = (size // _TILE_PX for size in frame.shape)
    if min(rows, cols) < 1:
        return np.empty((0, _TILE_PX, _TILE_PX))
    inner = frame[: rows * _TILE_PX, : cols * _TILE_PX]
    blocks = inner.reshape(rows, _TILE_PX, cols, _TILE_PX).transpose(0, 2, 1, 3)
    count = min(rows * cols, _CANDIDATES * most)
    places = np.linspace(0, rows * cols - 1, count).astype(np.int64)
    i, j = places // cols, places % cols
    with np.errstate(invalid="ignore"):  # infinite values of both signs
        thin = blocks[i, j, ::5, ::5].astype(np.float64).mean(axis=(1, 2))
    known = thin[np.isfinite(thin)]
    if not known.size or known.max() <= 0:
        return np.empty((0, _TILE_PX, _TILE_PX))
    lit = np.flatnonzero(thin > _LIT_TILE * np.percentile(known, 99))  # NaN is not
    chosen = lit[:: max(1, -(-len(lit) // most))]
    tiles = blocks[i[chosen], j[chosen]].astype(np.float64)
    with np.errstate(invalid="ignore"):
        means = tiles.mean(axis=(1, 2))  # NaN or infinite if a pixel is
    is_good = np.isfinite(means) & (means > 0)
    return tiles if is_good.all() else np.asarray(tiles[is_good])


def _lines(tiles: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lines in the spectrum along rows, along columns and along both, and the RMS around them.

    Both are (tiles, 3). Around is a ring beyond the main lobe of the window.
    """
    from scipy.fft import fft2

    half, (first, last) = _TILE_PX // 2, _RING
    ramp = np.hanning(_TILE_PX + 1)[:_TILE_PX]
    window = np.outer(ramp, ramp) / ramp.sum() ** 2
    spectra = fft2(tiles.astype(np.float32) * window.astype(np.float32))
    reach = np.arange(-last, last + 1)
    far = np.maximum(np.abs(reach)[:, np.newaxis], np.abs(reach)) >= first
    lines, around = [], []
    for row, col in ((0, half), (half, 0), (half, half)):
        ring = spectra[:, (row + reach)[:, np.newaxis], col + reach][:, far]
        lines.append(spectra[:, row, col].real)
        around.append(np.sqrt((ring.real**2 + ring.imag**2).mean(axis=1)))
    return np.stack(lines, axis=1), np.stack(around, axis=1)
