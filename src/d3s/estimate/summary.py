"""Summary of a depth map: numbers, one line, and sentences on pixels without a depth."""

from typing import NamedTuple

import numpy as np

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag

# Depths are given from the first to the 99th percentile: a few outliers do not set them.
_PERCENTILES = (1, 99)
_FEWEST = 0.005  # share of the pixels from which a reason is worth a line


class Summary(NamedTuple):
    """Numbers of a depth map; NaN where no pixel has a depth."""

    density: float  # share of the pixels that have a depth, 0 to 1
    nearest_m: float  # first percentile of the depths
    farthest_m: float  # 99th percentile of the depths
    median_sigma_m: float


class Reason(NamedTuple):
    """One reason why pixels have no depth."""

    flag: Flag
    share: float  # of all pixels; a pixel may have several reasons
    words: str


def summarise(depth_map: DepthMap) -> Summary:
    """Numbers of a depth map."""
    known = depth_map.valid
    if not known.any():
        return Summary(0.0, float("nan"), float("nan"), float("nan"))
    nearest_m, farthest_m = np.percentile(depth_map.depth_m[known], _PERCENTILES).tolist()
    sigma_m = float(np.median(depth_map.sigma_m[known]))
    return Summary(float(known.mean()), nearest_m, farthest_m, sigma_m)


def reasons(depth_map: DepthMap) -> tuple[Reason, ...]:
    """Reasons why pixels have no depth, the most common first.

    Nearly all of these pixels have little confidence, and CARRIED is a remark: LOW_CONFIDENCE and
    CARRIED count only where no flag but these says why.
    """
    missing = depth_map.flags[~depth_map.valid]
    alone = {Flag.LOW_CONFIDENCE: ~np.uint16(Flag.CARRIED), Flag.CARRIED: ~np.uint16(0)}
    shares = {}
    for flag in Flag:
        has = (missing & np.uint16(flag)) != 0
        if flag in alone:
            has = (missing & alone[flag]) == np.uint16(flag)
        shares[flag] = float(np.count_nonzero(has) / depth_map.flags.size)
    order = sorted((flag for flag in Flag if shares[flag]), key=lambda flag: -shares[flag])
    return tuple(Reason(flag, shares[flag], str(flag.__doc__)) for flag in order)


def headline(depth_map: DepthMap) -> str:
    """One line: share of pixels with a depth, range of depths, and median sigma."""
    found = summarise(depth_map)
    if not found.density:
        return "no pixel has a depth"
    return (
        f"{percent(found.density)} of the pixels have a depth, {length(found.nearest_m)} to "
        f"{length(found.farthest_m)}, median sigma {length(found.median_sigma_m)}"
    )


def short_text(depth_map: DepthMap) -> str:
    """Text of `repr`: size, method, camera and headline, and a line for each warning."""
    rows, cols = depth_map.depth_m.shape
    first = (
        f"DepthMap of {rows} x {cols} px by {depth_map.method}, camera {depth_map.rig.name!r}: "
        f"{headline(depth_map)}"
    )
    return "\n".join([first, *(f"  Warning: {words}" for words in depth_map.warnings)])


def explain(depth_map: DepthMap) -> str:
    """Sentences on a depth map: its headline, its warnings, and the reasons of its holes."""
    lines = [_sentence(headline(depth_map)), *map(_sentence, depth_map.warnings)]
    holes = 1 - summarise(depth_map).density
    if holes:
        lines.append(
            f"Without a depth: {percent(holes)} of the pixels. Reasons, of which a pixel may have "
            "several:"
        )
        lines += [
            f"- {percent(one.share)} {flag_name(one.flag)}: {one.words}"
            for one in reasons(depth_map)
            if one.share >= _FEWEST or not depth_map.density
        ]
    return "\n".join(lines)


def causes(warnings: tuple[str, ...]) -> str:
    """Warnings as sentences in one line; of none, the causes to look for."""
    return " ".join(map(_sentence, warnings)) or _FILTERED


_FILTERED = (
    "The thresholds of the filter left none, or no single cause stands out. `d3s info` of the .npz "
    "says which flags stand in the way."
)


def flag_name(flag: Flag) -> str:
    """Name of a flag in lower case, with spaces."""
    return str(flag.name).lower().replace("_", " ")


def percent(share: float) -> str:
    """Share in percent, with a digit more where it is near 0 or 1."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    digits = 1 if share < 0.0995 or 0.995 <= share < 1 else 0
    return f"{100 * share:.{digits}f} %" if share else "0 %"


def length(metres: float) -> str:
    """Length with three digits, in metres or millimetres."""
    if metres < 0.01:
        return f"{1e3 * metres:.2g} mm"
    if metres < 0.1:
        return f"{1e3 * metres:.3g} mm"
    return f"{metres:.3g} m" if metres < 1000 else f"{metres:.0f} m"


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}{'' if words.endswith('.') else '.'}"
