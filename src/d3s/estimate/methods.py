"""`estimate`: one call for every method, and the table of methods by name."""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from d3s.errors import DepthWarning, InputError
from d3s.estimate.checked_pair import CheckedPair, checked_pair, colour_of
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.options import Options
from d3s.record import short_repr
from d3s.registry import tables
from d3s.rig import Rig
from d3s.types import Image


class Method(NamedTuple):
    """Module, function and options class of a method, imported on first use.

    Only their names are stored: a method is imported when it is called.
    """

    module: str
    function: str  # takes (left, right, rig, options), with views as `checked_pair` returns them
    options: str  # class, in the same module if no other one is named
    options_module: str = ""

    def load(self) -> tuple[Callable[[Image, Image, Rig, Any], DepthMap], type[Options]]:
        """Import the method; return its function and the class of its options."""
        return getattr(import_module(self.module), self.function), self.load_options()

    def load_options(self) -> type[Options]:
        """Import the class of the options, without the loops of our methods: they are slow."""
        module = import_module(self.options_module or self.module)
        kind: type[Options] = getattr(module, self.options)
        return kind


_OWN = {
    "joint": Method(
        "d3s.estimate.joint.method", "estimate_joint", "JointOptions", "d3s.estimate.options"
    ),
    "consensus": Method(
        "d3s.estimate.consensus.consensus_method",
        "estimate_consensus",
        "ConsensusOptions",
        "d3s.estimate.options",
    ),
}
WITHOUT_BASELINE = {
    "defocus": Method(
        "d3s.estimate.defocus", "estimate_defocus", "DefocusOptions", "d3s.estimate.options"
    )
}
"""Methods for cameras of one view point with two focuses."""


@cache
def methods() -> dict[str, Method]:
    """Methods for cameras with a baseline by name: ours, the paper's, those that are registered."""
    return {**_OWN, **tables("methods")}


def method_of(name: Any) -> Method:
    """Method of a name; what is registered is looked at for names of others only.

    Raises
    ------
    InputError
        If there is none.
    """
    own = {**_OWN, **WITHOUT_BASELINE}
    if isinstance(name, str) and (name in own or name in methods()):
        return own.get(name) or methods()[name]
    raise InputError(f"method={short_repr(name)} must be one of {', '.join(methods())}.")


def estimate(
    left: Any,
    right: Any,
    rig: Rig,
    *,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
) -> DepthMap:
    """Estimate the depth of each pixel of the left view of a rectified pair.

    Parameters
    ----------
    left, right
        Grey images (rows, cols) of one shape, at most 64 million pixels each, linear in intensity:
        any real type and unit. Gain and offset do not matter if both views share them. NaN,
        infinite and masked pixels count as missing. The arrays are not changed. Colour images,
        RGB (rows, cols, 3), become grey by the rule for files: the sRGB curve of uint8 and uint16
        is undone, floats are linear, and red, green and blue have the weights of Rec. 709. An image
        of OpenCV is BGR: give ``image[..., ::-1]``.
    rig
        The camera that took the pair. `Rig.from_pinhole` describes any other rectified stereo pair,
        and `Rig.from_file` reads the calibration of one.
    method
        "joint", our method; "consensus", the paper's algorithm; "defocus", for a camera without
        baseline; or another method of `d3s.estimate.methods.methods()`: "sgbm", "bm", "sift",
        "phase", "guo2017", "li2010", "takeda2013".
    options
        Options of the method, such as `JointOptions` or `ConsensusOptions`, or a mapping of field
        names to values. The default is the default of every field.

    Returns
    -------
    DepthMap
        Depth in metres with its standard deviation and a confidence, in arrays (rows, cols) of the
        left view. Pixels without a depth are NaN and have flags that say why; nothing is filled in.

    Raises
    ------
    InputError
        If a view is no grey image, the shapes differ, `rig` is no `Rig`, there is no such method,
        or the method cannot work with this rig or depth range.
    OptionsError
        If options are unknown or out of range; the message names all of them.

    Warns
    -----
    DepthWarning
        For each likely cause of a poor result, such as swapped views; `DepthMap.warnings` has the
        same sentences, and `d3s depth` prints them.

    See Also
    --------
    DepthMap : The result; what `sigma_m` and `confidence` mean.
    JointOptions, ConsensusOptions : Options with their defaults.
    d3s.Rig.load : Read the rig file of a camera.

    Notes
    -----
    The result has the same bytes for any number of threads. The environment variable `D3S_THREADS`
    sets their number; the default is one per core. The first call compiles the kernels, which takes
    up to a minute, and stores them on disk.

    Examples
    --------
    Estimate the depth of a simulated wall, 0.8 m before the camera of the paper:

    >>> import d3s
    >>> import numpy as np
    >>> rig = d3s.Rig.paper_prototype()
    >>> pair = d3s.simulate(d3s.Plane(depth_m=0.8), rig, noise=0.01, shape=(120, 180))
    >>> depth_map = d3s.estimate(pair.left, pair.right, rig)
    >>> print(f"{np.nanmedian(depth_map.depth_m):.2f} m")
    0.80 m

    Look for depths in a known range only, with the algorithm of the paper:

    >>> depth_map = d3s.estimate(
    ...     pair.left, pair.right, rig, method="consensus", options={"depth_range_m": (0.5, 1.5)}
    ... )
    >>> depth_map.method
    'consensus'
    """
    found = estimate_quietly(left, right, rig, method=method, options=options)
    for words in found.warnings:
        warnings.warn(words, DepthWarning, stacklevel=2)
    return found


