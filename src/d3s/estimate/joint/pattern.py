"""Structure that is locked to the frame: blocks of compression, stuck columns, stripes.

It shows no scene, but both views have it at the same places, and it would match: at the shift 0,
and a period away from it. Stuck columns are filled from those beside them, stripes are subtracted
as far as they can be told from texture, and what is left of them counts as noise, as the edges of
blocks do.
"""

from typing import NamedTuple

import numpy as np

from d3s.estimate.diagnosis.words import Cause
from d3s.estimate.joint.types import Array, CellFit
from d3s.runtime.parallel import run_together
from d3s.types import FloatArray, Image, Mask

Views = tuple[Array, Array]

_LINES = 32  # rows, or columns, that are looked at
_PERIOD = 16  # of the largest blocks of common codecs; those of 8 px are two in it
_FEWEST_PERIODS = 6
_CAP = 4.0  # jumps count up to this multiple of their mean: edges of the scene are larger
# Jumps at the edges of blocks over those elsewhere, and how sure that must be, in sigmas. Good
# pairs of the tuning textures reach 1.04 and 3, JPEG of quality 95 has 1.3 and 9.
_JUMP_RATIO, _SIGMAS = 1.12, 6.0
# Share of all jumps at these edges that chance never makes: an eighth is even.
_CONCENTRATED = 0.4
# Variance of white noise with as much gradient as edges of blocks of unit jumps, times 3: they are
# not noise, and match.
_BLOCK_NOISE = 3.0
_WINDOW_PX = 33  # over which jumps and gradients are averaged
# A stuck column has less than this share of the spread of others along it, and stands out by so
# many times the typical difference of columns.
_STUCK_SPREAD, _STUCK_SIZE = 0.05, 8.0
_BANDS = 4  # of rows: stripes are alike in all
_STRIPES_SHARED = 0.2  # correlation of the columns of both views, in other bands, of any stripes
_SMOOTH_BINS = 15  # of a spectrum
# Variance of a disparity by stripes that are left, over that by white noise of equal strength: they
# do not average out over the rows over which blurred texture is alike. From the tuning cases.
_STRIPES_FACTOR = 8.0

# Share of a window's gradient that is the frame's, from which on the window has no texture; and of
# such windows around it, from which on it has none either.
_MOST, _MOST_AROUND, _AROUND_PX = 0.35, 0.55, 97


class LockedPattern(NamedTuple):
    """Structure that is locked to the frame; None or empty where there is none."""

    phases: tuple[tuple[tuple[int, ...], ...], ...]  # of block edges: by view, by axis (x, y)
    period: int  # of blocks: 8 or 16, or 0
    stuck: tuple[Mask, Mask]  # columns of each view
    has_stripes: bool
    is_apart: bool  # whether scenes are searched at other shifts than 0

    @property
    def words(self) -> tuple[str, ...]:
        """Return a warning for each kind."""
        out = []
        if self.period:
            out.append(
                f"{Cause.BLOCKS}: blocks of {self.period} px, as JPEG or video leave them; their "
                "edges stand still and count as noise. Save the views without loss, as PNG."
            )
        count = sum(int(one.sum()) for one in self.stuck)
        if count:
            out.append(
                f"{Cause.COLUMNS}: {count} are stuck, and were filled from those beside them. "
                "Subtract a dark frame and mend them where the views are made."
            )
        if self.has_stripes:
            out.append(
                f"{Cause.COLUMNS}: stripes stand still in both views; they were subtracted as far "
                "as they can be told from texture, and sigma holds the rest. Subtract a dark frame."
            )
        return tuple(out)


