"""Warnings: the likely causes of an empty or poor depth map in words, each with its remedy.

Every warning begins with its `Cause` and a colon.
"""

import math
from enum import StrEnum

import numpy as np

from d3s.estimate.diagnosis.findings import Diagnosis, Found
from d3s.estimate.diagnosis.light import Value, ViewDifferences
from d3s.estimate.drift_watch import edge_disparities
from d3s.rig import Optics, Stereo

# Each limit is the size from which a cause matters; a number of standard deviations guards against
# chance. The limits were set on the tuning textures; `make warnings` measures what they miss.
_SIGMAS, _TONE_SIGMAS = 6.0, 4.5
_GAIN = 0.03  # 5 % moves planes at 2 m by up to 0.17 cm, 20 % by up to 0.8 cm
_SHADING = 0.12  # from the middle to an edge; real pairs in one light nearly have it
_TONE = 0.08  # from medium to bright parts; the same
_ROWS_PX = 0.5
# Cameras with lenses are rectified by their calibration, so less is a drift: of the rows, and of
# the disparity at the edges of the frame. Sigma holds three times its share of the disparity.
_LENS_ROWS_PX, _EDGE_PX, _HELD_SIGMAS = 0.3, 0.2, 3.0
_GRAIN = 1.4  # about half of the errors are then within one sigma, in place of two thirds
_CLIPPED, _MISSING = 0.1, 0.5
_POOR_DENSITY, _EMPTY_DENSITY = 0.15, 0.05
_MOST = 0.6  # share of blocks that decide
_SOME = 0.25  # share of blocks that is worth a word
_PLAIN, _COVERED = 0.7, 0.95
_FEW_FOUND = 0.15
_FOUND_ROWS_PX = 0.75
_FOUND_GAIN = 0.12  # blocks are not blurred alike, which changes their contrast by a few per cent
_LARGEST_CHANGE = 1.9


class Cause(StrEnum):
    """First words of a warning: the likely cause of an empty or poor depth map."""

    MISSING = "pixels are missing"
    CONSTANT = "a view is constant"
    COVERED = "one view shows noise only"
    SWAPPED = "left and right seem to be swapped"
    ROWS = "rows do not agree"
    RANGE = "the depth range cuts"
    OFFSET = "disparities lie beyond infinity"
    REPEATED = "texture repeats"
    PLAIN = "no texture"
    UNLIKE = "the views do not match"
    UNCERTAIN = "depths are too uncertain"
    CONTRAST = "contrast differs"
    SHADING = "shading differs"
    GAMMA = "gamma differs"
    CLIPPED = "pixels are clipped"
    GRAIN = "noise is not white"
    BLOCKS = "a grid stands still"
    COLUMNS = "columns stand still"
    CROSSTALK = "the views mix"
    EMPTY = "no pixel has a depth"


Words = dict[Cause, str]

# Causes by which the views show unlike texture, which would count as noise.
_UNLIKE = {Cause.ROWS, Cause.CONTRAST, Cause.SHADING, Cause.GAMMA}
# Causes that texture seems to have which repeats, and those by which pixels match anywhere.
_TAKEN_FOR = {Cause.UNLIKE, Cause.PLAIN}
_APART = {Cause.ROWS, Cause.RANGE, Cause.OFFSET}


def warnings_of(
    diagnosis: Diagnosis, optics: Optics, stereo: Stereo | None = None
) -> tuple[str, ...]:
    """Return a sentence for each likely cause; none for a good pair.

    Parameters
    ----------
    diagnosis
        Result of `diagnose`.
    optics
        The camera.
    stereo
        Its views, if it is a stereo camera of two cameras.
    """
    words: Words = _of_views(diagnosis) or _of_pair(diagnosis, optics, _rows_remedy(stereo))
    if not words and diagnosis.is_empty:
        words = {Cause.EMPTY: _EMPTY}
    return _sentences(words)


_EMPTY = (
    "no single cause stands out. Check that the rig is the camera that took this pair, that both "
    "views are rectified and in order, and that they show texture."
)


