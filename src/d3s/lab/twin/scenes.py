"""Scenes in front of the camera, as data: planes, layers, pictures with depth."""

import math
import os
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from d3s.lab.twin.geometry import FARTHEST_M, PlaneInSpace, ScenePart
from d3s.lab.twin.textures import Texture, as_texture, checked_image
from d3s.rig import Optics
from d3s.types import Image

AnyTexture = Annotated[
    Any,
    Field(description="a pattern, an image file or folder, or an array"),
    AfterValidator(as_texture),
]
Depth = Annotated[
    float, Field(gt=0, le=FARTHEST_M, description="the distance along the axis of the left camera")
]
Tilt = Annotated[float, Field(gt=-1.5, lt=1.5)]


Curvature = Annotated[float, Field(ge=-5, le=5)]


def _as_mask(given: Any) -> Image | str | None:
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if isinstance(given, np.ndarray) and given.dtype == np.bool_:
        given = given.astype(np.float32)
    if not isinstance(given, np.ndarray):
        raise ValueError("must be an array of the frame's shape, or the name of an image file.")
    return checked_mask(given)


def checked_mask(given: NDArray[Any]) -> Image:
    """Mask as a read-only float32 copy; a ValueError if it is no grey image from 0 to 1."""
    mask = checked_image(given, "mask")
    if mask.min() < 0 or mask.max() > 1:
        raise ValueError("must be from 0 (nothing there) to 1 (covers what is behind).")
    return mask


def _as_array_or_file(given: Any) -> Any:
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if not isinstance(given, np.ndarray):
        raise ValueError("must be an array, or the name of a file.")
    return given


class _OnePlane(ScenePart):
    """Scene of one plane."""

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Any, ...]:
        """Layers of the scene: this one only."""
        return (self,)


class Plane(_OnePlane):
    """Plane parallel to the sensor that fills the view.

    Examples
    --------
    >>> import d3s
    >>> d3s.Plane(depth_m=0.8, texture=d3s.Texture(pattern="leaves", seed=1)).depth_m
    0.8
    >>> d3s.Plane(depth_m=-0.8)
    Traceback (most recent call last):
        ...
    d3s.errors.SceneError: depth_m=-0.8 must be above 0: it is in metres.
    """

    depth_m: Depth
    texture: AnyTexture = Texture()

    @property
    def plane(self) -> PlaneInSpace:
        """Plane in space."""
        return PlaneInSpace(self.depth_m)


class TiltedPlane(_OnePlane):
    """Tilted plane that fills the view, like a wall or a floor.

    Examples
    --------
    A floor that recedes downwards by 45 degrees:

    >>> import math
    >>> import d3s
    >>> floor = d3s.TiltedPlane(depth_m=1.0, tilt_y_rad=math.radians(45))
    >>> pair = d3s.simulate(floor, d3s.Rig.paper_prototype(), shape=(60, 90))
    >>> bool(pair.depth_m[-1, 0] > pair.depth_m[0, 0])
    True
    """

    depth_m: Depth
    tilt_x_rad: Tilt = Field(
        default=0.0, description="the tilt; positive moves the right side further away"
    )
    tilt_y_rad: Tilt = Field(
        default=0.0, description="the tilt; positive moves the lower side further away"
    )
    texture: AnyTexture = Texture()

    @property
    def plane(self) -> PlaneInSpace:
        """Plane in space."""
        return PlaneInSpace(self.depth_m, math.tan(self.tilt_x_rad), math.tan(self.tilt_y_rad))


class BentPlane(TiltedPlane):
    """Tilted plane that is bent, like a board of cardboard; it fills the view.

    Its depth is that of the tilted plane plus (bend_x X² + 2 bend_xy X Y + bend_y Y²) / 2, with X
    to the right and Y down from the axis of the left camera, in metres. A board of 0.5 m that is
    hollow by 2 mm has a bend of 0.064 per metre. Blur is that of the plane nearest to the board,
    which for a bend of 1 per metre is right to 0.1 px in the view of the prototype.

    Examples
    --------
    >>> import d3s
    >>> board = d3s.BentPlane(depth_m=0.5, bend_x_per_m=0.5)
    >>> pair = d3s.simulate(board, d3s.Rig.paper_prototype(), shape=(60, 900))
    >>> print(f"{1e3 * (pair.depth_m[30, 0] - pair.depth_m[30, 450]):.2f} mm")
    0.35 mm
    """

    bend_x_per_m: Curvature = Field(
        default=0.0, description="the bend along X; positive moves both sides further away"
    )
    bend_xy_per_m: Curvature = Field(
        default=0.0, description="the twist; positive moves the lower right corner further away"
    )
    bend_y_per_m: Curvature = Field(
        default=0.0, description="the bend along Y; positive moves top and bottom further away"
    )

    @property
    def plane(self) -> PlaneInSpace:
        """Plane in space, with its bend."""
        bend = (self.bend_x_per_m, self.bend_xy_per_m, self.bend_y_per_m)
        return PlaneInSpace(*super().plane[:3], *bend)


class Layer(TiltedPlane):
    """Part of a plane: the area that its mask covers in a perfect left view."""

    mask: Annotated[Any, AfterValidator(_as_mask)] = Field(
        default=None,
        description="an array of the frame's shape from 0 to 1, or an image file; all by default",
    )


class Layered(ScenePart):
    """Layers at different depths; the rearmost has no mask.

    Examples
    --------
    A square at 0.5 m in front of a wall at 1 m:

    >>> import d3s
    >>> import numpy as np
    >>> mask = np.zeros((60, 90))
    >>> mask[20:40, 30:60] = 1
    >>> scene = d3s.Layered(layers=[d3s.Layer(depth_m=0.5, mask=mask), d3s.Layer(depth_m=1.0)])
    >>> pair = d3s.simulate(scene, d3s.Rig.paper_prototype(), shape=(60, 90))
    >>> print(f"{pair.depth_m[30, 45]:.1f} m before {pair.depth_m[0, 0]:.1f} m")
    0.5 m before 1.0 m
    """

    layers: Sequence[Layer] = Field(description="the layers, in any order")

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Layer, ...]:
        """Layers of the scene, in any order."""
        return tuple(self.layers)


_ArrayOrFile = Annotated[Any, AfterValidator(_as_array_or_file)]


class DepthMapScene(ScenePart):
    """Any scene, given by a sharp image and the depth of each pixel.

    Areas hidden in the image, behind objects and beside the frame, are filled with the adjacent
    texture.
    """

    image: _ArrayOrFile = Field(description="a sharp image: an array, or an image file")
    encoding: Literal["srgb", "linear"] | None = Field(
        default=None,
        description="how the image file stores light, srgb by default; an array is linear",
    )
    depth_m: _ArrayOrFile = Field(
        description="the depth of each of its pixels: an array, or a PFM or TIFF"
    )


class LayeredScene(Protocol):
    """Protocol of scenes that consist of layers."""

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Any, ...]:
        """Layers of the scene, in any order."""


Scene = LayeredScene | DepthMapScene
