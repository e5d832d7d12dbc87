"""Search: the best whole shift of each pixel, by semi-global matching.

The cost of a shift compares order and slope of the brightness, not the brightness itself, so that
views of unlike exposure, contrast or shading match too. Paths from four sides carry the decision to
pixels whose own window does not suffice (Hirschmüller, "Stereo processing by semiglobal matching
and mutual information", PAMI 2008); steps in depth cost less where the left view has an edge.

Paths add up the smallest preference, such as that for a period of a fence or of bricks that happens
to be nearer to a whole shift, until it looks like certainty. So repetition is judged by the
matching costs themselves: over a block, their mean at each distance from the chosen shift. Noise
makes single costs low by chance, but not a mean over a block. Costs say nothing where range or
frame hide the other match, perhaps the true one. So the left view is compared with itself too: what
repeats in it has other matches, seen or hidden.
"""

from math import isqrt

import numpy as np

from d3s.estimate.joint.kernels import costs, filters, paths, periods, prefilter
from d3s.estimate.joint.plan import Plan
from d3s.estimate.joint.types import MAX_PENALTY, Array, Indices, SearchResult, Steps

# In units of the matching cost. Tuned on real stereo pairs and on the tuning textures.
from d3s.runtime.scratch import Scratch
from d3s.types import Mask

_SMALL_STEP = 83.0  # penalty of neighbours one shift apart
_LARGE_STEP = 550.0  # penalty of neighbours further apart
_LEAST_LARGE = 1.1  # smallest penalty of these, at edges, over the small one
# Step in brightness that halves the large penalty, and slope of one unit, over the contrast of the
# view: its standard deviation.
_EDGE_SHARE = 0.2
_SLOPE_SHARE = 0.01
# Noise over contrast from which on views with lenses are smoothed for the search, and with which
# the smoothing is largest; largest and smallest smoothing, in pixels of the search.
_NOISE_SHARES = 0.15, 0.3
_MAX_SMOOTHING_PX, _MIN_SMOOTHING_PX = 1.0, 0.3
_MARGIN_HALF = 2  # half side of the mean of margins
_MANY = 20_000  # pixels that suffice for a standard deviation

BLOCK = 24  # side of a block of repetition in pixels of the search
STRIDE = 4  # every fourth pixel in both directions: costs are means over 3 x 3 pixels
# Least mean cost of other shifts beyond that of the chosen one, in units of the matching cost: on
# plain walls no shift costs less than others.
_MIN_CONTRAST = 40.0
# A repetition costs more than the chosen shift by less than this share of what other shifts do: for
# waves 0.05 or less, for nearly all blocks of other textures 0.3 or more.
_MAX_SHARE = 0.1
# The same where the view itself repeats: noise of plain parts between marks dilutes the costs.
_MAX_SHARE_OF_PERIODIC = 0.3
# Share of a block's pixels that must have a cost at a distance.
_MIN_COUNT = 0.5

# Longest period that is looked for in the view itself, and how far beyond the range a match is, in
# pixels of the frame.
_LONGEST_PX = 64
# Of blocks of natural views 1 % correlate with themselves by 0.92, of patterns nearly all.
_LIMITS = periods.Limits(surely=0.92, share=0.95, least=0.7, dip=0.6, outside=0.7, lead=0.05)
_MANY_BLOCKS = 0.25  # share of blocks that is no chance


def search(views: tuple[Array, Array], noise: Array, plan: Plan, memory: Scratch) -> SearchResult:
    """Find the best shift of each pixel of the search scale.

    Parameters
    ----------
    views
        Left and right view (rows, cols) at the search scale.
    noise
        Variance of one view's white noise around each cell.
    plan
        Shifts and options.
    memory
        Where intermediate images live.
    """
    left, right = _smoothed(views, noise, plan, memory)
    first_shift = int(plan.shifts[0])
    contrasts = _contrast(left), _contrast(right)
    scales = tuple(1 / (_SLOPE_SHARE * contrast) if contrast > 0 else 0.0 for contrast in contrasts)
    volume = costs.matching_costs(
        memory, left, right, first_shift, plan.shifts.size, (scales[0], scales[1])
    )
    small, large = (
        min(plan.options.smoothness * step, MAX_PENALTY) for step in (_SMALL_STEP, _LARGE_STEP)
    )
    unit = _EDGE_SHARE * contrasts[0] or 1.0
    least = min(_LEAST_LARGE * small, MAX_PENALTY)
    penalties = paths.step_penalties(memory, left, large, least, unit)
    best = paths.aggregate_paths(memory, volume, plan.allowed, round(small), penalties)
    margin = filters.local_mean(memory, best.margin, _MARGIN_HALF)
    aligned = costs.aligned_costs(memory, volume, best.lowest, plan.allowed, BLOCK, STRIDE)
    found = find_unseen((left, right), plan, memory)
    is_repeated = find_repetition(*aligned, found.period > 0) | (found.lead > 0)
    if is_repeated.any():
        margin[_of_pixels(is_repeated, margin.shape)] = 0
    if found.period.any():
        period = _of_pixels(found.period, margin.shape)
        margin[find_hidden(period, best.lowest, plan)] = 0
    return SearchResult(
        filters.median_3x3(memory, filters.median_3x3(memory, best.step)),
        margin,
        paths.right_view_steps(memory, best, first_shift),
    )