def find_pattern(views: Views, first_shift: int) -> LockedPattern | None:
    """Return the structure that is locked to the frame, None if there is none.

    Parameters
    ----------
    views
        Both views (rows, cols), without NaN.
    first_shift
        Smallest disparity that is searched, in pixels: where it is 0, scenes stand still too.
    """
    rows, cols = views[0].shape
    if min(rows, cols) < (_FEWEST_PERIODS + 1) * _PERIOD:
        return None
    down, across = max(rows // _LINES, 1), max(cols // _LINES, 1)
    lines = [view[down // 2 :: down] for view in views]
    uprights = [np.ascontiguousarray(view[:, across // 2 :: across].T) for view in views]
    found = run_together(
        *(
            lambda i=i: (_stuck(lines[i]), _fold(lines[i]), _fold(uprights[i]))
            for i in range(len(views))
        )
    )
    folds = [one[1:] for one in found]
    has_blocks = all(_are_blocks(*fold) for fold in folds)
    # Coded light has columns of one value too.
    stuck = tuple(one[0] & (not has_blocks) for one in found)
    has_stripes = first_shift > 0 and not has_blocks and _are_striped(lines, stuck)
    if not (has_blocks or has_stripes or any(one.any() for one in stuck)):
        return None
    phases = tuple(tuple(fold.phases for fold in pair) for pair in folds)
    period = 0
    if has_blocks:
        period = _PERIOD // max(len(one) for pair in phases for one in pair)
    return LockedPattern(phases, period, (stuck[0], stuck[1]), has_stripes, first_shift > 0)


class _Fold(NamedTuple):
    """Mean jumps between neighbouring pixels by their place in a period."""

    phases: tuple[int, ...]  # of the largest: one, or two half a period apart
    ratio: float  # of the largest over typical ones
    sigmas: float  # by which they are larger
    is_flat: bool  # whether there are no jumps


def _jumps(lines: Array) -> Array:
    """Return the size of the jump before each pixel beyond those beside it (rows, cols - 3)."""
    first = np.diff(lines, axis=1)
    return np.abs(first[:, 1:-1] - np.float32(0.5) * (first[:, :-2] + first[:, 2:]))


def _fold(lines: Array) -> _Fold:
    jumps = _jumps(lines)
    most = np.float32(_CAP) * jumps.mean()
    means = np.minimum(jumps, most).mean(axis=0, dtype=np.float64)
    means = means[: means.size // _PERIOD * _PERIOD].reshape(-1, _PERIOD)
    by_phase = means.mean(axis=0)
    best = int(by_phase.argmax())
    beyond = means[:, best] - np.median(means, axis=1)
    spread = float(beyond.std(ddof=1)) / float(np.sqrt(beyond.size))
    typical = float(np.median(by_phase))
    phases = [best]
    other = (best + _PERIOD // 2) % _PERIOD
    if by_phase[other] - typical > 0.5 * (by_phase[best] - typical):
        phases.append(other)
    whole = float(by_phase.sum())
    is_sure = whole > 0 and float(by_phase[phases].sum()) > _CONCENTRATED * whole
    sigmas = float(beyond.mean()) / spread if spread > 0 else 0.0
    return _Fold(
        # The first jump lies before the pixel 2.
        tuple(sorted((phase + 2) % _PERIOD for phase in phases)),
        float(by_phase[best] / typical) if typical > 0 else 1.0 + float(by_phase[best] > 0),
        2 * _SIGMAS if is_sure else sigmas,
        whole == 0,
    )


def _are_blocks(across: _Fold, down: _Fold) -> bool:
    """Return whether the jumps of a view along both axes are those of blocks."""
    if across.is_flat or down.is_flat:  # light that changes along one axis
        return max(across.sigmas, down.sigmas) > _SIGMAS and max(across.ratio, down.ratio) > 1.5
    ratio = np.sqrt(across.ratio * down.ratio)
    return bool(ratio > _JUMP_RATIO and across.sigmas + down.sigmas > np.sqrt(2) * _SIGMAS)


def _columns(lines: Array) -> FloatArray:
    """Return the mean second difference of each column with those beside it, 0 at the ends."""
    mean = lines.mean(axis=0, dtype=np.float64)
    out = np.zeros(mean.size)
    out[1:-1] = mean[:-2] - 2 * mean[1:-1] + mean[2:]
    return out


def _stuck(lines: Array) -> Mask:
    spread = lines.std(axis=0)
    columns = np.abs(_columns(lines))
    # A plain wall without noise is even over many columns.
    beside = np.minimum(np.roll(spread, 2), np.roll(spread, -2))
    is_even = spread < _STUCK_SPREAD * np.minimum(beside, np.median(spread))
    is_known = lines.any(axis=0)  # missing pixels are 0
    return np.asarray(is_known & is_even & (columns > _STUCK_SIZE * np.median(columns)))


def _are_striped(lines: list[Array], stuck: tuple[Mask, ...]) -> bool:
    """Return whether columns of both views are alike at the shift 0 in all bands of rows."""
    filled = [_filled(one, mask) for one, mask in zip(lines, stuck, strict=True)]
    left, right = ([_columns(band) for band in np.array_split(one, _BANDS)] for one in filled)
    found = []
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            if i != j:
                size = float(np.sqrt((one @ one) * (other @ other)))
                found.append(float(one @ other) / size if size > 0 else 0.0)
    # Chance makes 1 / sqrt(columns) of each.
    chance = _SIGMAS / np.sqrt(left[0].size * len(found) / 2)
    return bool(np.median(found) > max(_STRIPES_SHARED, chance) and min(found) > 0)


def _filled(view: Array, stuck: Mask) -> Array:
    """Return the view with stuck columns interpolated from those beside them."""
    if not stuck.any():
        return view
    good, bad = np.flatnonzero(~stuck), np.flatnonzero(stuck)
    after = np.searchsorted(good, bad).clip(1, good.size - 1)
    low, high = good[after - 1], good[after]
    share = np.clip((bad - low) / (high - low), 0, 1).astype(view.dtype)
    out = view.copy()
    out[:, bad] = (1 - share) * view[:, low] + share * view[:, high]
    return out


class Cleaned(NamedTuple):
    """Views without stuck columns and stripes, and what is left of a pattern."""

    views: Views
    stripes: float  # variance of the offsets of columns that are left
    edges: Image | None = None  # variance of the noise that edges of blocks count as (rows, cols)
    of_frame: Mask | None = None  # where the gradient is the frame's (rows, cols)


def take_out(pattern: LockedPattern, views: Views) -> Cleaned:
    """Take a pattern out of the views.

    Parameters
    ----------
    pattern
        Result of `find_pattern`.
    views
        Both views (rows, cols), without NaN.
    """
    clean = [_filled(view, mask) for view, mask in zip(views, pattern.stuck, strict=True)]
    stripes = 0.0
    if pattern.has_stripes:
        offsets, stripes = _stripes(clean)
        clean = [view - offsets.astype(view.dtype) for view in clean]
    one, other = (np.ascontiguousarray(view) for view in clean)
    if not pattern.period:
        nothing = np.zeros(one.shape, dtype=np.float32)
        of_frame = _of_frame(nothing, (one, other), is_apart=pattern.is_apart)
        return Cleaned((one, other), stripes, None, of_frame)
    edges = [
        [_edge_energy(image, places) for image, places in ((view, x), (view.T, y))]
        for view, (x, y) in zip((one, other), pattern.phases, strict=True)
    ]
    across, down = (0.5 * (first + second) for first, second in zip(*edges, strict=True))
    of_frame = _of_frame(across / pattern.period, (one, other), is_apart=pattern.is_apart)
    noise = np.float32(_BLOCK_NOISE) * (across + down.T)
    return Cleaned((one, other), stripes, noise, of_frame)


def with_pattern(fit: CellFit, cleaned: Cleaned, noise: Array, cell_px: int) -> CellFit:
    """Return the fit with what is left of a pattern in sigma and correlation.

    Parameters
    ----------
    fit
        Fit of each cell.
    cleaned
        Result of `take_out`.
    noise
        Variance of one view's noise around each cell, with that of the pattern.
    cell_px
        Side of a cell in pixels.
    """
    if cleaned.of_frame is not None:
        is_frame = cleaned.of_frame[::cell_px, ::cell_px]
        fit = fit._replace(correlation=np.where(is_frame, np.float32(0), fit.correlation))
    if not cleaned.stripes:
        return fit
    share = np.float32(cleaned.stripes) / np.maximum(noise, np.float32(1e-30))
    more = np.sqrt(1 + np.float32(_STRIPES_FACTOR - 1) * np.minimum(share, 1))
    return fit._replace(sigma_px=fit.sigma_px * more)


def _of_frame(edges: Image, views: Views, *, is_apart: bool) -> Mask:
    """Return where (rows, cols) most of the gradient along the rows is that of edges of blocks.

    Or is alike at the shift 0: blocks of the same light are coded alike, inside too, and light in
    steps of 8 bits has the same contours in both views.
    """
    import cv2

    kernel = np.array([-1.0, 1.0, 0.0])
    one, other = (cv2.sepFilter2D(view, -1, kernel, np.ones(1)) for view in views)
    shared, left, right = (_means(part) for part in (one * other, one * one, other * other))
    energy = np.maximum(0.5 * (left + right), 1e-30)
    share = np.maximum(edges, shared) if is_apart else edges
    is_frame = share > _MOST * energy
    around = cv2.blur(is_frame.astype(np.float32), (_AROUND_PX,) * 2)
    return np.asarray(is_frame | (around > _MOST_AROUND))


def _means(image: Array) -> Image:
    import cv2

    return np.asarray(cv2.blur(image, (_WINDOW_PX,) * 2))


def _stripes(views: list[Array]) -> tuple[FloatArray, float]:
    """Return the offsets of columns that stand still in both views, and the variance left.

    Each column has its own offset. At each frequency along the rows, what both views have in
    common beyond that is texture, another one in each.
    """
    cols = views[0].shape[1]
    one, other = (np.fft.rfft(_columns(view)) for view in views)
    passed = np.square(2 * np.cos(np.pi * np.arange(one.size) / (one.size - 1)) - 2)
    shared = np.maximum((one * other.conj()).real @ passed / (passed @ passed), 0)
    mean = 0.5 * (one + other)
    whole = np.convolve(np.abs(mean) ** 2, np.ones(_SMOOTH_BINS) / _SMOOTH_BINS, "same")
    share = np.clip(shared * passed / np.maximum(whole, 1e-30), 0, 1)
    share[0] = 0  # an offset of all columns is none
    found = -share * mean / np.sqrt(np.maximum(passed, 1e-30))
    rest = shared * float(np.sum(1 - share)) * 2 / cols**2
    return np.fft.irfft(found, cols), rest


def _edge_energy(view: Array, edges: tuple[int, ...]) -> Image:
    """Return the mean squared jump at the edges of blocks beyond that elsewhere (rows, cols)."""
    square = np.zeros(view.shape, dtype=np.float32)
    square[:, 2:-1] = np.square(_jumps(view))
    is_edge = np.isin(np.arange(view.shape[1]) % _PERIOD, edges)
    means = [
        _means(square * mask) / _means(np.broadcast_to(mask, view.shape).copy())
        for mask in (is_edge.astype(np.float32), (~is_edge).astype(np.float32))
    ]
    return np.maximum(means[0] - means[1], 0)
