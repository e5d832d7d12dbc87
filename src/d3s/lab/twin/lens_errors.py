"""Errors of a real lens: distortion, focus over the field, wavefront, pupil and light.

Places in a view are (x, y) from the axis of the lens over `field_radius_px`, as in
`d3s.rig.lens_maps.LensMaps`; directions are those of the upright view, x to the right and y down.
"""

import os
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from d3s.atomic import write_text
from d3s.document import DocumentKind
from d3s.errors import SceneError
from d3s.lab.twin.geometry import ScenePart, View
from d3s.optics.wavefront import clip_distance
from d3s.record import short_repr
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


def check_lenses(lenses: Any) -> None:
    """Refuse lenses that are not two `LensErrors`."""
    are_two = isinstance(lenses, tuple | list) and len(lenses) == 2
    if not are_two or not all(isinstance(lens, LensErrors) for lens in lenses):
        raise SceneError(f"lenses={short_repr(lenses)} must be two of LensErrors, left and right.")


def lens_truth(lenses: tuple[LensErrors, LensErrors]) -> dict[str, NDArray[np.generic]]:
    """Values of both lenses by name, such as lens_left_falloff; empty for perfect lenses."""
    if lenses == (PERFECT_LENS, PERFECT_LENS):
        return {}
    return {
        f"lens_{side}_{name}": np.array(value)
        for side, lens in zip(("left", "right"), lenses, strict=True)
        for name, value in lens.model_dump().items()
    }


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
        """Read a lens file.

        Raises
        ------
        SceneError
            Names the file and every field that is unknown or wrong.
        """
        try:
            return cls(**LENS_FILE.read(path))
        except SceneError as error:
            raise SceneError(*error.problems, path=path) from error.__cause__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the file atomically; `LensFile.load` returns equal lenses.

        Raises
        ------
        OutputError
            If the file cannot be written, or exists with other content and `overwrite` is False.
        """
        write_text(path, LENS_FILE.format(self.model_dump()), overwrite=overwrite)
