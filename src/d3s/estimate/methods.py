"""`estimate`: one call for every method, and the table of their names."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.images import checked_pair
from d3s.estimate.options import Options
from d3s.record import shown
from d3s.rig import Rig
from d3s.types import Image


class Method(NamedTuple):
    """Where a method lives: it is imported when it is asked for.

    So peers may stand in the table although nothing in this package depends on them.
    """

    module: str
    function: str  # of (left, right, rig, options), images as `checked_pair` gives them
    options: str  # the class of its options

    def load(self) -> tuple[Callable[[Image, Image, Rig, Any], DepthMap], type[Options]]:
        """Import the method and the class of its options."""
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


def estimate(
    left: Any,
    right: Any,
    rig: Rig,
    *,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
) -> DepthMap:
    """Depth of each pixel of the left view of a rectified pair.

    Parameters
    ----------
    left, right
        Grey images (rows, cols) of linear intensity, any real numbers; NaN where there is none.
    rig
        The camera that took them.
    method
        "joint", ours; "consensus", the paper's algorithm as printed; or a peer of `METHODS`.
    options
        Of the method: `JointOptions`, `ConsensusOptions` and so on, or a table of their fields.

    Raises
    ------
    InputError, OptionsError
        Naming what cannot be right, before anything is computed.

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
        raise InputError(f"rig={shown(rig)} must be a Rig. Read a rig file with Rig.load.")
    told = checked_options(method, options)
    function, _ = METHODS[method].load()
    pair = checked_pair(left, right)
    return replace(function(*pair, rig, told), intensity=pair.left)


def checked_options(method: Any, options: Any) -> Options:
    """Options as a method takes them: its own class, a table of their fields, or its defaults.

    Raises
    ------
    InputError, OptionsError
        When there is no such method, or it cannot be told that.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"method={shown(method)} must be one of {', '.join(METHODS)}.")
    _, kind = METHODS[method].load()
    if options is None:
        return kind()
    if isinstance(options, kind):
        return options
    if isinstance(options, Mapping):
        return kind(**options)
    raise InputError(
        f"options={shown(options)} must be {kind.__name__}, or a table of its fields, for "
        f"method={method!r}."
    )


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Method and options from NAME or NAME:FIELD=VALUE:...; whether they exist is not checked.

    Raises
    ------
    InputError
        When an option has no value.
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
    """Field and value from FIELD=VALUE.

    A value is JSON: a number, true, [0.3, 2.0]; what is not is a word.

    Raises
    ------
    InputError
        When there is no value.
    """
    field, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"{text!r} says no value. Write FIELD=VALUE, such as min_confidence=0.8.")
    try:
        return field, json.loads(value)
    except (ValueError, RecursionError):
        return field, value
