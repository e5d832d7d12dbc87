"""Lenses whose blur and disparity change over the field, for rigs whose calibration knows them.

At the place (x, y) of the left view and the disparity d, the blur variances of the views are
tensors; a point is seen at x - d in the right view. Places are in units of
`LensMaps.field_radius_px`, from the middle of the view.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from d3s.estimate.joint.correction import SizeCorrection
from d3s.rig import LensMaps, Optics, Rig
from d3s.rig.variance import polynomial_degree, power_table
from d3s.types import FloatArray

_FOCUS_DEGREE = 2  # of the change of focus over the field


# Smoothing from which on views are more like those at a half and a quarter of their size.
_HALF_PX, _QUARTER_PX = 1.25, 2.7


class ScaleLimits(NamedTuple):
    """Blur from which on a cell may be fitted at a scale; lengths in pixels of the frame."""

    scale: int
    blur_px2: float  # blur variance of either view, along its widest direction
    difference_px2: float  # half the difference of the variances, along its widest direction


BLUR_RADIUS_PX = {2: 4.5, 4: 6.0}
"""Blur radius from which on views are fitted at a scale, in pixels of the frame.

Wide blur loses nothing by shrinking, and second derivatives of full-size views are noisy.
"""
DEFOCUS_PX2 = 0.7
"""Half the difference of the blur variances that a Laplacian still models well, in square pixels of
its scale."""


COMA_GAIN = 1.25
"""Factor of the skew of spots, for higher powers of the wave number and derivatives over pixels.

The shift of waves by coma falls faster than k² s² / 3 says, and third derivatives of views are
weaker than those of the waves in them. From the tuning textures, seen by the tuning camera.
"""


SMOOTHING_PX = {1: 1.0, 2: 1.5, 4: 5.0}
"""Smoothing of defocused views by scale, in pixels of the frame.

They hold nothing finer than 1 px; shrunk views are smoothed enough to prevent aliasing."""


COMA_SMOOTHING_PX = {1: 1.75, 2: 3.0, 4: 6.0}
"""Smoothing of views with coma by scale, in pixels of the frame.

