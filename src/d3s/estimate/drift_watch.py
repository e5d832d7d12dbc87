"""`DriftWatch`: a camera that has moved, noticed over many frames.

Each depth map has a comparison of its views, which costs nothing more. Over many frames a small
drift stands out that no single frame shows, and the frame from which on it is there.
"""

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from d3s.types import FloatArray

if TYPE_CHECKING:  # compiled loops: slow to import, and a batch watches without them
    from d3s.estimate.depth_map import DepthMap
    from d3s.estimate.diagnosis.light import ViewDifferences

_FEWEST_FRAMES = 4
_SIGMAS = 6.0
# Scatter of good frames beyond their own sigmas: rows and disparity in pixels, and gain. Lenses
# add rows that depend on the depth of the scene.
_SCATTER = np.array([0.05, 0.05, 0.05, 0.005])
# Least size that counts: rows, disparity at the edges by roll and by scale, and gain.
_LIMITS = np.array([0.2, 0.15, 0.15, 0.02])
_HELD_SIGMAS = 2.0  # a drift of the disparity within so many sigmas is held by sigma
_SAME_SHARE = 0.6  # of the frames that must show half of the drift
_WORDS = (
    ("rows are apart by {:+.2f} px", "rows"),
    ("a roll moves disparity by {:+.2f} px at the top and bottom", "roll"),
    ("a scale moves disparity by {:+.2f} px at the sides", "scale"),
    ("the right view is brighter by {:+.1%}", "gain"),
)


class Drift(NamedTuple):
    """Drift that a `DriftWatch` has noticed."""

    first: str  # name of the frame from which on it is there
    frames: int  # frames that show it
    quantities: tuple[str, ...]  # some of rows, roll, scale, gain
    words: str  # warning, as a sentence


class DriftSample(NamedTuple):
    """Contribution of one frame to the search for a drift; JSON can hold it."""

    values: list[float]  # of `edge_disparities`
    sigmas: list[float]
    held_px: float  # disparity that sigma holds


class DriftWatch:
    """Pool the comparisons of the views of many depth maps, and notice a drift.

    Examples
    --------
    >>> import d3s
    >>> from d3s.estimate.diagnosis import DriftWatch
    >>> rig, watch = d3s.Rig.paper_prototype(), DriftWatch()
    >>> for number in range(4):
    ...     scene = d3s.RandomScene(seed=number, patterns=("stone",))
    ...     pair = d3s.simulate(scene, rig, noise=0.01, shape=(200, 300))
    ...     watch.add(f"frame {number}", d3s.estimate(pair.left, pair.right, rig))
    >>> watch.drift() is None
    True
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        # Numbers without objects: a batch may have a million frames.
        self._values, self._sigmas = array("d"), array("d")
        self._held_px = 0.0

    def add(self, name: str, depth_map: "DepthMap") -> None:
        """Add the comparison of one frame, if it has one."""
        sample = drift_sample(depth_map)
        if sample is not None:
            self.add_sample(name, sample)

    def add_sample(self, name: str, sample: DriftSample) -> None:
        """Add what `drift_sample` has found in one frame."""
        self._names.append(name)
        self._values.extend(sample.values)
        self._sigmas.extend(sample.sigmas)
        self._held_px = max(self._held_px, sample.held_px)

    def drift(self) -> Drift | None:
        """Return the drift that the frames show, None if there is none or they are too few."""
        if len(self._names) < _FEWEST_FRAMES:
            return None
        values = np.array(self._values).reshape(-1, _SCATTER.size)
        sigmas = np.hypot(np.array(self._sigmas).reshape(values.shape), _SCATTER)
        held = _HELD_SIGMAS * self._held_px
        limits = np.maximum(_LIMITS, np.array([0.0, held, held, 0.0]))
        found = {}
        for place, limit in enumerate(limits):
            shown = _changed(values[:, place], sigmas[:, place], float(limit))
            if shown is not None:
                found[place] = shown
        if not found:
            return None
        start = min(first for first, _ in found.values())
        parts = ", and ".join(_WORDS[place][0].format(mean) for place, (_, mean) in found.items())
        count = len(self._names) - start
        return Drift(
            first=self._names[start],
            frames=count,
            quantities=tuple(_WORDS[place][1] for place in found),
            words=f"the camera has drifted: from {self._names[start] or 'the first frame'} on, in "
            f"{count} of {len(self._names)} frames, {parts}. Sigma holds a disparity of "
            f"{self._held_px:.2g} px. Find and mend it with d3s check.",
        )


def drift_sample(depth_map: "DepthMap") -> DriftSample | None:
    """Return what one frame tells of a drift, None if nothing.

    Only cameras with lenses are watched: pairs that were rectified elsewhere have errors of their
    own.
    """
    comparison, optics = depth_map.comparison, depth_map.rig.optics
    if comparison is None or optics.aperture_radius_m == 0:
        return None
    values, sigmas = edge_disparities(comparison, depth_map.depth_m.shape)
    age_days = getattr(depth_map.options, "calibration_age_days", 0.0)
    held_px = depth_map.rig.rectification_sigma_px(age_days)
    return DriftSample(values.tolist(), sigmas.tolist(), float(held_px))


def edge_disparities(
    comparison: "ViewDifferences", shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return rows in pixels, disparity at the edges by roll and by scale, and gain; with sigmas.

    Parameters
    ----------
    comparison
        Comparison of the views of a frame.
    shape
        Rows and columns of a view: a roll that moves rows at the sides moves columns at the top
        and bottom, a scale the reverse.
    """
    wide = shape[1] / shape[0]
    parts = (comparison.rows_px, comparison.rows_x_px, comparison.rows_y_px, comparison.gain)
    factors = np.array([1.0, 1 / wide, wide, 1.0])
    values = np.array([one.value for one in parts])
    return values * factors, np.array([one.sigma for one in parts]) * factors


def _changed(values: FloatArray, sigmas: FloatArray, limit: float) -> tuple[int, float] | None:
    """First frame of a drift that lasts to the end, and its mean; None if there is none."""
    weights = sigmas**-2
    sums, total = np.cumsum((weights * values)[::-1])[::-1], np.cumsum(weights[::-1])[::-1]
    means = sums / total
    starts = np.arange(values.size)
    gains = np.where(starts <= values.size - _FEWEST_FRAMES, means**2 * total, -np.inf)
    start = int(np.argmax(gains))
    own, mean = values[start:], float(means[start])
    scatter = float(np.std(own, ddof=1)) / np.sqrt(own.size)
    sigma = max(float(total[start]) ** -0.5, scatter)
    is_shared = np.mean(own * np.sign(mean) > 0.5 * abs(mean)) > _SAME_SHARE
    return (start, mean) if abs(mean) > max(limit, _SIGMAS * sigma) and is_shared else None
