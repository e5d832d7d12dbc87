"""Content of files of depth, as plain arrays: an image of depths, or points in space.

The axes are those of the left camera: x right, y down, z forward, the origin at its lens. Pixel
centres are at whole numbers. Unless it is known, the principal point is the middle of the view,
((cols - 1) / 2, (rows - 1) / 2): the views of a calibrated two-lens camera are cut that way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.formats import LAYERS
from d3s.types import Image

# Percentile of the intensity that becomes white, for pictures without a white of their own.
_WHITE_PERCENT = 99.5
Notes = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class DepthImage:
    """Depth of each pixel of the left view, and layers beside it; all (rows, cols)."""

    depth_m: Image  # NaN where there is none
    sigma_m: Image | None = None
    confidence: Image | None = None
    intensity: Image | None = None
    colour: NDArray[np.uint8] | None = None  # (rows, cols, 3), as screens show it
    focal_length_px: float | None = None
    principal_point_px: tuple[float, float] | None = None  # (x, y); the middle of the view if None
    baseline_m: float | None = None  # between both lenses; None if it is not known
    notes: Notes = field(default_factory=dict)  # texts for people, by name
    more: tuple[str, ...] = ()  # names of what the file holds and other formats cannot

    def __post_init__(self) -> None:
        """Check that all layers have one shape."""
        if self.depth_m.ndim != 2 or not self.depth_m.size:
            raise InputError(f"depth has shape {self.depth_m.shape}: it must be (rows, cols).")
        for name in self.layers:
            shape = getattr(self, name).shape
            if shape != self.depth_m.shape:
                raise InputError(
                    f"{name} has shape {shape} and depth {self.depth_m.shape}: they must be alike."
                )
        if self.colour is not None and self.colour.shape != (*self.depth_m.shape, 3):
            raise InputError(
                f"colour has shape {self.colour.shape} and depth {self.depth_m.shape}: it must be "
                "a colour image (rows, cols, 3) of the left view."
            )

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers beside the depth."""
        return tuple(name for name in LAYERS if getattr(self, name) is not None)

    @property
    def density(self) -> float:
        """Share of the pixels that have a depth."""
        return float(np.isfinite(self.depth_m).mean())

    @property
    def intrinsics(self) -> NDArray[np.float64] | None:
        """Matrix K (3, 3) of the left camera, in pixels; None if its focal length is not known."""
        if self.focal_length_px is None:
            return None
        matrix = np.diag([self.focal_length_px, self.focal_length_px, 1.0])
        matrix[:2, 2] = self.centre_px
        return matrix

    @property
    def centre_px(self) -> tuple[float, float]:
        """Principal point (x, y), or the middle of the view."""
        return self.principal_point_px or middle_px(self.depth_m.shape)

    def with_camera(
        self, focal_length_px: float, principal_point_px: tuple[float, float] | None = None
    ) -> Self:
        """Copy with the camera of a rig, for an image without one; None is the view's middle."""
        if self.focal_length_px not in (None, focal_length_px):
            raise InputError(
                f"knows its camera, of focal length {self.focal_length_px:g} px, and the rig has "
                f"{focal_length_px:g} px. Leave the rig, or name the one it was taken with."
            )
        point = self.principal_point_px if self.focal_length_px else principal_point_px
        return replace(self, focal_length_px=focal_length_px, principal_point_px=point)


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Points in space, and layers beside them; all of one length."""

    x_m: Image
    y_m: Image
    z_m: Image
    sigma_m: Image | None = None  # of z
    confidence: Image | None = None
    intensity: Image | None = None
    colour: NDArray[np.uint8] | None = None  # (points, 3), as screens show it
    notes: Notes = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.z_m)

    @property
    def xyz_m(self) -> Image:
        """Coordinates (points, 3) in metres: x right, y down, z forward."""
        return np.stack([self.x_m, self.y_m, self.z_m], axis=1)

    @property
    def columns(self) -> dict[str, Image]:
        """Coordinates and layers of numbers, by name."""
        names = [one.name for one in fields(self) if one.name not in ("notes", "colour")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def points_of(image: DepthImage | Points) -> Points:
    """Points of the pixels that have a depth, row by row; an error if the camera is not known."""
    if isinstance(image, Points):
        return image
    focal_length_px = check_camera(image)
    rows, cols = np.nonzero(np.isfinite(image.depth_m))
    z = image.depth_m[rows, cols]
    x, y = image.centre_px
    return Points(
        x_m=((cols - x) / focal_length_px * z).astype(np.float32),
        y_m=((rows - y) / focal_length_px * z).astype(np.float32),
        z_m=z,
        colour=None if image.colour is None else image.colour[rows, cols],
        notes=image.notes,
        **{name: getattr(image, name)[rows, cols] for name in image.layers},
    )


def colour_levels(colour: Any) -> NDArray[np.uint8]:
    """Colour image in 8 bit, from 8 or 16 bit or floats of full scale 1; grey becomes colour."""
    values = np.asarray(colour)
    if values.ndim == 2:
        values = values[:, :, np.newaxis].repeat(3, axis=2)
    if values.ndim != 3 or values.shape[2] not in (3, 4):
        raise InputError(f"colour has shape {values.shape}: it must be (rows, cols, 3).")
    values = values[:, :, :3]
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.dtype == np.uint16:
        return (values >> 8).astype(np.uint8)
    if values.dtype.kind != "f":
        raise InputError(
            f"colour has type {values.dtype}: it must be uint8, uint16, or floats from 0 to 1."
        )
    return np.asarray(np.rint(255 * np.clip(np.nan_to_num(values), 0, 1)), dtype=np.uint8)


def for_screens(colour: Image, white: float | None = 1.0) -> NDArray[np.uint8]:
    """Colours of 8 bits by the sRGB curve, which screens expect; black for NaN.

    `white` is the linear intensity that becomes white; None for the 99.5th percentile.
    """
    if white is None:
        known = colour[np.isfinite(colour)]
        white = float(np.percentile(known, _WHITE_PERCENT)) if known.size else 1.0
    linear = np.clip(np.nan_to_num(colour) / max(white, 1e-30), 0, 1)
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    levels: NDArray[np.uint8] = np.rint(255 * curved).astype(np.uint8)
    return levels


def check_camera(image: DepthImage) -> float:
    """Focal length of an image in pixels, which points need: an `InputError` without one."""
    if image.focal_length_px is None:
        raise InputError(
            "the focal length of the camera is not known, and points need it. Name the rig: "
            "--rig on the command line, focal_length_px in Python."
        )
    return image.focal_length_px


def middle_px(shape: tuple[int, ...]) -> tuple[float, float]:
    """Middle (x, y) of an image of (rows, cols)."""
    return (shape[1] - 1) / 2, (shape[0] - 1) / 2
