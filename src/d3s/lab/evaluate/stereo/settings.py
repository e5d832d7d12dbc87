"""Options of methods on stereo data sets: search range of the scene, and OpenCV at its best.

The defaults of `sgbm` and `bm` are for the blurred and noisy views of a two-lens camera. On sharp
views these are better, tuned on seven scenes of the Middlebury 2014 training set at quarter size:
`benchmarks/tune_stereo.py` compares them with others. Two thirds of the errors on these scenes are
below `disparity_sigma_px`. `uniqueness_percent` is usual, and not tuned.
Options that are given with the method come on top.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from d3s.estimate import Options
from d3s.lab.evaluate.contender import Contender

STEREO_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "sgbm": {
        "block_size_px": 3,
        "p1": 72,
        "p2": 400,
        "pre_filter_cap": 31,
        "prefilter_sigma_px": 0.0,
        "disp12_max_diff_px": 1,
        "speckle_window_px": 200,
        "uniqueness_percent": 10,
        "mode": "hh",
        "disparity_sigma_px": 0.30,
    },
    "bm": {
        "block_size_px": 15,
        "pre_filter_cap": 15,
        "prefilter_sigma_px": 0.0,
        "disp12_max_diff_px": 1,
        "speckle_window_px": 0,
        "uniqueness_percent": 15,
        "disparity_sigma_px": 0.26,
    },
}
"""Options of the methods of OpenCV on sharp stereo pairs, by method."""

LEVELS = (0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 60, 80)
"""Values of `uniqueness_percent` at which a method of OpenCV runs, to order its pixels."""


def for_stereo(contender: Contender) -> Contender:
    """Contender with the options for stereo data sets, under the same name.

    Options that are given stay; an object of an options class is taken as it is.
    """
    if isinstance(contender.options, Options):
        return contender
    options = {**STEREO_OPTIONS.get(contender.method, {}), **(contender.options or {})}
    return replace(contender, options=options, label=contender.name)


def over_range(contender: Contender, depth_range_m: tuple[float, float]) -> Contender:
    """Contender that searches a depth range, unless its own options have one."""
    options = contender.checked_options()
    if options.depth_range_m is not None or options.candidates_m is not None:
        return contender
    return replace(contender, options=options.replace(depth_range_m=depth_range_m))


def at_levels(contender: Contender) -> tuple[Contender, ...]:
    """Contender at each of `LEVELS`; none if the method has no `uniqueness_percent`."""
    options = contender.checked_options()
    if "uniqueness_percent" not in type(options).model_fields:
        return ()
    return tuple(
        replace(contender, options=options.replace(uniqueness_percent=level)) for level in LEVELS
    )
