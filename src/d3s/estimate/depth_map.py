"""`DepthMap`, the result of every method: depth, standard deviation, confidence and flags."""

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.estimate.flags import Flag
from d3s.estimate.options import Options
from d3s.optics.stereo import disparity_error_px
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import Image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

    from d3s.estimate.diagnosis.light import ViewDifferences
    from d3s.estimate.pixels import Distance, PixelDepth
    from d3s.files.depth_image import Points


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DepthMap:
    """Depth of each pixel of the left view with its uncertainty, as `d3s.estimate` returns it.

    All arrays are (rows, cols), the shape of the left view. A pixel either has a depth, a sigma and
    no flag but the remarks CARRIED and ENCLOSED, or `depth_m` and `sigma_m` are NaN and at least
    one flag says why. No depth is filled in or clamped, unless `d3s densify` is asked to: such
    depths have the flag FILLED. The fields cannot be assigned to.

    Parameters
    ----------
    depth_m
        Depth in metres, above 0, along the optical axis from the plane of the lenses. float32, NaN
        where there is no depth.
    sigma_m
        Standard deviation of `depth_m` in metres, at least 0. float32, NaN where there is no depth.
    confidence
        Confidence from 0 (none) to 1. float32, finite everywhere: pixels without a depth keep the
        confidence that they had before flags were applied.
    flags
        Bits of `d3s.Flag`, uint16; 0 or remarks where a depth is measured, FILLED and the reasons
        why none was where it is filled in. `valid` tells where there is a depth.
    rig
        The camera.
    method
        Name of the method, a key of `d3s.estimate.methods.methods()`.
    options
        Options of the method.
    warnings
        Likely causes of a poor result, each with what was measured and a remedy; empty for a good
        pair. docs/estimator.md has the list.
    timings_s
        Run time of each stage in seconds, by the name of the stage.
    intensity
        The left view, float32, NaN where a pixel is missing; shifted and scaled if float32 cannot
        hold the given values exactly. It may be the array that was given, not a copy. None if the
        depth map was made without it.
    colour
        Colours of the left view, RGB (rows, cols, 3) uint8 by the sRGB curve, as screens show them,
        for point clouds and pictures. None for grey views.
    comparison
        Rows and light of both views compared at their matches, by which a
        `d3s.estimate.diagnosis.DriftWatch` notices a camera that has moved. None if it was not
        measured; it is not saved.

    Notes
    -----
    `sigma_m` is predicted for each pixel from this pair alone, without known depths. For "joint" it
    contains the measured noise and misfit of the views propagated through the least squares, the
    bend of the surface, and the rectification error of the options; on simulated planes about two
    thirds of the errors are within one sigma, as for a normal distribution. It does not contain
    errors of the calibration, nor gross errors such as false matches: confidence and flags are for
    these. For "consensus" it does not contain the systematic error of the method, which is often
    larger. Other methods define `sigma_m` in the docstrings of their modules in `d3s.lab.peers`.

    `confidence` is defined by the method, so values of two methods do not compare. For "joint" it
    is 1 / (1 + P / p + s / q): P is the probability that the disparity is wrong by more than a
    pixel, s the standard deviation of the disparity in pixels, p and q the values at which each of
    them alone makes the confidence a half. For "consensus" it is Eq. 14 of the paper: how well the
    predicted depths agree with the candidate depth. It is not a probability.

    See Also
    --------
    d3s.estimate : Make a depth map of a pair.
    d3s.Flag : Reasons why a pixel has no depth, and remarks on depths.
    d3s.estimate.flags.describe : Flags of a pixel in words.

    Examples
    --------
    >>> import d3s
    >>> rig = d3s.Rig.paper_prototype()
    >>> pair = d3s.simulate(d3s.Plane(depth_m=0.8), rig, noise=0.01, shape=(120, 180))
    >>> depth_map = d3s.estimate(pair.left, pair.right, rig)
    >>> depth_map.depth_m.shape
    (120, 180)

    Look at one pixel, and measure the distance between two:

    >>> print(depth_map.at(60, 90))
    row 60, column 90: 0.8001 m, sigma 0.11 mm, confidence 0.93
    >>> print(depth_map.distance((60, 60), (60, 120)))
    0.007935 m, sigma 0.0014 mm

    Keep confident depths with a standard deviation of at most 1 mm, and save them:

    >>> certain = depth_map.filter(min_confidence=0.8, max_sigma_m=0.001)
    >>> certain.density <= depth_map.density
    True
    >>> certain.save("wall.npz")
    >>> d3s.DepthMap.load("wall.npz").density == certain.density
    True
    """

    depth_m: Image
    sigma_m: Image
    confidence: Image
    flags: NDArray[np.uint16]
    rig: Rig
    method: str
    options: Options
    warnings: tuple[str, ...] = ()
    timings_s: dict[str, float] = field(default_factory=dict)
    intensity: Image | None = None
    colour: NDArray[np.uint8] | None = None
    comparison: "ViewDifferences | None" = None

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Mask (rows, cols) of the pixels that have a depth."""
        return np.isfinite(self.depth_m)

    @property
    def density(self) -> float:
        """Share of the pixels that have a depth, 0 to 1."""
        valid = self.valid
        return float(np.count_nonzero(valid) / valid.size)

    @property
    def disparity_px(self) -> Image:
        """Disparity x_left - x_right of each pixel, in pixels; float32, NaN where there is none.

        That of `depth_m` in rectified views: f B / Z plus the disparity at infinity. It can be
        negative if that is.
        """
        return self.rig.optics.disparity_px(self.depth_m).astype(np.float32)

    @property
    def sigma_px(self) -> Image:
        """Standard deviation of `disparity_px`, in pixels; float32, NaN where there is none."""
        optics = self.rig.optics
        sigma = disparity_error_px(
            self.sigma_m,
            self.depth_m,
            focal_length_px=optics.focal_length_px,
            baseline_m=optics.baseline_m,
        )
        return sigma.astype(np.float32)

    def __repr__(self) -> str:
        from d3s.estimate.summary import short_text

        return short_text(self)

    def _repr_html_(self) -> str:
        """HTML of a notebook: a preview, numbers, warnings, and the reasons of holes."""
        from d3s.estimate.plot.notebook import depth_map_html

        return depth_map_html(self)

    def explain(self) -> str:
        """Explain the depth map in sentences: numbers, warnings, and the reasons of holes.

        The warnings are those that `d3s depth` prints.
        """
        from d3s.estimate.summary import explain

        return explain(self)

    def plot(self, *, axes: "Axes | None" = None) -> "Figure":
        """Plot the left view, depth, sigma and the reasons of holes, each with its scale.

        Parameters
        ----------
        axes
            Matplotlib axes to draw the depth into, without the other panels. None makes a new
            figure, which a notebook shows; `savefig` writes it to a file.

        Returns
        -------
        Figure
            The figure of the axes.
        """
        from d3s.estimate.plot.depth_figure import draw_depth, plot_result
        from d3s.estimate.plot.panels import need_matplotlib

        need_matplotlib()
        return plot_result(self) if axes is None else draw_depth(self, axes)

    def at(self, row: SupportsIndex, col: SupportsIndex) -> "PixelDepth":
        """Depth at a pixel: depth, sigma, confidence, and flags in words.

        Parameters
        ----------
        row, col
            Pixel of the left view, counted from 0 at the top left.

        Raises
        ------
        InputError
            If the pixel is outside of the depth map.
        """
        from d3s.estimate.pixels import pixel_depth

        return pixel_depth(self, row, col)

    def distance(self, a: tuple[int, int], b: tuple[int, int]) -> "Distance":
        """Distance in space between two pixels, with its standard deviation, in metres.

        Sigma is propagated from the depths of both pixels, taken as independent. It does not
        contain errors of the calibration.

        Parameters
        ----------
        a, b
            Pixels of the left view as (row, column); both must have a depth.

        Raises
        ------
        InputError
            If a pixel is outside of the depth map, or has no depth.
        """
        from d3s.estimate.pixels import distance

        return distance(self, a, b)

    def points(
        self, *, mask: NDArray[np.bool_] | None = None, colour: NDArray[Any] | None = None
    ) -> "Points":
        """Points in space of the pixels that have a depth, row by row, in metres.

        `points().xyz_m` is an array (points, 3): x right, y down, z forward, the origin at the left
        lens. `sigma_m` (of z), `confidence`, `intensity` and `colour` have a value for each point.

        Parameters
        ----------
        mask
            Pixels to keep (rows, cols), such as ``est.sigma_m < 0.01``. None keeps all.
        colour
            Colours of the left view, RGB (rows, cols, 3), for viewers: 8 or 16 bit, or floats from
            0 to 1. ``image[..., ::-1]`` is the RGB of an image of OpenCV, which is BGR.

        Raises
        ------
        InputError
            If `mask` or `colour` do not have the size of the depth map.
        """
        from d3s.estimate.pixels import points

        return points(self, mask, colour)

    def to_xarray(self) -> "Dataset":
        """Convert to an xarray dataset with units and flags after the CF conventions.

        Raises
        ------
        InputError
            If xarray is not installed.
        """
        from d3s.estimate.dataset import as_dataset

        return as_dataset(self)

    def filter(
        self,
        *,
        min_confidence: float | None = None,
        max_sigma_m: float | None = None,
        carried: bool = True,
        enclosed: bool = True,
        filled: bool = True,
    ) -> Self:
        """Return a depth map without the depths beyond thresholds; this one stays as it is.

        Dropped pixels become NaN in `depth_m` and `sigma_m`; `confidence` stays. Pixels that have
        no depth already, for instance below `min_confidence` of the method's options, stay without.

        Parameters
        ----------
        min_confidence
            Smallest confidence of measured depths to keep, 0 to 1. Lower ones get the flag
            LOW_CONFIDENCE. None keeps all.
        max_sigma_m
            Largest standard deviation to keep, in metres, at least 0. Larger ones get the flag
            LARGE_SIGMA, unless their confidence is too low already. None keeps all.
        carried
            Whether to keep depths with the flag CARRIED, which rest on texture elsewhere in the
            window. If not, the flag CARRIED says why they are missing.
        enclosed
            Whether to keep depths with the flag ENCLOSED, in plain gaps between texture, which the
            option `enclosed` of the method gives. If not, the flag says why they are missing.
        filled
            Whether to keep depths with the flag FILLED, which `d3s densify` has filled in. If not,
            the flag is removed, and the others say why they are missing.

        Raises
        ------
        InputError
            If a threshold is not a number in its range.
        """
        keep = self.valid
        flags = self.flags.copy()
        if min_confidence is not None:
            low = _checked_limit(min_confidence, "min_confidence", 1.0)
            # A filled depth has a sigma; its confidence is that of what was not measured.
            is_filled = (flags & np.uint16(Flag.FILLED)) != 0
            _drop(keep, is_filled | (self.confidence >= low), flags, Flag.LOW_CONFIDENCE)
        if max_sigma_m is not None:
            high = _checked_limit(max_sigma_m, "max_sigma_m", np.inf)
            _drop(keep, self.sigma_m <= high, flags, Flag.LARGE_SIGMA)
        if not carried:
            keep &= (flags & np.uint16(Flag.CARRIED)) == 0
        if not enclosed:
            keep &= (flags & np.uint16(Flag.ENCLOSED)) == 0
        if not filled:
            keep &= (flags & np.uint16(Flag.FILLED)) == 0
            flags &= ~np.uint16(Flag.FILLED)
        return replace(
            self,
            depth_m=np.where(keep, self.depth_m, np.float32(np.nan)),
            sigma_m=np.where(keep, self.sigma_m, np.float32(np.nan)),
            flags=flags,
        )

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        unit_m: float = 0.001,
        colour: NDArray[Any] | None = None,
    ) -> None:
        """Write a file in the format of its suffix; an error leaves no partial file.

        `.npz` holds everything, and `load` reads it back. `.png` has depths as 16-bit integers in
        units of `unit_m`, 0 where there is no depth. `.tiff`, `.tif`, `.pfm` and `.npy` have depths
        in metres as 32-bit floats, NaN where there is none; `.exr` also has sigma, confidence and
        intensity. `.ply` and `.csv` have a point in metres for each depth. docs/files.md says more.

        Parameters
        ----------
        path
            File to write.
        overwrite
            Whether to replace a file that holds something else.
        unit_m
            Depth of the value 1 in a PNG file, in metres. Other formats ignore it.
        colour
            Colours of the left view, RGB (rows, cols, 3), for `.npz` and the points of `.ply` and
            `.csv`, as for `points`. Other formats ignore it.

        Raises
        ------
        InputError
            If the suffix is unknown, or a depth does not fit into the 16 bits of a PNG file.
        OutputError
            If the file cannot be written, or would replace another without `overwrite`.

        See Also
        --------
        DepthMap.load : Read an NPZ file.
        """
        from d3s.estimate.saving import save

        save(self, path, overwrite=overwrite, unit_m=unit_m, colour=colour)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "DepthMap":
        """Read a depth map from an NPZ file of `save`, equal to the last bit.

        Parameters
        ----------
        path
            File to read. Nothing in it is executed.

        Raises
        ------
        InputError
            If the file is missing or damaged, or holds something else.
        """
        from d3s.estimate.saving import load

        return load(path)


def _drop(
    keep: NDArray[np.bool_], passes: NDArray[np.bool_], flags: NDArray[np.uint16], flag: Flag
) -> None:
    """Flag the kept pixels that do not pass, and drop them from `keep`, in place."""
    flags[keep & ~passes] |= np.uint16(flag)
    keep &= passes


def check_limits(*, min_confidence: float | None = None, max_sigma_m: float | None = None) -> None:
    """Check the thresholds of `DepthMap.filter` before there is a depth map.

    Raises
    ------
    InputError
        If a threshold is not a number in its range.
    """
    if min_confidence is not None:
        _checked_limit(min_confidence, "min_confidence", 1.0)
    if max_sigma_m is not None:
        _checked_limit(max_sigma_m, "max_sigma_m", np.inf)


def _checked_limit(value: float, name: str, highest: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= highest:
        limit = "to 1" if highest == 1 else "up, in metres"
        raise InputError(f"{name}={short_repr(value)} must be a number from 0 {limit}.")
    return number
