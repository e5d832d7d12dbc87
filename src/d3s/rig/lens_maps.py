"""Errors of real lenses over the field of view, as a calibration has measured them.

Places in a view are (x, y) from the middle of the rectified view, where the axis of the lens is,
divided by `field_radius_px`. Maps are polynomials in these two numbers, ordered by total degree:
1, x, y, x², xy, y², x³, x²y, ... Maps of the right view have the places of the right view.
"""

from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, BeforeValidator, Field

from d3s.errors import InputError
from d3s.record import Converted, FrozenTable, OneLine
from d3s.rig.optics import Optics, RigPart, by_default
from d3s.rig.variance import DisparityVariance, Maps, term_count
from d3s.types import FloatArray

_MAX_DEGREE = 6
_STEP = 1e-3  # of places, for derivatives
SHARP_PX2 = 1.0
"""Blur variance at which `LensMaps.sharp_disparity_px` counts half."""

# Limits within a view. Less light than this is noise, and a lens that changes the scale more is a
# fisheye, which needs another model.
_LEAST_LIGHT, _MOST_LIGHT = 0.02, 50.0
_LEAST_SCALE, _MOST_SCALE = 0.5, 2.0
_CHECKED_PLACES = 33  # along each side of a view
_BEYOND_PX = 16  # the kernel that resamples a view reaches less far beyond its border


_DEGREES = {term_count(degree): degree for degree in range(_MAX_DEGREE + 1)}
_RULE = (
    f"must have {', '.join(map(str, _DEGREES))} coefficients: all terms of a polynomial in x and y "
    f"up to a total degree of 0 to {_MAX_DEGREE}."
)


def polynomial_terms(x: ArrayLike, y: ArrayLike, degree: int) -> FloatArray:
    """Terms of a polynomial in x and y, (terms, ...), ordered as in the maps."""
    across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    terms = [
        across ** (total - power) * down**power
        for total in range(degree + 1)
        for power in range(total + 1)
    ]
    return np.stack(np.broadcast_arrays(*terms))