def _of_pair(diagnosis: Diagnosis, optics: Optics, remedy: str) -> Words:
    """Causes that the pair as a whole shows."""
    words: Words = {}
    found, comparison = diagnosis.found, diagnosis.comparison
    if found is not None:
        if found.mirrored > _MOST:
            return {Cause.SWAPPED: _swapped(found)}
        words |= _of_blocks(diagnosis, found, optics, remedy)
    if comparison is not None:
        words = _of_rows(comparison, remedy) | words | _of_light(comparison)
        words = _of_drift(comparison, diagnosis) | words
    if diagnosis.turn is not None:
        words.pop(Cause.ROWS, None)
        words |= _of_turn(diagnosis.turn, diagnosis, remedy)
    if diagnosis.crosstalk is not None:
        left, right = diagnosis.crosstalk
        words[Cause.CROSSTALK] = (
            f"{left:.0%} of the right view is seen in the left one and {right:.0%} of the left "
            "view in the right one; this is taken out. Part the views on the sensor, or mend the "
            "readout."
        )
    words |= _of_clipping(diagnosis)
    if diagnosis.ambiguous > _SOME and not words.keys() & _APART:
        words = {cause: said for cause, said in words.items() if cause not in _TAKEN_FOR}
        words[Cause.REPEATED] = (
            f"{diagnosis.ambiguous:.0%} of the frame may match at another depth as well, perhaps "
            "out of the depth range or of the frame. Widen depth_range_m if it may be too narrow, "
            "or add texture that does not repeat."
        )
    if not words.keys() & _UNLIKE:
        words |= _of_grain(diagnosis)
    return words


def _sentences(words: Words) -> tuple[str, ...]:
    return tuple(f"{cause}: {words[cause]}" for cause in Cause if cause in words)


def _of_views(diagnosis: Diagnosis) -> Words:
    """Views that cannot show a depth at all."""
    if diagnosis.missing > _MISSING and diagnosis.density < _POOR_DENSITY:
        return {
            Cause.MISSING: f"{diagnosis.missing:.0%} of the windows have a pixel without a value, "
            "in one view or both. Crop the views, or check what marks pixels as missing."
        }
    sides = [side for side, is_one in zip(_SIDES, diagnosis.constant, strict=True) if is_one]
    if sides:
        which = "both views have" if len(sides) == 2 else f"the {sides[0]} view has"
        return {
            Cause.CONSTANT: f"{which} one value everywhere. Uncover the lens, or check how the "
            "image was read."
        }
    found = diagnosis.found
    if found is None:
        return {}
    plain = found.plain_left, found.plain_right
    for side, own, other in zip(_SIDES, plain, plain[::-1], strict=True):
        if own > _COVERED and other < 1 - _MOST:
            return {Cause.COVERED: f"the {side} one. Uncover or focus the {side} lens."}
    return {}


_SIDES = "left", "right"


def _swapped(found: Found) -> str:
    return (
        f"{found.mirrored:.0%} of the details found in both views lie as they would if the views "
        "were exchanged. Give the views in the other order."
    )


def _of_blocks(diagnosis: Diagnosis, found: Found, optics: Optics, remedy: str) -> Words:
    """Causes that the search of blocks shows."""
    words: Words = {}
    low, high = found.rows_px
    if max(abs(low), abs(high)) > _FOUND_ROWS_PX and found.rows_agree > _MOST:
        words[Cause.ROWS] = _rows(low, high, remedy)
    words |= _of_range(diagnosis, found, optics)
    is_clipped = diagnosis.clipped > _CLIPPED
    is_measured = diagnosis.comparison is not None or is_clipped
    if not is_measured and found.gain.exceeds(_FOUND_GAIN, _SIGMAS):
        words[Cause.CONTRAST] = _contrast(2 * math.tanh(0.5 * found.gain.value))
    if diagnosis.density >= _POOR_DENSITY or words or is_clipped:
        return words
    is_unlike = found.share < _FEW_FOUND and diagnosis.density < _EMPTY_DENSITY
    plain = max(found.plain_left, found.plain_right)
    if plain > _PLAIN or (is_unlike and found.rich < 1 - _MOST):
        return {
            Cause.PLAIN: f"{max(plain, 1 - found.rich):.0%} of the frame shows little but noise. "
            "Add texture, for instance with a projector, or light and expose for less noise."
        }
    if diagnosis.density >= _EMPTY_DENSITY:
        return words
    if is_unlike:
        return {
            Cause.UNLIKE: f"{found.share:.0%} of the details of the left view are found in the "
            "right one. Check that both show one scene at one time, neither mirrored nor turned, "
            "and that both are rectified."
        }
    if found.inside > _MOST and diagnosis.uncertain > _MOST:
        return {
            Cause.UNCERTAIN: f"the views match, but {diagnosis.uncertain:.0%} of the pixels are "
            "less confident than min_confidence asks for. Expose for less noise, use a wider "
            "baseline, or lower min_confidence."
        }
    return words


