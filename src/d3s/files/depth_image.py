"""Content of files of depth, as plain arrays: an image of depths, or points in space.

The axes are those of the left camera: x right, y down, z forward, the origin at its lens. Its
principal point is the middle of the view, ((cols - 1) / 2, (rows - 1) / 2) with pixel centres at
whole numbers: the views of a calibrated rig are cut that way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from d3s.errors import InputError
from d3s.formats import LAYERS
from d3s.types import Image

Notes = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class DepthImage:
    """Depth of each pixel of the left view, and layers beside it; all (rows, cols).

    Raises
    ------
    InputError
        When the layers do not have one shape.
    """

    depth_m: Image  # NaN where there is none
    sigma_m: Image | None = None
    confidence: Image | None = None
    intensity: Image | None = None
    colour: NDArray[np.uint8] | None = None  # (rows, cols, 3), as screens show it
    focal_length_px: float | None = None
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
                f"colour has shape {self.colour.shape}: it must be {(*self.depth_m.shape, 3)}."
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
        rows, cols = self.depth_m.shape
        matrix = np.diag([self.focal_length_px, self.focal_length_px, 1.0])
        matrix[:2, 2] = (cols - 1) / 2, (rows - 1) / 2
        return matrix

    def with_camera(self, focal_length_px: float) -> Self:
        """Copy with a focal length in pixels, for an image without one.

        Raises
        ------
        InputError
            When the image has another focal length.
        """
        if self.focal_length_px not in (None, focal_length_px):
            raise InputError(
                f"knows its camera, of focal length {self.focal_length_px:g} px, and the rig has "
                f"{focal_length_px:g} px. Leave the rig, or name the one it was taken with."
            )
        return replace(self, focal_length_px=focal_length_px)


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

    @property
    def columns(self) -> dict[str, Image]:
        """Coordinates and layers of numbers, by name."""
        names = [one.name for one in fields(self) if one.name not in ("notes", "colour")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def points_of(image: DepthImage) -> Points:
    """Points of the pixels that have a depth, row by row.

    Raises
    ------
    InputError
        When the focal length is not known.
    """
    focal_length_px = check_camera(image)
    rows, cols = np.nonzero(np.isfinite(image.depth_m))
    z = image.depth_m[rows, cols]
    height, width = image.depth_m.shape
    return Points(
        x_m=_across(cols, width, z, focal_length_px),
        y_m=_across(rows, height, z, focal_length_px),
        z_m=z,
        colour=None if image.colour is None else image.colour[rows, cols],
        notes=image.notes,
        **{name: getattr(image, name)[rows, cols] for name in image.layers},
    )


def check_camera(image: DepthImage) -> float:
    """Focal length of an image in pixels, which points need.

    Raises
    ------
    InputError
        When it is not known.
    """
    if image.focal_length_px is None:
        raise InputError(
            "the focal length of the camera is not known, and points need it. Name the rig: "
            "--rig on the command line, focal_length_px in Python."
        )
    return image.focal_length_px


def _across(places: NDArray[np.int64], size: int, z: Image, focal_length_px: float) -> Image:
    """Coordinate x or y of points, in metres: (place - principal point) z / f."""
    across = (places - (size - 1) / 2) / focal_length_px * z
    return across.astype(np.float32)
