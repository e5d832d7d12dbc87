"""Errors of real lenses: distortion, focus over the field, wavefront, pupil and light.

Places in a view are (x, y) from the axis of the lens over `field_radius_px`, as in
`d3s.rig.lens_maps.LensMaps`; directions are those of the upright view, x to the right and y down.
"""

import os
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from d3s.atomic import write_text
from d3s.document import DocumentKind
from d3s.errors import SceneError
from d3s.lab.twin.geometry import ScenePart, View
from d3s.lab.twin.sensor import seed_sequence
from d3s.optics.wavefront import clip_distance, overlap_share
from d3s.types import FloatArray

_Offset = Annotated[float, Field(ge=-1e3, le=1e3)]  # px
_Distortion = Annotated[float, Field(ge=-0.1, le=0.1)]
_Decentring = Annotated[float, Field(ge=-0.05, le=0.05)]
_Error = Annotated[float, Field(ge=-20, le=20)]  # dpt or waves
_Shift = Annotated[float, Field(ge=-0.01, le=0.01)]  # m
_Loss = Annotated[float, Field(ge=-1, le=1)]
_Leak = Annotated[float, Field(ge=0, le=0.5)]


class LensErrors(ScenePart):
    """Errors of one lens, none by default.

    Errors that grow towards the edge of the field have their value at `field_radius_px`.

    Examples
    --------
    >>> import d3s
    >>> curved = d3s.LensErrors(focus_sagittal_dpt=1.5, focus_tangential_dpt=3.0)
    >>> wall, rig = d3s.Plane(depth_m=0.8), d3s.Rig.paper_prototype()
    >>> pair = d3s.simulate(wall, rig, shape=(120, 180), lenses=(curved, curved))
    >>> pair.left.shape
    (120, 180)
    """

    field_radius_px: float = Field(
        default=902.0, gt=1, le=1e5, description="the unit of places in the view"
    )
    centre_x_px: _Offset = Field(
        default=0.0,
        description="the centre of distortion, focus, coma and clipping, right of the axis",
    )
    centre_y_px: _Offset = Field(default=0.0, description="the same centre, below the axis")
    distortion_third: _Distortion = Field(
        default=0.0, description="radial distortion that grows as r³, of r"
    )
    distortion_fifth: _Distortion = Field(
        default=0.0, description="radial distortion that grows as r⁵, of r"
    )
    decentring_x: _Decentring = Field(
        default=0.0, description="distortion of a lens decentred along x"
    )
    decentring_y: _Decentring = Field(
        default=0.0, description="distortion of a lens decentred along y"
    )
    focus_tilt_x_dpt: _Error = Field(default=0.0, description="change of focus that grows with x")
    focus_tilt_y_dpt: _Error = Field(default=0.0, description="change of focus that grows with y")
    focus_sagittal_dpt: _Error = Field(
        default=0.0,
        description="sagittal change of focus that grows as r²; positive: nearer points are sharp",
    )
    focus_tangential_dpt: _Error = Field(
        default=0.0, description="tangential change of focus that grows as r²"
    )
    wavelength_m: float = Field(
        default=550e-9, gt=1e-7, lt=2e-5, description="the wavelength that is one wave below"
    )
    spherical_waves: _Error = Field(
        default=0.0, description="spherical aberration at the rim of the pupil"
    )
    coma_x_waves: _Error = Field(
        default=0.0, description="coma along x at the rim, all over the field"
    )
    coma_y_waves: _Error = Field(
        default=0.0, description="coma along y at the rim, all over the field"
    )
    coma_field_waves: _Error = Field(
        default=0.0, description="radial coma at the rim that grows as r"
    )
    aperture_shift_x_m: _Shift = Field(
        default=0.0, description="the aperture's offset to the right"
    )
    aperture_shift_y_m: _Shift = Field(default=0.0, description="the aperture's offset downwards")
    clipping: float = Field(
        default=0.0,
        ge=-0.8,
        le=0.8,
        description="the share of the pupil that a second opening cuts off, whose offset grows "
        "with r; positive: on the outer side",
    )
    clipping_radius: float = Field(
        default=1.0,
        ge=1,
        le=3,
        description="the radius of the opening that cuts the pupil off, over the aperture's",
    )
    transmission: float = Field(
        default=1.0, ge=0, le=100, description="the share of light that the lens passes"
    )
    falloff: _Loss = Field(default=0.0, description="the share of light lost, which grows as r²")
    falloff_fourth: _Loss = Field(
        default=0.0, description="the share of light lost, which grows as r⁴"
    )
    falloff_centre_x_px: _Offset = Field(
        default=0.0, description="the brightest place, right of the axis"
    )
    falloff_centre_y_px: _Offset = Field(
        default=0.0, description="the brightest place, below the axis"
    )
    glare: _Leak = Field(
        default=0.0, description="the share of light that is spread over the field"
    )
    crosstalk: _Leak = Field(
        default=0.0, description="the share of the other lens's light that gets in"
    )

    @property
    def clip_offset(self) -> float:
        """Offset of the second opening at the field radius, over the radius of the aperture.

        It is negative, towards the axis, if the outer side of the pupil is cut off.
        """
        distance = clip_distance(abs(self.clipping), self.clipping_radius)
        return -distance if self.clipping > 0 else distance

    @property
    def has_distortion(self) -> bool:
        """Whether straight lines are bent."""
        return bool(
            self.distortion_third or self.distortion_fifth or self.decentring_x or self.decentring_y
        )

    @property
    def has_blur(self) -> bool:
        """Whether a point spreads otherwise than through a perfect lens."""
        return any(
            getattr(self, name)
            for name in (
                *("focus_tilt_x_dpt", "focus_tilt_y_dpt"),
                *("focus_sagittal_dpt", "focus_tangential_dpt"),
                *("spherical_waves", "coma_x_waves", "coma_y_waves", "coma_field_waves"),
                *("aperture_shift_x_m", "aperture_shift_y_m", "clipping"),
            )
        )

    def centre_px(self, view: View) -> tuple[float, float]:
        """Pixel (x, y) of a view at the centre of the errors."""
        x, y = view.centre_px
        return x + self.centre_x_px, y + self.centre_y_px

    def focus_dpt(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Change of focus against the centre, in dioptres, (3, ...): along x, mixed, along y.

        `x` and `y` are places in units of `field_radius_px`.
        """
        across, down = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        common = self.focus_tilt_x_dpt * across + self.focus_tilt_y_dpt * down
        common = common + self.focus_sagittal_dpt * (across**2 + down**2)
        apart = self.focus_tangential_dpt - self.focus_sagittal_dpt
        return np.stack(
            np.broadcast_arrays(
                common + apart * across**2, apart * across * down, common + apart * down**2
            )
        )

    def illumination(self, view: View, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Share of the light that the lens passes to pixels (x, y) of a view.

        Light that the clipping of the pupil takes away is not in it.

        Parameters
        ----------
        view
            View with the axis of the lens.
        x, y
            Pixels, broadcast with each other.
        """
        axis_x, axis_y = view.centre_px
        across = (np.asarray(x) - axis_x - self.falloff_centre_x_px) / self.field_radius_px
        down = (np.asarray(y) - axis_y - self.falloff_centre_y_px) / self.field_radius_px
        square = across**2 + down**2
        left = 1 - self.falloff * square - self.falloff_fourth * square**2
        return np.asarray(self.transmission * np.maximum(left, 0.0))


PERFECT_LENS = LensErrors()


_HEADER = """\
# The errors of two lenses for D3S; values that are missing are those of a perfect lens. Use it with
#     d3s simulate --lens FILE.toml
# Errors that grow towards the edge of the field have their value at field_radius_px.

"""

LENS_FILE = DocumentKind(noun="lens file", schema_version=1, header=_HEADER, error=SceneError)


class LensFile(ScenePart):
    """Errors of the left and the right lens, as a file."""

    left: LensErrors = Field(default=PERFECT_LENS, description="the errors of the left lens")
    right: LensErrors = Field(default=PERFECT_LENS, description="the errors of the right lens")

    @property
    def lenses(self) -> tuple[LensErrors, LensErrors]:
        """Both lenses, as `simulate` takes them."""
        return self.left, self.right

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a lens file; a SceneError names every field that is wrong."""
        try:
            return cls(**LENS_FILE.read(path))
        except SceneError as error:
            raise SceneError(*error.problems, path=path) from error.__cause__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the file atomically; `LensFile.load` returns equal lenses."""
        write_text(path, LENS_FILE.format(self.model_dump()), overwrite=overwrite)


# A typical lens: a stock achromat of 12 mm at f/6 in a home-made camera.
#
# `benchmarks/ray_trace.py` traces the cemented achromat AC064-013-A of Thorlabs, scaled to the
# focal length of the paper's prototype, with a stop of 2 mm at its front; `benchmarks/results/
# lens_trace.json` holds all figures. The cat-eye pupil is that of the same lens with 2 mm of glass,
# cut to 2 mm across: small lenses clip oblique light at their rear face. Glare of a coated simple
# lens in a matt black box and light past the partition are not traced.

# Sensor distance of the camera that the lens was traced for, and the field radius there.
_SENSOR_DISTANCE_M, _FIELD_RADIUS_M = 0.0121, 902.0 * 2e-6

TYPICAL_LENS = LensErrors(
    field_radius_px=902.0,  # the side of a view of 902 x 1802 pixels of 2 um, 8.5 degrees
    distortion_third=-0.001743,
    distortion_fifth=1.016e-05,
    # The image is formed nearer to the lens by this many metres.
    focus_sagittal_dpt=0.0002093 / _SENSOR_DISTANCE_M**2,
    focus_tangential_dpt=0.000438 / _SENSOR_DISTANCE_M**2,
    spherical_waves=-0.08796,
    coma_field_waves=0.3998,
    # The rear face, 0.206 radii off the middle, cuts the inner side of the pupil off.
    clipping=-round(1 - float(overlap_share(0.206, 1.109)), 5),
    clipping_radius=1.109,
    falloff=0.03553,
    glare=0.01,
    crosstalk=0.003,
)
"""The lens as designed and traced, on its seat and on its axis."""

# Separates the differences of lenses from other streams of a small seed.
_LENS_KEY = int.from_bytes(b"LENS")

# Standard deviations between lenses of a kind.
_TILT_RAD = np.radians(0.5)  # glue: 20 um over a seat of 2 mm
_SENSOR_TILT_RAD = np.radians(0.3)  # of the sensor against the plate of both lenses
_STOP_SHARE = 0.15  # distortion, by a stop 0.1 mm off its place
_POWER_SHARE = 0.02  # curvature, astigmatism and coma, by 1 % of focal length
_COMA_WAVES = 0.02  # centration of 3 arc minutes
_APERTURE_SHIFT_M = 20e-6
_FALLOFF_CENTRE_PX = 10.0
_TRANSMISSION = 0.03  # opening drilled to 1 %, coating, dirt; of the right lens against the left


def typical_lenses(seed: int = 0, *, curvature: bool = True) -> tuple[LensErrors, LensErrors]:
    """Left and right lens of one kind that differ as lenses of a kind do.

    Parameters
    ----------
    seed
        Seed of the differences from the design.
    curvature
        Whether focus changes over the field, by curvature, astigmatism and tilt.

    Examples
    --------
    >>> import d3s
    >>> left, right = d3s.typical_lenses(seed=3)
    >>> left.distortion_third != right.distortion_third
    True
    """
    entropy = seed_sequence(seed).entropy  # refuses a bad seed
    rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_LENS_KEY,)))
    sensor_tilt_dpt = _tilt_dpt(_SENSOR_TILT_RAD) * rng.standard_normal(2)
    left, right = (_one_of_its_kind(rng, sensor_tilt_dpt) for _ in range(2))
    right = right.replace(transmission=1 + _TRANSMISSION * rng.standard_normal())
    if not curvature:
        flat = dict.fromkeys(
            ("focus_sagittal_dpt", "focus_tangential_dpt", "focus_tilt_x_dpt", "focus_tilt_y_dpt"),
            0.0,
        )
        left, right = left.replace(**flat), right.replace(**flat)
    return left, right