def _of_range(diagnosis: Diagnosis, found: Found, optics: Optics) -> Words:
    outside = found.nearer + found.farther
    if outside < _SOME:
        return {}
    nearest_m, farthest_m = diagnosis.depth_range_m
    smallest, largest = found.disparity_px
    infinity = optics.disparity_offset_px
    if found.farther > found.nearer and smallest < infinity - 1:
        return {
            Cause.OFFSET: f"{found.farther:.0%} of the details found in both views have "
            f"disparities down to {smallest:.1f} px, and infinity has {infinity:.1f} px. Check "
            "disparity_offset_px, that the rig is the one of this pair, and that left and right "
            "are not swapped."
        }
    near_m, far_m = (float(optics.depth_m(one)) for one in (largest, max(smallest, infinity + 0.5)))
    wider = min(near_m * 0.9, nearest_m), max(far_m * 1.1, farthest_m)
    return {
        Cause.RANGE: f"{outside:.0%} of the details found in both views lie outside of "
        f"{nearest_m:.3g} to {farthest_m:.3g} m; all are {near_m:.3g} to {far_m:.3g} m away. Set "
        f"depth_range_m=({wider[0]:.2g}, {wider[1]:.2g})."
    }


def _of_rows(comparison: ViewDifferences, remedy: str) -> Words:
    """Rows that disagree where depth was found: in the middle, or towards an edge."""
    terms = comparison.rows_px, comparison.rows_x_px, comparison.rows_y_px
    if not any(one.exceeds(_ROWS_PX, _SIGMAS) for one in terms):
        return {}
    middle = terms[0].value
    reach = sum(abs(one.value) for one in terms[1:] if one.exceeds(0.0, _SIGMAS))
    return {Cause.ROWS: _rows(middle - reach, middle + reach, remedy)}


def _of_turn(turn: tuple[Value, Value, Value], diagnosis: Diagnosis, remedy: str) -> Words:
    """Rows, roll and scale that were taken out, or could not be."""
    rows, roll, scale = (one.value for one in turn)
    high, wide = (0.5 * side for side in diagnosis.shape)
    edges_px = math.hypot(roll * high, scale * wide)
    if diagnosis.is_aligned and abs(rows) < _LENS_ROWS_PX and edges_px < _EDGE_PX:
        return {}
    amount = (
        f"points of the right view lie {abs(rows):.2f} px {'below' if rows > 0 else 'above'} those "
        f"of the left one, and a roll or scale moves disparity by {edges_px:.2f} px at the edges"
    )
    done = (
        "this is taken out, and sigma holds what is left"
        if diagnosis.is_aligned
        else "what is left of it spoils the depths: there are none. align_views=false gives them"
    )
    return {Cause.ROWS: f"{amount}; {done}. {remedy}"}


def _of_drift(comparison: ViewDifferences, diagnosis: Diagnosis) -> Words:
    """Rows of a camera with lenses by which disparity is wrong, more than sigma holds."""
    held_px = diagnosis.held_px
    if held_px is None:
        return {}
    values, sigmas = edge_disparities(comparison, diagnosis.shape)
    edge_px = max(_EDGE_PX, _HELD_SIGMAS * held_px)
    limits = (_LENS_ROWS_PX, edge_px, edge_px)
    beyond = [
        abs(value) > max(limit, _SIGMAS * sigma)
        for value, sigma, limit in zip(values, sigmas, limits, strict=False)
    ]
    if not any(beyond):
        return {}
    parts = []
    if beyond[0]:
        side = "below" if values[0] > 0 else "above"
        parts.append(
            f"points of the right view lie {abs(values[0]):.2f} px {side} those of the left one"
        )
    edges = float(np.hypot(*np.where(beyond[1:], values[1:3], 0.0)))
    if edges:
        parts.append(
            f"a roll or scale moves disparity by {edges:.2f} px at the edges, and sigma holds "
            f"{held_px:.2g} px"
        )
    return {Cause.ROWS: f"{'; '.join(parts)}. Find and mend the drift with d3s check."}


