"""Warnings: the likely causes of an empty or poor depth map in words, each with its remedy."""

from d3s.estimate.diagnosis.light import Comparison
from d3s.estimate.diagnosis.measure import Diagnosis, Found
from d3s.rig import Optics

# Each limit is the size from which a cause matters; a number of standard deviations guards against
# chance. The limits were set on the tuning textures; docs/estimator_results.md has what they miss.
_SIGMAS = 6.0
_GAIN = 0.03  # a gain of 1.05 doubles the error at 2 m, to 0.5 cm; one of 1.2 brings it above 1 cm
_SHADING = 0.12  # from the middle to an edge; real pairs in one light have up to 0.11
_TONE = 0.07  # from medium to bright parts; real pairs have up to 0.066
_ROWS_PX = 0.5
_GRAIN = 1.5  # sigma is too small by a fifth
_CLIPPED, _MISSING = 0.1, 0.5
_POOR_DENSITY, _EMPTY_DENSITY = 0.2, 0.05
_MOST = 0.6  # share of blocks that decide
_SOME = 0.25  # share of blocks that is worth a word
_PLAIN, _COVERED = 0.6, 0.95
_FEW_FOUND = 0.15
_FOUND_ROWS_PX = 0.75
_LARGEST_CHANGE = 1.9

SWAPPED = "left and right seem to be swapped"
ROWS = "rows do not agree"


def warnings_of(diagnosis: Diagnosis, optics: Optics) -> tuple[str, ...]:
    """Return a sentence for each likely cause; none for a good pair.

    Parameters
    ----------
    diagnosis
        Result of `diagnose`.
    optics
        The camera.
    """
    words = _of_views(diagnosis)
    if words:
        return words
    found = diagnosis.found
    if found is not None:
        if found.mirrored > _MOST:
            return (_swapped(found),)
        words = _of_blocks(diagnosis, found, optics)
    if diagnosis.comparison is not None and not any(one.startswith(ROWS) for one in words):
        words += _rows_words(diagnosis.comparison)
    if diagnosis.comparison is not None:
        words += _light_words(diagnosis.comparison)
    words += _clipped_words(diagnosis)
    # Texture counts as noise where rows disagree.
    return words if any(one.startswith(ROWS) for one in words) else words + _grain_words(diagnosis)


