"""What can be in front of the camera. These classes hold; `render` makes pictures of them."""

import math
import os
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ConfigDict, Field

from d3s.rig import Optics
from d3s.scene.geometry import FARTHEST_M, PlaneInSpace, ScenePart
from d3s.scene.photos import checked_image
from d3s.scene.textures import Texture, as_texture
from d3s.types import Image

AnyTexture = Annotated[Any, AfterValidator(as_texture)]
Depth = Annotated[
    float, Field(gt=0, le=FARTHEST_M, description="the distance along the axis of the left camera")
]
Tilt = Annotated[float, Field(gt=-1.5, lt=1.5)]


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
    """A mask as a read-only float32 copy; a ValueError, if it is none."""
    mask = checked_image(given, "mask")
    if mask.min() < 0 or mask.max() > 1:
        raise ValueError("must be from 0 (nothing there) to 1 (covers what is behind).")
    return mask


def _as_picture(given: Any) -> Any:
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    if not isinstance(given, np.ndarray):
        raise ValueError("must be an array, or the name of a file.")
    return given


class Plane(ScenePart):
    """A wall that faces the camera, and fills the view.

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

    model_config = ConfigDict(arbitrary_types_allowed=True)

    depth_m: Depth
    texture: AnyTexture = Field(
        default=Texture(), description="a pattern, an image file or folder, or an array"
    )

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple["Layer", ...]:
        """The scene as layers, front to back or not."""
        return (Layer(depth_m=self.depth_m, texture=self.texture),)


class TiltedPlane(ScenePart):
    """A wall or a floor at an angle.

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

    model_config = ConfigDict(arbitrary_types_allowed=True)

    depth_m: Depth
    tilt_x_rad: Tilt = Field(
        default=0.0, description="the angle by which its right side lies further away"
    )
    tilt_y_rad: Tilt = Field(
        default=0.0, description="the angle by which its lower side lies further away"
    )
    texture: AnyTexture = Field(
        default=Texture(), description="a pattern, an image file or folder, or an array"
    )

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple["Layer", ...]:
        """The scene as layers, front to back or not."""
        fields = ("depth_m", "tilt_x_rad", "tilt_y_rad", "texture")
        return (Layer(**{name: getattr(self, name) for name in fields}),)


class Layer(TiltedPlane):
    """Part of a plane: what its mask covers, as seen by a perfect left camera."""

    mask: Annotated[Any, AfterValidator(_as_mask)] = Field(
        default=None,
        description="an array of the frame's shape from 0 to 1, or an image file; all if left",
    )

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple["Layer", ...]:
        """The scene as layers: this one, and nothing behind it."""
        return (self,)

    @property
    def plane(self) -> PlaneInSpace:
        """Where it is."""
        return PlaneInSpace(self.depth_m, math.tan(self.tilt_x_rad), math.tan(self.tilt_y_rad))


class Layered(ScenePart):
    """Layers in front of each other; the last one behind has no mask.

    Examples
    --------
    A square at 0.5 m before a wall at 1 m:

    >>> import d3s
    >>> import numpy as np
    >>> mask = np.zeros((60, 90))
    >>> mask[20:40, 30:60] = 1
    >>> scene = d3s.Layered(layers=[d3s.Layer(depth_m=0.5, mask=mask), d3s.Layer(depth_m=1.0)])
    >>> pair = d3s.simulate(scene, d3s.Rig.paper_prototype(), shape=(60, 90))
    >>> print(f"{pair.depth_m[30, 45]:.1f} m before {pair.depth_m[0, 0]:.1f} m")
    0.5 m before 1.0 m
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    layers: Sequence[Layer] = Field(description="the layers, in any order")

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Layer, ...]:
        """The scene as layers, front to back or not."""
        return tuple(self.layers)


Picture = Annotated[Any, AfterValidator(_as_picture)]


class DepthMapScene(ScenePart):
    """Any scene, from a picture of it in which all is sharp, and the depth of each pixel.

    What the picture does not show, behind its objects and beside its frame, is filled with what is
    next to it.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    image: Picture = Field(
        description="a picture in which all is sharp: an array, or an image file"
    )
    encoding: Literal["srgb", "linear"] | None = Field(
        default=None,
        description="how the image file stores light, srgb if left; an array is linear",
    )
    depth_m: Picture = Field(
        description="the depth of each of its pixels: an array, or a PFM or TIFF"
    )


class LayeredScene(Protocol):
    """Whatever can be told in layers."""

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Layer, ...]:
        """The scene as layers, front to back or not."""


Scene = LayeredScene | DepthMapScene