Waves so fine that a blur disk reverses them are shifted by several times the coma, against its
direction. Without them the shift differs less from texture to texture: 0.008 px at 1.4 m rather
than 0.043 px. Noise is larger by 1 to 4 % at full size (a tenth in focus) and by 15 % at half size.
From the tuning textures, seen by the tuning camera."""


_LEAST_COMA_PX = 0.2  # at the field radius, from which on views are smoothed for it


class LensField(NamedTuple):
    """Lens maps of a rig and the frame that they are used for."""

    lenses: LensMaps
    optics: Optics
    frame_shape: tuple[int, int]
    correction: SizeCorrection = SizeCorrection()

    @classmethod
    def of(cls, rig: Rig, shape: tuple[int, ...]) -> "LensField | None":
        """Return the lenses of a rig over views of (rows, cols); None without lens maps."""
        lenses = None if rig.calibration is None else rig.calibration.lenses
        if lenses is None:
            return None
        correction = SizeCorrection.of(rig.calibration)
        return cls(lenses, rig.optics, (shape[0], shape[1]), correction)

    @property
    def changes_blur(self) -> bool:
        """Whether blur changes over the field."""
        lenses = self.lenses
        maps = (lenses.focus_left_dpt, lenses.focus_right_dpt)
        extra = (lenses.extra_blur_left_px2, lenses.extra_blur_right_px2)
        return lenses.blur_ratio != 1 or any(np.any(values) for values in (*maps, *extra))

    @property
    def changes_disparity(self) -> bool:
        """Whether there is disparity to subtract."""
        lenses = self.lenses
        maps = (
            *lenses.disparity_px,
            lenses.sharp_disparity_px,
            *self.correction.half_size_px,
            *self.correction.quarter_size_px,
        )
        return any(np.any(values) for values in maps)

    @property
    def per_dpt_px(self) -> float:
        """Disparity per dioptre."""
        return self.optics.focal_length_px * self.optics.baseline_m

    def places(self, shape: tuple[int, ...], cell_px: int) -> tuple[FloatArray, FloatArray]:
        """Return x (cols,) and y (rows, 1) of the centres of cells of `cell_px` frame pixels."""
        rows, cols = self.frame_shape
        radius = self.lenses.field_radius_px
        across = ((np.arange(shape[1]) + 0.5) * cell_px - cols / 2) / radius
        down = ((np.arange(shape[0]) + 0.5) * cell_px - rows / 2) / radius
        return np.asarray(across), np.asarray(down[:, np.newaxis])

    def vergence_dpt(self, disparity_px: ArrayLike) -> NDArray[Any]:
        """Return 1/Z in dioptres at a disparity."""
        return (np.asarray(disparity_px) - self.optics.disparity_offset_px) / self.per_dpt_px

    def blur_px2(
        self, x: ArrayLike, y: ArrayLike, disparity_px: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the blur variances (3, ...) of both views: along x, mixed, along y.

        Parameters
        ----------
        x, y
            Places in the left view.
        disparity_px
            Disparity at these places, in pixels of the frame.
        """
        vergence = self.vergence_dpt(disparity_px)
        moved = np.asarray(x) - np.asarray(disparity_px) / self.lenses.field_radius_px
        left = self.lenses.blur_px2(0, x, y, vergence, self.optics)
        return left, self.lenses.blur_px2(1, moved, y, vergence, self.optics)

    def half_difference_px2(
        self, x: ArrayLike, y: ArrayLike, disparity_px: ArrayLike
    ) -> FloatArray:
        """Return half the difference (3, ...) of the blur variances, right less left.

        Parameters: see `blur_px2`.
        """
        left, right = self.blur_px2(x, y, disparity_px)
        return np.asarray(0.5 * (right - left))

    def fitting_scales(
        self, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike
    ) -> NDArray[np.int64]:
        """Return the scale at which points are fitted with default options: 1, 2 or 4.

        Parameters
        ----------
        x, y
            Places in the left view.
        vergence_dpt
            1/Z of the points.
        """
        disparity_px = self.optics.disparity_offset_px + self.per_dpt_px * np.asarray(vergence_dpt)
        left, right = self.blur_px2(x, y, disparity_px)
        scale = np.ones(left.shape[1:], dtype=np.int64)
        if not self.changes_blur:
            return scale
        blur = np.maximum(widest(left), widest(right))
        difference = widest(0.5 * (right - left))
        for limit in scale_limits(self.optics, sorted(BLUR_RADIUS_PX), 1):
            scale[(blur > limit.blur_px2) | (difference > limit.difference_px2)] = limit.scale
        return scale

    def remaining_disparity_px(
        self, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike, coarsest_scale: int
    ) -> FloatArray:
        """Return the disparity that lenses add to that of the depth, in smoothed views.

        Maps of views at half or a quarter of their size hold where blur is so wide that the
        calibration has fitted them at this size: elsewhere those of a finer size serve.

        Parameters
        ----------
        x, y
            Places in the left view.
        vergence_dpt
            1/Z of the points.
        coarsest_scale
            1, 2 or 4: the size that is as smooth as the views.
        """
        scales = np.minimum(self.fitting_scales(x, y, vergence_dpt), coarsest_scale)
        out = np.zeros(scales.shape)
        for scale in np.unique(scales).tolist():
            further_px = self.correction.maps_px(scale)
            maps = self.lenses.remaining_disparity_px(x, y, vergence_dpt, self.optics, further_px)
            out = np.where(scales == scale, maps, out)
        return out

    @property
    def smoothing_px(self) -> dict[int, float]:
        """Smoothing of the views by scale, in pixels of the frame."""
        return COMA_SMOOTHING_PX if self.has_coma else SMOOTHING_PX

    @property
    def has_coma(self) -> bool:
        """Whether coma grows over the field so much that views are smoothed more for it."""
        return bool(np.abs(self.coma_px[:, 2]).max() >= _LEAST_COMA_PX)

    @property
    def coma_px(self) -> FloatArray:
        """Coma (2 views, 3) as in `LensMaps.coma_left_px`."""
        return np.array([self.lenses.coma_left_px, self.lenses.coma_right_px])

    def coma_difference(
        self, x: ArrayLike, y: ArrayLike, disparity_px: ArrayLike, scale: int
    ) -> FloatArray:
        """Return a third of coma times blur variance (2, ...), left less right, along x and y.

        In pixels of the scale, times `COMA_GAIN`: factors of the third derivatives of the views.

        Parameters
        ----------
        x, y, disparity_px
            See `blur_px2`.
        scale
            Frame pixels per pixel of the scale: 1, 2 or 4.
        """
        left, right = self.blur_px2(x, y, disparity_px)
        moved = np.asarray(x) - np.asarray(disparity_px) / self.lenses.field_radius_px
        first, second = self.lenses.coma_px(0, x, y), self.lenses.coma_px(1, moved, y)
        along = first[0] * left[0] - second[0] * right[0]
        down = first[1] * left[2] - second[1] * right[2]
        return np.stack([along, down]) * (COMA_GAIN / (3 * scale**3))

    def tensor_maps(self) -> FloatArray:
        """Return polynomials (2 views, 4, power of x, power of y) of focus and extra blur, in px.

        Focus along x, mixed and along y, times the blur per dioptre; and the extra blur variance.
        """
        lenses, optics = self.lenses, self.optics
        extra = [
            np.asarray(values)
            for values in (lenses.extra_blur_left_px2, lenses.extra_blur_right_px2)
        ]
        degree = max(_FOCUS_DEGREE, *(polynomial_degree(values.size) for values in extra))
        maps = np.zeros((2, 4, degree + 1, degree + 1))
        for camera in (0, 1):
            lens = optics.lens(camera)
            for plane, coefficients in enumerate(lenses.focus_maps_dpt(camera)):
                maps[camera, plane] = power_table(coefficients, degree)
            on_axis = lens.optical_power_dpt - 1 / lens.sensor_distance_m
            maps[camera, [0, 2], 0, 0] += on_axis
            maps[camera, :3] *= self.blur_per_dpt_px * (1.0, lenses.blur_ratio)[camera]
            maps[camera, 3] = power_table(extra[camera], degree)
        return maps

    @property
    def blur_per_dpt_px(self) -> float:
        """Blur sigma of the left view per dioptre from focus."""
        lens = self.optics.lens(0)
        return lens.aperture_gaussian_width * self.optics.focal_length_px * lens.aperture_radius_m

    def disparity_maps(self, scale: int) -> FloatArray:
        """Return polynomials (terms, power of x, power of y) of the disparity that lenses add.

        The first term is that of sharp views; the others are of the powers of the vergence.

        Parameters
        ----------
        scale
            1, or 2 or 4 if the views are fitted at a half or a quarter of their size.
        """
        lenses = self.lenses
        parts = (lenses.disparity_px, self.correction.maps_px(scale))
        sizes = [len(one) for maps in parts for one in maps]
        degree = max(map(polynomial_degree, (*sizes, len(lenses.sharp_disparity_px))))
        powers = max(*(len(maps) for maps in parts), 1)
        out = np.zeros((1 + powers, degree + 1, degree + 1))
        out[0] = power_table(lenses.sharp_disparity_px, degree)
        for maps in parts:
            for power, one in enumerate(maps):
                out[1 + power] += power_table(one, degree)
        return out


