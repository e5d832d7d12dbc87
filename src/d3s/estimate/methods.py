"""`estimate`: one call for every method, and the table of methods by name."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.images import CheckedPair, checked_pair
from d3s.estimate.options import Options
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import Image


class Method(NamedTuple):
    """Module, function and options class of a method, imported on first use.

    Only their names are stored, so this package does not import `d3s.peers`.
    """

    module: str
    function: str  # takes (left, right, rig, options), with views as `checked_pair` returns them
    options: str  # class, in the same module

    def load(self) -> tuple[Callable[[Image, Image, Rig, Any], DepthMap], type[Options]]:
        """Import the method; return its function and the class of its options."""
        module = import_module(self.module)
        return getattr(module, self.function), getattr(module, self.options)


METHODS = {
    "joint": Method("d3s.estimate.joint.method", "estimate_joint", "JointOptions"),
    "consensus": Method("d3s.estimate.consensus.method", "estimate_consensus", "ConsensusOptions"),
    "sgbm": Method("d3s.peers.opencv", "estimate_sgbm", "SgbmOptions"),
    "bm": Method("d3s.peers.opencv", "estimate_bm", "BmOptions"),
    "sift": Method("d3s.peers.sift", "estimate_sift", "SiftOptions"),
    "phase": Method("d3s.peers.phase", "estimate_phase", "PhaseOptions"),
    "guo2017": Method("d3s.peers.guo2017", "estimate_guo2017", "Guo2017Options"),
    "li2010": Method("d3s.peers.li2010", "estimate_li2010", "Li2010Options"),
    "takeda2013": Method("d3s.peers.takeda2013", "estimate_takeda2013", "Takeda2013Options"),
}
"""Methods of `estimate` by name: ours, the paper's, and published methods to compare with."""


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
        infinite and masked pixels count as missing. The arrays are not changed.
    rig
        The camera that took the pair. `Rig.from_pinhole` describes any other rectified stereo pair.
    method
        "joint", our method; "consensus", the paper's algorithm as printed; or another method of
        `d3s.estimate.methods.METHODS`: "sgbm", "bm", "sift", "phase", "guo2017", "li2010",
        "takeda2013".
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
    if not isinstance(rig, Rig):
        raise InputError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    method_options = checked_options(method, options)
    function, _ = METHODS[method].load()
    pair = checked_pair(left, right)
    return _with_warnings(function(*pair, rig, method_options), pair)


def _with_warnings(found: DepthMap, pair: CheckedPair) -> DepthMap:
    """Add the likely causes of a poor result to its warnings, and the left view."""
    from d3s.estimate.diagnosis import diagnose, warnings_of  # compiled loops: slow to import

    started = perf_counter()
    diagnosis = diagnose(pair, found)
    words = warnings_of(diagnosis, found.rig.optics)
    times_s = found.timings_s | {"diagnosis": perf_counter() - started}
    return replace(
        found,
        intensity=pair.left,
        warnings=(*found.warnings, *words),
        timings_s=times_s,
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
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"method={short_repr(method)} must be one of {', '.join(METHODS)}.")
    _, kind = METHODS[method].load()
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