def estimate_quietly(
    left: Any,
    right: Any,
    rig: Rig,
    *,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
) -> DepthMap:
    """Estimate as `estimate` does, without issuing the warnings: they are in the result.

    For callers that estimate many pairs and report the warnings themselves.

    Parameters
    ----------
    left, right, rig, method, options
        As for `estimate`, which also has the exceptions.
    """
    if not isinstance(rig, Rig):
        raise InputError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    method_options = checked_options(method, options)
    if rig.optics.baseline_m == 0 and method not in WITHOUT_BASELINE:
        raise InputError(
            f"method={method!r} compares views from two points, but the rig has "
            "optics.baseline_m=0, two focuses of one view. Use method='defocus'."
        )
    function, _ = method_of(method).load()
    pair = checked_pair(left, right)
    method_options = _over_known_range(method_options, rig, pair)
    found = _with_warnings(lambda views: function(*views, rig, method_options), pair)
    colour = colour_of(left)
    return found if colour is None else replace(found, colour=colour)


def _over_known_range(options: Options, rig: Rig, pair: CheckedPair) -> Options:
    """Options that search the disparities of the rig or of the pair, unless they name depths."""
    if options.depth_range_m is not None or options.candidates_m is not None:
        return options
    known = None if rig.stereo is None else rig.stereo.disparity_range_px
    if known is not None:
        return options.replace(depth_range_m=rig.optics.depth_range_m(known))
    found_m = None
    if rig.optics.aperture_radius_m == 0:
        from d3s.estimate.own_range import range_of_pair  # compiled loops: slow to import

        found_m = range_of_pair(pair, rig)
    return options if found_m is None else options.replace(depth_range_m=found_m)


def _with_warnings(run: Callable[[CheckedPair], DepthMap], pair: CheckedPair) -> DepthMap:
    """Estimate a pair, with the likely causes of a poor result as warnings, and the left view."""
    # compiled loops: slow to import
    from d3s.estimate.aligned_views import estimate_aligned
    from d3s.estimate.diagnosis import warnings_of

    started = perf_counter()
    found, diagnosis = estimate_aligned(run, pair)
    words = warnings_of(diagnosis, found.rig.optics, found.rig.stereo)
    rest_s = perf_counter() - started - sum(found.timings_s.values())
    return replace(
        found,
        intensity=pair.left,
        warnings=(*found.warnings, *words),
        timings_s=found.timings_s | {"diagnosis": rest_s},
        comparison=diagnosis.comparison,
    )


def checked_options(method: Any, options: Any) -> Options:
    """Return options in the class of a method, from this class, a mapping of fields, or None.

    Raises
    ------
    InputError
        If there is no such method, or the options are of another type.
    OptionsError
        If a field is unknown or out of range.
    """
    kind = method_of(method).load_options()
    if options is None:
        return kind()
    if isinstance(options, kind):
        return options
    if isinstance(options, Mapping):
        return kind(**options)
    raise InputError(
        f"options={short_repr(options)} must be {kind.__name__}, or a table of its fields, for "
        f"method={method!r}."
    )


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Parse NAME or NAME:FIELD=VALUE:... into method and options, without checking that they exist.

    Raises
    ------
    InputError
        If an option has no value.
    """
    method, *settings = text.split(":")
    bare = next((one for one in settings if "=" not in one), None)
    if bare is not None:
        raise InputError(
            f"method {text!r} has {bare!r}, which says no value. Write NAME:FIELD=VALUE, such as "
            "consensus:min_confidence=0.8."
        )
    return method, dict(map(parse_option, settings))


def parse_option(text: str) -> tuple[str, Any]:
    """Parse FIELD=VALUE into field and value.

    A value is JSON, such as 0.8, true or [0.3, 2.0]; any other text is a string.

    Raises
    ------
    InputError
        If there is no value.
    """
    field, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"{text!r} says no value. Write FIELD=VALUE, such as min_confidence=0.8.")
    try:
        return field, json.loads(value)
    except (ValueError, RecursionError):
        return field, value
