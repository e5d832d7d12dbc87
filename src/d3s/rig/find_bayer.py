"""Notice the Bayer pattern of a colour sensor in a raw frame, and find the order of its colours.

Colour filters change the brightness with a period of exactly two pixels: along rows and columns
alike by (red - blue) / 4, and like the fields of a chessboard by (red + blue - 2 green) / 4. Such
lines in the spectrum stand out of their neighbours, with one sign all over a frame of one tint; and
where the colours change, the lines along rows and columns change together. Fine texture has a
period near two pixels here and there, with another sign in each place and direction. Columns that
are read by two amplifiers differ along rows only.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.types import FloatArray

_TILE_PX = 32
_MOST_TILES = 1024
_QUICK_TILES = 128  # in every frame that is split: a hundredth of the time of a depth map
_CANDIDATES = 4  # tiles that are looked at, for each that counts: others are dark
_FEWEST_TILES = 12
_LIT = 0.15  # tiles that count are brighter than this share of the brightest
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
# The order is clear if the difference of the two pixels of one diagonal has so much more energy
# than that of the other diagonal, which are the green ones.
_CLEAR = 2.0


class FoundBayer(NamedTuple):
    """Result of `find_bayer`.

    Attributes
    ----------
    is_bayer
        Whether the frame has the pattern of a colour sensor.
    order
        Colours of the first 2 x 2 pixels; None if there is no pattern, or it is not clear which
        pixels are green. Which of the other two is red cannot be seen: the brighter one is taken.
    lines
        Amplitudes of the modulation along rows, along columns and along both, as shares of the
        brightness.
    significance
        The same over their standard deviations.
    """

    is_bayer: bool
    order: str | None
    lines: tuple[float, float, float]
    significance: tuple[float, float, float]

    @property
    def words(self) -> str:
        """Orders that the colours may have; empty if they are not clear."""
        return "" if self.order is None else f"{self.order} or {swapped(self.order)}"


def swapped(order: str) -> str:
    """Order with red in the place of blue."""
    return order.translate(str.maketrans("RB", "BR"))


_NOTHING = FoundBayer(False, None, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def find_bayer(frame: NDArray[Any], *, most_tiles: int = _MOST_TILES) -> FoundBayer:
    """Find the Bayer pattern of a raw frame (rows, cols), if it has one.

    It is not seen in a frame without light or smaller than 128 x 128 px, nor where colours do not
    differ: such frames are as those of a mono sensor.

    Parameters
    ----------
    frame
        Raw frame, of any real type and unit.
    most_tiles
        Largest number of tiles of 32 x 32 px that are looked at.
    """
    tiles = _lit_tiles(frame, most_tiles)
    if len(tiles) < _FEWEST_TILES:
        return _NOTHING
    brightness = tiles.mean(axis=(1, 2))
    tiles -= brightness[:, np.newaxis, np.newaxis]
    parts = _spectra(tiles)
    shares = np.stack([part[:, _RING[1], 0].real / brightness for part in parts], axis=1)
    around = np.stack([_surroundings(part) / brightness for part in parts], axis=1)
    over = np.clip(shares / np.maximum(around, 1e-12), -_LARGEST, _LARGEST)
    significance = over.sum(axis=0) / np.sqrt(np.maximum((over**2).sum(axis=0), len(tiles)))
    lines = np.median(shares, axis=0)
    seen = (np.abs(significance) > _seen_from(len(tiles))) & (np.abs(lines) > _LEAST_SHARE)
    if not (seen[2] or (seen[0] and seen[1]) or _are_paired(over[:, 0], over[:, 1])):
        return FoundBayer(False, None, _three(lines), _three(significance))
    return FoundBayer(True, _order(shares, lines), _three(lines), _three(significance))


def unsaid_warning(frame: NDArray[Any], *, is_quick: bool = False) -> str:
    """Warn of a frame with the pattern of a colour sensor, after its name; empty for others.

    Parameters
    ----------
    frame
        Raw frame (rows, cols) that was not said to be of a colour sensor.
    is_quick
        Whether to look at few tiles of the frame.
    """
    found = find_bayer(frame, most_tiles=_QUICK_TILES if is_quick else _MOST_TILES)
    if not found.is_bayer:
        return ""
    likely = f" (likely {found.words})" if found.order else ""
    return (
        f"looks like the raw frame of a colour sensor{likely}, and was not said to be one: its "
        "depth is biased. Say the order of its colours with --bayer, or bayer in Python, and "
        "calibrate with such frames; --bayer none if the sensor is a mono one."
    )


def _are_paired(across: FloatArray, down: FloatArray) -> bool:
    """Whether the lines along rows and columns go together, as red and blue make them."""
    energy = float(np.sqrt((across**2).sum() * (down**2).sum()))
    together = abs(float((across * down).sum())) / max(energy, 1e-12)
    return together > max(_PAIRED, _seen_from(across.size) / float(np.sqrt(across.size)))


def _seen_from(tiles: int) -> float:
    """Significance from which on a line is seen: few tiles cannot reach that of many."""
    return min(_SEEN, 0.8 * float(np.sqrt(tiles)))


def _three(values: FloatArray) -> tuple[float, float, float]:
    first, second, third = (float(one) for one in values)
    return first, second, third


def _order(shares: FloatArray, lines: FloatArray) -> str | None:
    """Order of the colours; None if the green pixels are not clear."""
    across, down = shares[:, 0], shares[:, 1]
    first = float(np.median((across - down) ** 2))  # of the pixels right above and left below
    second = float(np.median((across + down) ** 2))  # of the pixels left above and right below
    if second > _CLEAR * first:
        return "RGGB" if lines[0] + lines[1] > 0 else "BGGR"
    if first > _CLEAR * second:
        return "GBRG" if lines[0] > lines[1] else "GRBG"
    return None


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
    lit = np.flatnonzero(thin > _LIT * np.percentile(known, 99))  # NaN is not
    chosen = lit[:: max(1, -(-len(lit) // most))]
    tiles = blocks[i[chosen], j[chosen]].astype(np.float64)
    with np.errstate(invalid="ignore"):
        means = tiles.mean(axis=(1, 2))  # NaN or infinite if a pixel is
    is_good = np.isfinite(means) & (means > 0)
    return tiles if is_good.all() else np.asarray(tiles[is_good])


def _spectra(tiles: FloatArray) -> list[NDArray[np.complex128]]:
    """Windowed spectra of tiles around the lines along rows, along columns and along both.

    Each is (tiles, rows, columns), as far as the ring. A line is its own mirror image, as real
    numbers have it. So columns of one side, and that of the line itself, which comes first, are all
    there is to know.
    """
    half, last = _TILE_PX // 2, _RING[1]
    ramp = np.hanning(_TILE_PX + 1)[:_TILE_PX]
    turns = -2j * np.pi / _TILE_PX * np.arange(_TILE_PX)
    waves = ramp / ramp.sum() * np.exp(turns * np.arange(_TILE_PX)[:, np.newaxis])
    down = {row: waves[row + np.arange(-last, last + 1)] for row in (0, half)}
    across = {col: _times(tiles, waves[col + np.arange(last + 1)].T) for col in (0, half)}
    return [down[row] @ across[col] for row, col in ((0, half), (half, 0), (half, half))]


def _times(tiles: FloatArray, waves: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Product of every tile with the same matrix.

    Tile by tile: as one product of matrices, the threads of BLAS would wait for each other beside
    an estimate.
    """
    count = waves.shape[1]
    both = tiles @ np.hstack([waves.real, waves.imag])
    return np.asarray(both[..., :count] + 1j * both[..., count:])


def _surroundings(part: NDArray[np.complex128]) -> FloatArray:
    """RMS of one part of the spectrum around a place, beyond the main lobe of the window."""
    first, last = _RING
    down, across = np.abs(np.arange(-last, last + 1)), np.arange(last + 1)
    far = np.maximum(down[:, np.newaxis], across) >= first
    counts = np.where(far, np.where(across == 0, 1, 2), 0)  # with the mirror image
    power = part.real**2 + part.imag**2
    # Of a line, which is real, twice the power of one part.
    return np.asarray(np.sqrt(np.tensordot(power, counts, 2) / counts.sum()))