def lens_field(rig: Rig, shape: tuple[int, ...]) -> LensField | None:
    """Return the lenses of a rig over views of (rows, cols); None if they are alike everywhere."""
    field = LensField.of(rig, shape)
    return field if field and (field.changes_blur or field.changes_disparity) else None


def scale_limits(
    optics: Optics, scales: Sequence[int], finest_scale: int
) -> tuple[ScaleLimits, ...]:
    """Return the blur from which on each scale serves.

    Parameters
    ----------
    optics
        The camera.
    scales
        Scales, increasing: 2 and 4.
    finest_scale
        Scale that serves for any blur, with all finer ones.
    """
    width = optics.aperture_gaussian_width
    return tuple(
        ScaleLimits(scale, (BLUR_RADIUS_PX[scale] * width) ** 2, DEFOCUS_PX2 * (scale / 2) ** 2)
        if scale > finest_scale
        else ScaleLimits(scale, -1.0, -1.0)
        for scale in scales
    )


def scale_of_smoothing(sigma_px: float) -> int:
    """Return the scale of the joint method, 1, 2 or 4, whose smoothing is like a prefilter."""
    return 4 if sigma_px >= _QUARTER_PX else 2 if sigma_px >= _HALF_PX else 1


def widest(tensor: FloatArray) -> FloatArray:
    """Return the largest magnitude of a tensor along any direction."""
    across, mixed, down = tensor
    return np.asarray(np.abs(across + down) / 2 + np.hypot((across - down) / 2, mixed))