def _smoothed(
    views: tuple[Array, Array], noise: Array, plan: Plan, memory: Scratch
) -> tuple[Array, Array]:
    """Smooth views with lenses further where noise is a large share of their contrast.

    The order of brightness is soon lost in noise, and blurred views have no fine detail to lose.
    """
    contrast = _contrast(views[0])
    if plan.is_sharp or contrast == 0:
        return views
    stride = max(isqrt(noise.size // _MANY), 1)
    share = float(np.sqrt(np.median(noise[::stride, ::stride]))) / contrast
    low, high = _NOISE_SHARES
    sigma_px = float(np.clip((share - low) / (high - low), 0, 1)) * _MAX_SMOOTHING_PX
    if sigma_px < _MIN_SMOOTHING_PX:
        return views
    left, right = (prefilter.smooth(memory, view, sigma_px) for view in views)
    return left, right


def _contrast(view: Array) -> float:
    """Return the standard deviation of a view, from some of its pixels."""
    stride = max(isqrt(view.size // _MANY), 1)
    return float(np.std(view[::stride, ::stride], dtype=np.float64))


def find_unseen(views: tuple[Array, Array], plan: Plan, memory: Scratch) -> periods.Periods:
    """Return the blocks that repeat in the left view itself, or match better out of the range.

    Windows are larger than blocks, so blocks beside sure ones follow them. Single blocks that are
    not sure count as chance, unless they are many.

    Parameters
    ----------
    views
        Left and right view (rows, cols) at the search scale.
    plan
        Shifts and options.
    memory
        Where intermediate images live.
    """
    scale, shifts = plan.search_scale, plan.shifts
    reach = _LONGEST_PX // scale + 1
    infinity = int(np.ceil(plan.model.offset_px / scale))
    first, last = int(shifts[0]), int(shifts[-1])
    ends = min(max(first - reach, infinity), first), first, last, last + reach
    period, likeness, lead = periods.find_periods(memory, views, ends, (reach, BLOCK), _LIMITS)
    if ((period > 0) | (lead > 0)).mean() > _MANY_BLOCKS:
        return periods.Periods(_largest_around(period), likeness, _largest_around(lead))
    sure = _largest_around(np.where(likeness >= _LIMITS.surely, period, 0))
    alone = np.where(_beside(period > 0), period, 0)
    return periods.Periods(np.maximum(sure, alone), likeness, np.where(_beside(lead > 0), lead, 0))


def _largest_around(image: Array) -> Array:
    """Return the largest value of each block and those beside it."""
    wide = np.pad(image, 1)
    rows, cols = image.shape
    places = ((i, j) for i in range(3) for j in range(3))
    return np.asarray(np.max([wide[i : i + rows, j : j + cols] for i, j in places], axis=0))


def _of_pixels(blocks: Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(blocks.repeat(BLOCK, 0).repeat(BLOCK, 1)[: shape[0], : shape[1]])


def find_hidden(period: Array, lowest: Steps, plan: Plan) -> Mask:
    """Return the pixels of repeated texture whose next match, nearer or farther, cannot be seen.

    It lies out of the range or out of the frame. Beyond infinity there is none.

    Parameters
    ----------
    period
        Period of the texture around each pixel, in pixels of the search; 0 if it does not repeat.
    lowest
        Chosen step of each pixel.
    plan
        Shifts and options.
    """
    searched = np.pad(plan.allowed, 1)
    shift = lowest + plan.shifts[0]
    col = np.arange(period.shape[1])
    infinity = plan.model.offset_px / plan.search_scale
    is_hidden = np.zeros(period.shape, dtype=np.bool_)
    for other in (shift + period, shift - period):
        step = np.rint(other).astype(np.int64) - plan.shifts[0] + 1
        is_seen = searched[np.clip(step, 0, searched.size - 1)]
        is_seen &= (col - other >= 1) & (col - other < col.size - 1)
        is_hidden |= ~is_seen & (other >= infinity)
    return np.asarray(is_hidden & (period > 0))


def find_repetition(sums: Indices, counts: Indices, is_periodic: Mask) -> Mask:
    """Return the blocks whose texture fits about as well at another shift.

    Blocks without a second valley, as at the border, follow their neighbours.

    Parameters
    ----------
    sums
        Sums of costs (rows, cols, distances) of each block, from `SearchOperations.aligned_costs`.
    counts
        Number of costs in each sum.
    is_periodic
        Whether the left view itself repeats in the block.
    """
    middle = sums.shape[2] // 2
    is_known = counts >= np.maximum(_MIN_COUNT * counts[:, :, middle, None], 1)
    mean = sums / np.maximum(counts, 1)
    is_other = is_known & (np.abs(np.arange(sums.shape[2]) - middle) > 1)
    typical = (mean * is_other).sum(axis=2) / np.maximum(is_other.sum(axis=2), 1)
    chosen = mean[:, :, middle]
    contrast = typical - chosen
    lowest = np.where(is_other & _valleys(mean, is_known), mean, np.inf).min(axis=2)
    share = np.where(is_periodic, _MAX_SHARE_OF_PERIODIC, _MAX_SHARE)
    is_repeated = (contrast >= _MIN_CONTRAST) & (lowest - chosen < share * contrast)
    return np.asarray(is_repeated | (np.isinf(lowest) & _beside(is_repeated)))


def _valleys(mean: Array, is_known: Mask) -> Mask:
    """Return where neither neighbour along the last axis is lower, and both are known."""
    wide = np.pad(np.where(is_known, mean, -1), ((0, 0), (0, 0), (1, 1)), constant_values=-1)
    middle = wide[:, :, 1:-1]
    return np.asarray((middle <= wide[:, :, :-2]) & (middle <= wide[:, :, 2:]))


def _beside(mask: Mask) -> Mask:
    """Return the blocks with a neighbour in the mask, above, below or to either side."""
    wide = np.pad(mask, 1)
    return np.asarray(wide[2:, 1:-1] | wide[:-2, 1:-1] | wide[1:-1, 2:] | wide[1:-1, :-2])
