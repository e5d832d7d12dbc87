"""What an estimator gives: depth, its standard deviation, confidence, and why not."""

import os
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options
from d3s.record import shown
from d3s.rig import Rig
from d3s.types import Image


@dataclass(frozen=True, kw_only=True, eq=False)
class DepthMap:
    """Depth of each pixel of the left view, all arrays (rows, cols).

    Where there is no depth, `depth_m` and `sigma_m` are NaN and `flags` says why; `confidence` is
    what it was before, so that one can see how near a pixel came.

    Examples
    --------
    >>> import d3s
    >>> rig = d3s.Rig.paper_prototype()
    >>> pair = d3s.simulate(d3s.Plane(depth_m=0.8), rig, noise=0.01, shape=(120, 180))
    >>> depth_map = d3s.estimate(pair.left, pair.right, rig)
    >>> depth_map.depth_m.shape
    (120, 180)

    Keep confident depths with a standard deviation of at most 1 mm, and save them:

    >>> certain = depth_map.filter(min_confidence=0.8, max_sigma_m=0.001)
    >>> certain.density <= depth_map.density
    True
    >>> certain.save("wall.npz")
    >>> d3s.DepthMap.load("wall.npz").density == certain.density
    True
    """

    depth_m: Image  # along the optical axis, from the plane of the lenses
    sigma_m: Image  # standard deviation of the depth, predicted from this very pair
    confidence: Image  # 0 to 1
    flags: NDArray[np.uint16]  # bits of `Flag`
    rig: Rig
    method: str
    options: Options
    warnings: tuple[str, ...] = ()
    timings_s: dict[str, float] = field(default_factory=dict)  # by stage
    intensity: Image | None = None  # the left view, as it was given: no copy

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Where there is a depth."""
        return np.isfinite(self.depth_m)

    @property
    def density(self) -> float:
        """Share of the pixels that have a depth."""
        return float(self.valid.mean())

    def filter(
        self, *, min_confidence: float | None = None, max_sigma_m: float | None = None
    ) -> Self:
        """Keep the depths that are at least so confident and at most so uncertain.

        What the method itself left out, by the thresholds in its options, stays out.
        """
        keep = self.valid
        flags = self.flags.copy()
        if min_confidence is not None:
            low = _number(min_confidence, "min_confidence", 1.0)
            _drop(keep, self.confidence >= low, flags, Flag.LOW_CONFIDENCE)
        if max_sigma_m is not None:
            high = _number(max_sigma_m, "max_sigma_m", np.inf)
            _drop(keep, self.sigma_m <= high, flags, Flag.LARGE_SIGMA)
        return replace(
            self,
            depth_m=np.where(keep, self.depth_m, np.float32(np.nan)),
            sigma_m=np.where(keep, self.sigma_m, np.float32(np.nan)),
            flags=flags,
        )

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, unit_m: float = 0.001
    ) -> None:
        """Write a file, whole or not at all, in the format that its suffix chooses.

        `.npz` holds everything, and `load` gives it back. `.png` has 16 bit and the unit `unit_m`,
        with 0 where there is no depth. `.tiff` and `.pfm` have depths as 32-bit floats, NaN
        where there is none; `.exr` has sigma, confidence and intensity beside them. `.ply` and
        `.csv` have a point for each depth. docs/files.md says more.

        Parameters
        ----------
        path
            The file to write.
        overwrite
            Whether a file that holds something else may be replaced.
        unit_m
            What 1 means in a PNG file, in metres. All others have metres.

        Raises
        ------
        InputError
            When the suffix is unknown, or a depth does not fit into the 16 bit of a PNG file.
        OutputError
            When the file cannot be written, or would replace another.
        """
        from d3s.estimate.saving import save

        save(self, path, overwrite=overwrite, unit_m=unit_m)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "DepthMap":
        """Read an NPZ file that `save` has written: the very same depth map.

        Raises
        ------
        InputError
            When the file is missing or damaged, or holds something else.
        """
        from d3s.estimate.saving import load

        return load(path)


def _drop(
    keep: NDArray[np.bool_], passes: NDArray[np.bool_], flags: NDArray[np.uint16], flag: Flag
) -> None:
    flags[keep & ~passes] |= np.uint16(flag)
    keep &= passes


def check_limits(*, min_confidence: float | None = None, max_sigma_m: float | None = None) -> None:
    """Refuse what `DepthMap.filter` would refuse, before there is a depth map.

    Raises
    ------
    InputError
        Naming the limit, its value and the rule.
    """
    if min_confidence is not None:
        _number(min_confidence, "min_confidence", 1.0)
    if max_sigma_m is not None:
        _number(max_sigma_m, "max_sigma_m", np.inf)


def _number(value: float, name: str, highest: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= highest:
        limit = "to 1" if highest == 1 else "up, in metres"
        raise InputError(f"{name}={shown(value)} must be a number from 0 {limit}.")
    return number