def _rows_remedy(stereo: Stereo | None) -> str:
    if stereo is None:
        return "Rectify the pair anew, or mend the rig with d3s check."
    if stereo.raw_cameras is None:
        return (
            "The rig takes the pictures for rectified ones: rectify them, or give the calibration "
            "of the raw cameras."
        )
    return (
        "Check that the calibration is of these cameras, that the left one comes first in it, and "
        "that the pictures are raw; or calibrate again."
    )


def _rows(low_px: float, high_px: float, remedy: str) -> str:
    size = max(abs(low_px), abs(high_px))
    if high_px - low_px < 0.5 * size:
        middle = 0.5 * (low_px + high_px)
        side = "below" if middle > 0 else "above"
        amount = f"points of the right view lie {abs(middle):.1f} px {side} those of the left one"
    else:
        amount = f"they differ by {low_px:.1f} to {high_px:.1f} px over the frame"
    return f"{amount}. {remedy}"


def _of_light(comparison: ViewDifferences) -> Words:
    """Contrast that differs between the views: everywhere, over the frame, or with brightness."""
    words: Words = {}
    gain, tone = comparison.gain, comparison.tone
    if gain.exceeds(_GAIN, _SIGMAS):
        words[Cause.CONTRAST] = _contrast(gain.value)
    across, down = comparison.shading_x, comparison.shading_y
    if across.exceeds(_SHADING, _SIGMAS) or down.exceeds(_SHADING, _SIGMAS):
        is_across = abs(across.value) > abs(down.value)
        slope, ends = (across, "left to right") if is_across else (down, "top to bottom")
        words[Cause.SHADING] = (
            f"from {ends} the contrast of the left view over the right one goes from "
            f"{_ratio(slope.value - gain.value):.2f} to {_ratio(-slope.value - gain.value):.2f}. "
            "Divide each view by a picture of an evenly lit wall."
        )
    if tone.exceeds(_TONE, _TONE_SIGMAS):
        words[Cause.GAMMA] = (
            "the contrast of the left view over the right one is "
            f"{_ratio(tone.value - gain.value):.2f} in dark and "
            f"{_ratio(-tone.value - gain.value):.2f} in bright parts. Make both views linear in "
            "light, with one exposure and without tone curves."
        )
    return words


def _contrast(gain: float) -> str:
    return (
        f"the left view has {_ratio(-gain):.3f} times the contrast of the right one, and sigma "
        "does not know what that does to depth. Multiply the right view by it, or mend the "
        "exposure."
    )


def _ratio(change: float) -> float:
    """Ratio of two numbers whose difference is `change` times their mean."""
    change = min(max(change, -_LARGEST_CHANGE), _LARGEST_CHANGE)
    return (1 + 0.5 * change) / (1 - 0.5 * change)


def _of_clipping(diagnosis: Diagnosis) -> Words:
    if diagnosis.clipped <= _CLIPPED:
        return {}
    is_white = diagnosis.clipped_white >= diagnosis.clipped_black
    colour, remedy = ("white", "Expose less") if is_white else ("black", "Expose more")
    return {
        Cause.CLIPPED: f"{diagnosis.clipped:.0%} of the windows have {colour} ones, and no depth. "
        f"{remedy}, or light the scene more evenly."
    }


def _of_grain(diagnosis: Diagnosis) -> Words:
    grain = diagnosis.grain
    if grain is None or not (grain.value > _GRAIN and grain.value - 1 > _SIGMAS * grain.sigma):
        return {}
    return {
        Cause.GRAIN: f"over two rows it has {grain.value:.1f} times the variance of one row, as "
        "demosaicing, JPEG, denoising or resizing leave it, and sigma is too small. Use raw or "
        "unprocessed pictures, or calibrate the noise of the sensor."
    }