def polynomial_at(coefficients: ArrayLike, x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Value of a map at places (x, y).

    The number of coefficients gives the degree.
    """
    values = np.asarray(coefficients, dtype=np.float64)
    if values.ndim != 1 or values.size not in _DEGREES:
        raise InputError(f"a map has {values.size} coefficients, shape {values.shape}: it {_RULE}")
    terms = polynomial_terms(x, y, _DEGREES[values.size])
    return np.asarray(np.tensordot(values, terms, axes=1))


def _complete(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    if len(coefficients) not in _DEGREES:
        raise ValueError(_RULE)
    return coefficients


def _as_tuple(value: Any) -> Any:
    # A record converts its own lists only, and not the lists within them.
    return tuple(value) if isinstance(value, list) else value


_Number = Annotated[float, Field(ge=-1e6, le=1e6)]
_Share = Annotated[float, Field(ge=-1, le=1)]  # beyond it an image is not distorted, but folded
_Distortion = tuple[_Share, _Share, _Share, _Share]
_Coma = tuple[_Number, _Number, _Number]
_Focus = tuple[_Number, _Number, _Number, _Number]
_Map = Annotated[tuple[_Number, ...], BeforeValidator(_as_tuple), AfterValidator(_complete)]
_Maps = Annotated[tuple[_Map, ...], BeforeValidator(_as_tuple), Field(max_length=4)]


class Correction(RigPart):
    """What a method of estimation adds to the disparity of this camera; only the method uses it."""

    method: OneLine = Field(description="the name of the method")
    version: int = Field(ge=1, le=10**6, description="the version of what the method does")
    disparity_px: Annotated[
        dict[OneLine, _Maps], Field(max_length=16), AfterValidator(FrozenTable)
    ] = Field(
        description="disparity to subtract, as maps of the terms of u, by the name that the method "
        "gives them"
    )


class LensMaps(RigPart):
    """Distortion, light, focus and remaining disparity of both views over the field.

    In all methods camera 0 is left and 1 is right, x and y are places in a view in units of
    `field_radius_px`, `vergence_dpt` is 1/Z of the points, and `optics` has focus and aperture on
    the axis.
    """

    field_radius_px: float = Field(
        gt=1, le=1e5, description="the unit of places in a view, such as half of its width"
    )
    distortion_left: Converted[_Distortion] = by_default(
        (0.0, 0.0, 0.0, 0.0),
        "distortion of the left lens: radial of 3rd and 5th order, and decentring along x and y",
    )
    distortion_right: Converted[_Distortion] = by_default(
        (0.0, 0.0, 0.0, 0.0), "distortion of the right lens"
    )
    illumination_left: Converted[_Map] = by_default(
        (1.0,), "map of the light of the left view, relative to its axis"
    )
    illumination_right: Converted[_Map] = by_default(
        (1.0,), "map of the light of the right view, relative to the axis of the left one"
    )
    focus_left_dpt: Converted[_Focus] = by_default(
        (0.0, 0.0, 0.0, 0.0),
        "change of focus over the left view: per x, per y, sagittal and tangential "
        "per square of the distance from `focus_centre_left`",
    )
    focus_right_dpt: Converted[_Focus] = by_default(
        (0.0, 0.0, 0.0, 0.0), "change of focus over the right view"
    )
    focus_centre_left: Converted[tuple[_Share, _Share]] = by_default(
        (0.0, 0.0), "(x, y) of the centre of curvature of the left view's focus"
    )
    focus_centre_right: Converted[tuple[_Share, _Share]] = by_default(
        (0.0, 0.0), "(x, y) of the centre of curvature of the right view's focus"
    )
    blur_ratio: float = Field(
        default=1.0,
        ge=0.5,
        le=2,
        description="blur of the right view over that of the left one, in pixels of the rectified "
        "views, as far from the focus",
    )
    extra_blur_left_px2: Converted[_Map] = by_default(
        (0.0,), "map of the blur variance that the left view has at every depth"
    )
    extra_blur_right_px2: Converted[_Map] = by_default(
        (0.0,), "map of the blur variance that the right view has at every depth"
    )
    coma_left_px: Converted[_Coma] = by_default(
        (0.0, 0.0, 0.0),
        "coma of the left lens, as shift of the light: along x and along y on the "
        "axis, and the growth of both per unit of place",
    )
    coma_right_px: Converted[_Coma] = by_default((0.0, 0.0, 0.0), "coma of the right lens")
    disparity_px: Annotated[Converted[tuple[_Map, ...]], Field(max_length=4)] = Field(
        default=(),
        validate_default=True,
        description="disparity to subtract: maps of the terms 1, u, u², u³ of the vergence u = 1/Z",
    )
    sharp_disparity_px: Converted[_Map] = by_default(
        (0.0,),
        "map of the disparity to subtract where the left view is sharp; it falls to a "
        "half at a blur variance of 1 px²",
    )
    disparity_sigma_px: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="the standard deviation of the disparity that these maps leave on the axis",
    )
    edge_sigma_px: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="more of it at `field_radius_px`, in proportion to the square of the distance "
        "from the axis",
    )
    scale_sigma: float = Field(
        default=0.0, ge=0, le=0.1, description="the relative standard deviation of all depths"
    )
    disparity_errors_px: Annotated[Converted[tuple[_Maps, ...]], Field(max_length=16)] = by_default(
        (),
        "independent errors of the disparity that the calibration cannot exclude, of "
        "one standard deviation each, as maps of the terms of u",
    )

    def focus_dpt(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Change of focus against the axis, in dioptres, (3, ...): along x, mixed, along y.

        Off the axis, blur along the radius and blur across it vanish at two depths: the tangential
        and the sagittal focus. They are the eigenvalues of this tensor. Where a value is positive,
        nearer points are sharp than on the axis.
        """
        return np.stack([polynomial_at(one, x, y) for one in self.focus_maps_dpt(camera)])

    def focus_maps_dpt(self, camera: int) -> FloatArray:
        """Maps (3, 6) of `focus_dpt`: polynomials of degree 2 along x, mixed, along y."""
        per_x, per_y, sagittal, tangential = (self.focus_left_dpt, self.focus_right_dpt)[camera]
        centre_x, centre_y = (self.focus_centre_left, self.focus_centre_right)[camera]
        # Squares of x and y from the centre of curvature, and their product, in the terms of a map.
        x_square = np.array([centre_x**2, -2 * centre_x, 0.0, 1.0, 0.0, 0.0])
        y_square = np.array([centre_y**2, 0.0, -2 * centre_y, 0.0, 0.0, 1.0])
        product = np.array([centre_x * centre_y, -centre_y, -centre_x, 0.0, 1.0, 0.0])
        tilt = np.array([0.0, per_x, per_y, 0.0, 0.0, 0.0])
        return np.stack(
            [
                tilt + tangential * x_square + sagittal * y_square,
                (tangential - sagittal) * product,
                tilt + sagittal * x_square + tangential * y_square,
            ]
        )

    def blur_px2(
        self, camera: int, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike, optics: Optics
    ) -> FloatArray:
        """Blur variance of one view, in px², (3, ...): along x, mixed, along y.

        It is gain² (u - K)² + extra: u is the vergence of the point less that of the focus on the
        axis, K is the tensor of `focus_dpt`, and gain is the blur, in pixels, of one dioptre, times
        `blur_ratio` in the right view.
        """
        width = optics.lens(camera).aperture_gaussian_width
        across, mixed, down = width * self.blur_radii_px(camera, x, y, vergence_dpt, optics)
        extra = polynomial_at((self.extra_blur_left_px2, self.extra_blur_right_px2)[camera], x, y)
        # The square of the symmetric tensor gain (u - K).
        return np.stack(
            [across**2 + mixed**2 + extra, mixed * (across + down), down**2 + mixed**2 + extra]
        )

    def blur_radii_px(
        self, camera: int, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike, optics: Optics
    ) -> FloatArray:
        """Tensor of the radii of the blur disk of one view, in pixels, (3, ...), with signs."""
        lens = optics.lens(camera)
        per_dpt = optics.focal_length_px * lens.aperture_radius_m * (1.0, self.blur_ratio)[camera]
        on_axis = np.asarray(vergence_dpt) - (lens.optical_power_dpt - 1 / lens.sensor_distance_m)
        across, mixed, down = self.focus_dpt(camera, x, y)
        tensor = np.broadcast_arrays(on_axis - across, -mixed, on_axis - down)
        return per_dpt * np.stack(tensor)

    def blur_shift_px(
        self, camera: int, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike, optics: Optics
    ) -> FloatArray:
        """Shift of detail in one view by blur that changes over the field, in pixels, (2, ...).

        Light spreads evenly around each point, but more of it arrives from the side with the wider
        blur: detail is moved by the divergence of the blur variance, away from that side.
        """
        across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        right, left, below, above = (
            self.blur_px2(camera, across + dx, down + dy, vergence_dpt, optics)
            for dx, dy in ((_STEP, 0.0), (-_STEP, 0.0), (0.0, _STEP), (0.0, -_STEP))
        )
        along, up = (
            (after - before) / (2 * _STEP * self.field_radius_px)
            for after, before in ((right, left), (below, above))
        )
        return -np.stack([along[0] + up[1], along[1] + up[2]])

    def coma_px(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Shift of the light by coma, in pixels, (2, ...): along x and y.

        Rectified views and maps of disparity hold this shift already. What it leaves is the skew of
        the spots: waves of frequency k are shifted less, by the share k² s² / 3 at a blur variance
        of s².
        """
        on_x, on_y, growth = (self.coma_left_px, self.coma_right_px)[camera]
        across, down = np.broadcast_arrays(np.asarray(x), np.asarray(y))
        return np.stack([on_x + growth * across, on_y + growth * down])

    def illumination(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Light of one view relative to the axis of the left one."""
        return polynomial_at((self.illumination_left, self.illumination_right)[camera], x, y)

    def remaining_disparity_px(
        self,
        x: ArrayLike,
        y: ArrayLike,
        vergence_dpt: ArrayLike,
        optics: Optics,
        further_px: Maps = (),
    ) -> FloatArray:
        """Disparity that lenses add to that of the depth, in pixels.

        Coma and decentred pupils shift fine detail otherwise than coarse detail, so that the shift
        depends on the blur. Places are in the left view; `further_px` are maps of the terms of u to
        add, such as those of the size at which a method fits.
        """
        vergence = np.asarray(vergence_dpt, dtype=np.float64)
        total = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y), vergence.shape))
        for maps in (self.disparity_px, further_px):
            for power, coefficients in enumerate(maps):
                total += vergence**power * polynomial_at(coefficients, x, y)
        if any(self.sharp_disparity_px):
            blur = self.blur_px2(0, x, y, vergence, optics)
            share = 1 / (1 + 0.5 * (blur[0] + blur[2]) / SHARP_PX2)
            total += share * polynomial_at(self.sharp_disparity_px, x, y)
        return total

    def disparity_variance(
        self, optics: Optics, everywhere_px: float | None = None
    ) -> DisparityVariance:
        """Variance of the disparity that these maps leave, over the field and the vergence.

        The square of `disparity_sigma_px`, of `edge_sigma_px` times that of the distance from the
        axis, of `scale_sigma` times the disparity, and of each of `disparity_errors_px`.

        `everywhere_px` is the standard deviation on the axis: `disparity_sigma_px` if left, or that
        with the drift.
        """
        everywhere = self.disparity_sigma_px if everywhere_px is None else everywhere_px
        edge, per_dpt_px = self.edge_sigma_px, optics.focal_length_px * optics.baseline_m
        known = (
            ((everywhere,),),
            ((0.0, 0.0, 0.0, edge, 0.0, edge),),
            ((0.0,), (self.scale_sigma * per_dpt_px,)),
        )
        errors = (*known, *self.disparity_errors_px)
        return DisparityVariance.of_errors(errors, self.field_radius_px)

    def distorted(self, camera: int, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Places (2, ...) on the sensor of points that a lens without distortion has at (x, y).

        With the radius r: the place times 1 + k3 r² + k5 r⁴, and decentring along the axes.

        Places are from the axis in the raw frame.
        """
        third, fifth, decentring_x, decentring_y = (self.distortion_left, self.distortion_right)[
            camera
        ]
        across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        square = across**2 + down**2
        radial = 1 + third * square + fifth * square**2
        lean = 2 * (decentring_x * across + decentring_y * down)
        return np.stack(
            [
                across * (radial + lean) + decentring_x * square,
                down * (radial + lean) + decentring_y * square,
            ]
        )

    def problem(self, rows_px: int, cols_px: int) -> str:
        """Why these maps cannot correct views of this size, as a sentence; empty if they can.

        Light must be positive all over a view, and distortion must not fold it.
        """
        for camera, side in enumerate(("left", "right")):
            light = self.illumination(camera, *self._grid(rows_px, cols_px))
            if not (light.min() >= _LEAST_LIGHT and light.max() <= _MOST_LIGHT):
                return (
                    f"has light of {light.min():.3g} to {light.max():.3g} within the {side} view "
                    f"of {rows_px} x {cols_px} px: illumination_{side} must be from "
                    f"{_LEAST_LIGHT:g} to {_MOST_LIGHT:g} there. Make the view smaller."
                )
            around = self._grid(rows_px + 2 * _BEYOND_PX, cols_px + 2 * _BEYOND_PX)
            scales = self._scales(camera, *around)
            if not (scales.min() >= _LEAST_SCALE and scales.max() <= _MOST_SCALE):
                return (
                    f"magnifies parts of the {side} view of {rows_px} x {cols_px} px by "
                    f"{scales.min():.3g} to {scales.max():.3g}: with distortion_{side} it must be "
                    f"from {_LEAST_SCALE:g} to {_MOST_SCALE:g}. Make the view smaller."
                )
        return ""

    def _grid(self, rows_px: int, cols_px: int) -> tuple[FloatArray, FloatArray]:
        """Places x and y all over a view."""
        half_y, half_x = ((size - 1) / (2 * self.field_radius_px) for size in (rows_px, cols_px))
        steps = np.linspace(-1, 1, _CHECKED_PLACES)
        x, y = np.meshgrid(half_x * steps, half_y * steps)
        return x, y

    def _scales(self, camera: int, x: FloatArray, y: FloatArray) -> FloatArray:
        """Local magnification by distortion, (2, ...): along x and along y."""
        step = 1e-4
        ahead, behind = (
            (self.distorted(camera, x + sign * step, y), self.distorted(camera, x, y + sign * step))
            for sign in (1, -1)
        )
        along_x, along_y = (ahead[axis][axis] - behind[axis][axis] for axis in (0, 1))
        return np.stack([along_x, along_y]) / (2 * step)