def _tilt_dpt(angle_rad: float) -> float:
    """Change of focus at the field radius by a tilt of the image plane: h tan(angle) / s0²."""
    return float(_FIELD_RADIUS_M * np.tan(angle_rad) / _SENSOR_DISTANCE_M**2)


def _one_of_its_kind(rng: np.random.Generator, sensor_tilt_dpt: FloatArray) -> LensErrors:
    # A tilted lens has its axis, the centre of all aberrations, at s0 tan(tilt), and its image
    # plane is tilted with it.
    tilt = _TILT_RAD * rng.standard_normal(2)
    centre_px = np.tan(tilt) * _SENSOR_DISTANCE_M / 2e-6
    focus_dpt = [_tilt_dpt(angle) for angle in tilt] + sensor_tilt_dpt
    stop, power = 1 + np.array([_STOP_SHARE, _POWER_SHARE]) * rng.standard_normal(2)
    coma = _COMA_WAVES * rng.standard_normal(2)
    aperture_m = _APERTURE_SHIFT_M * rng.standard_normal(2)
    brightest_px = _FALLOFF_CENTRE_PX * rng.standard_normal(2)
    design = TYPICAL_LENS
    return design.replace(
        centre_x_px=centre_px[0],
        centre_y_px=centre_px[1],
        distortion_third=design.distortion_third * stop,
        distortion_fifth=design.distortion_fifth * stop,
        focus_tilt_x_dpt=focus_dpt[0],
        focus_tilt_y_dpt=focus_dpt[1],
        focus_sagittal_dpt=design.focus_sagittal_dpt * power,
        focus_tangential_dpt=design.focus_tangential_dpt * power,
        coma_field_waves=design.coma_field_waves * power,
        coma_x_waves=coma[0],
        coma_y_waves=coma[1],
        aperture_shift_x_m=aperture_m[0],
        aperture_shift_y_m=aperture_m[1],
        falloff_centre_x_px=brightest_px[0],
        falloff_centre_y_px=brightest_px[1],
    )