def _of_views(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Views that cannot show a depth at all."""
    if diagnosis.missing > _MISSING and diagnosis.density < _POOR_DENSITY:
        return (
            f"{diagnosis.missing:.0%} of the pixels have a missing value in their window, in one "
            "view or both. Fill or crop the views, or check what marks pixels as NaN.",
        )
    names = [
        name for name, is_one in zip(("left", "right"), diagnosis.constant, strict=True) if is_one
    ]
    if names:
        view = f"the {names[0]} view has" if len(names) == 1 else "both views have"
        return (f"{view} one value everywhere. Uncover the lens, or check how the image was read.",)
    found = diagnosis.found
    if found is None:
        return ()
    plain = {"left": found.plain_left, "right": found.plain_right}
    for name, other in (("left", "right"), ("right", "left")):
        if plain[name] > _COVERED and plain[other] < 1 - _MOST:
            return (
                f"the {name} view shows noise only, and the {other} view does not. Uncover or "
                f"focus the {name} lens.",
            )
    return ()


def _swapped(found: Found) -> str:
    return (
        f"{SWAPPED}: {found.mirrored:.0%} of the details found in both views lie as they would if "
        "the views were exchanged. Give the views in the other order."
    )


def _of_blocks(diagnosis: Diagnosis, found: Found, optics: Optics) -> tuple[str, ...]:
    """Causes that the search of blocks shows."""
    words: tuple[str, ...] = ()
    low, high = found.rows_px
    if max(abs(low), abs(high)) > _FOUND_ROWS_PX and found.rows_agree > _MOST:
        words += (_rows_sentence(low, high),)
    words += _range_words(diagnosis, found, optics)
    if diagnosis.density >= _POOR_DENSITY or words:
        return words
    plain = max(found.plain_left, found.plain_right)
    if plain > _PLAIN:
        return (
            f"no texture: {plain:.0%} of the frame shows nothing but noise. Add texture, for "
            "instance with a projector, or light and expose for less noise.",
        )
    if found.share < _FEW_FOUND and diagnosis.density < _EMPTY_DENSITY:
        return (
            f"hardly any detail of the left view is found in the right one ({found.share:.0%} of "
            "the blocks tried). Check that both show one scene at one time, neither mirrored nor "
            "turned, and that both are rectified.",
        )
    if found.inside > _MOST and diagnosis.uncertain > _MOST and diagnosis.density < _EMPTY_DENSITY:
        return (
            f"the views match, but {diagnosis.uncertain:.0%} of the pixels are less confident than "
            "min_confidence asks for: their sigma is large. Expose for less noise, use a wider "
            "baseline, or lower min_confidence.",
        )
    return words


def _range_words(diagnosis: Diagnosis, found: Found, optics: Optics) -> tuple[str, ...]:
    outside = found.nearer + found.farther
    if outside < _SOME:
        return ()
    nearest_m, farthest_m = diagnosis.depth_range_m
    smallest, largest = found.disparity_px
    infinity = optics.disparity_offset_px
    if found.farther > found.nearer and smallest < infinity - 1:
        return (
            f"{found.farther:.0%} of the details found in both views have disparities that no "
            f"depth has: down to {smallest:.1f} px, and {infinity:.1f} px is infinity. Check "
            "disparity_offset_px, and that the rig is the one of this pair.",
        )
    near_m, far_m = (float(optics.depth_m(one)) for one in (largest, max(smallest, infinity + 0.5)))
    wider = min(near_m * 0.9, nearest_m), max(far_m * 1.1, farthest_m)
    return (
        f"the depth range cuts: {outside:.0%} of the details found in both views lie outside of "
        f"{nearest_m:.3g} to {farthest_m:.3g} m, {near_m:.3g} to {far_m:.3g} m away. Set "
        f"depth_range_m=({wider[0]:.2g}, {wider[1]:.2g}).",
    )


def _rows_words(comparison: Comparison) -> tuple[str, ...]:
    """Rows that disagree where depth was found: in the middle, or towards an edge."""
    terms = comparison.rows_px, comparison.rows_x_px, comparison.rows_y_px
    if not any(one.exceeds(_ROWS_PX, _SIGMAS) for one in terms):
        return ()
    middle = terms[0].value
    reach = sum(abs(one.value) for one in terms[1:] if one.exceeds(0.0, _SIGMAS))
    return (_rows_sentence(middle - reach, middle + reach),)


def _rows_sentence(low_px: float, high_px: float) -> str:
    size = max(abs(low_px), abs(high_px))
    if high_px - low_px < 0.5 * size:
        middle = 0.5 * (low_px + high_px)
        side = "below" if middle > 0 else "above"
        amount = f"points of the right view lie {abs(middle):.1f} px {side} those of the left one"
    else:
        amount = f"by {low_px:.1f} to {high_px:.1f} px over the frame"
    return f"{ROWS}: {amount}. Rectify the pair anew, or calibrate the rig again."


def _light_words(comparison: Comparison) -> tuple[str, ...]:
    """Contrast that differs between the views: everywhere, over the frame, or with brightness."""
    words = []
    gain, tone = comparison.gain, comparison.tone
    if gain.exceeds(_GAIN, _SIGMAS):
        ratio = _ratio(-gain.value)
        words.append(
            f"the left view has {ratio:.3f} times the contrast of the right one, and sigma does "
            "not know what that does to depth. Multiply the right view by it, or mend the exposure."
        )
    across, down = comparison.shading_x, comparison.shading_y
    if across.exceeds(_SHADING, _SIGMAS) or down.exceeds(_SHADING, _SIGMAS):
        one, ends = (
            (across, "left to right")
            if abs(across.value) > abs(down.value)
            else (
                down,
                "top to bottom",
            )
        )
        first, last = _ratio(one.value - gain.value), _ratio(-one.value - gain.value)
        words.append(
            f"shading differs: from {ends} the contrast of the left view over the right one goes "
            f"from {first:.2f} to {last:.2f}. Divide each view by a picture of an evenly lit wall."
        )
    if tone.exceeds(_TONE, _SIGMAS):
        dark, bright = _ratio(tone.value - gain.value), _ratio(-tone.value - gain.value)
        words.append(
            f"gamma differs: the contrast of the left view over the right one is {dark:.2f} in "
            f"dark and {bright:.2f} in bright parts. Make both views linear in light, with one "
            "exposure and without tone curves."
        )
    return tuple(words)


def _ratio(change: float) -> float:
    """Ratio of two numbers whose difference is `change` times their mean."""
    change = min(max(change, -_LARGEST_CHANGE), _LARGEST_CHANGE)
    return (1 + 0.5 * change) / (1 - 0.5 * change)


def _clipped_words(diagnosis: Diagnosis) -> tuple[str, ...]:
    if diagnosis.clipped <= _CLIPPED:
        return ()
    is_white = diagnosis.clipped_white >= diagnosis.clipped_black
    where, remedy = ("white", "Expose less") if is_white else ("black", "Expose more")
    return (
        f"clipped: {diagnosis.clipped:.0%} of the pixels have {where} ones in their window, and no "
        f"depth. {remedy}, or light the scene more evenly.",
    )


def _grain_words(diagnosis: Diagnosis) -> tuple[str, ...]:
    grain = diagnosis.grain
    if grain is None or not (grain.value > _GRAIN and grain.value - 1 > _SIGMAS * grain.sigma):
        return ()
    return (
        f"noise is not white: over two rows it has {grain.value:.1f} times the variance of one "
        "row, as demosaicing, JPEG, denoising or resizing leave it, and sigma is too small. Use "
        "raw or unprocessed pictures, or calibrate the noise of the sensor.",
    )
