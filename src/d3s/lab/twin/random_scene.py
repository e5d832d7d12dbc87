"""Random scenes: tilted objects in front of a tilted background, with strong or weak textures."""

from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import SceneError
from d3s.lab.twin.geometry import FARTHEST_M, ScenePart, View, Window, perfect_views
from d3s.lab.twin.masks import FINE, SHAPES, Coverage, draw_mask, fine_mask
from d3s.lab.twin.scenes import Layer
from d3s.lab.twin.textures import Photo, Texture, check_pattern
from d3s.record import Converted, OneLine
from d3s.rig import Optics

# Separates the random numbers of a scene from those of the noise with the same seed.
_STREAM = int.from_bytes(b"scene")

# Share of the depth range of a layer that its tilt may use.
_TILT_SHARE = 0.8
_STEEPEST_RAD = 1.1

Surfaces = Literal["textured", "weak", "fine"]
"""Surfaces of random scenes: textured, some plain and weak, or fences before plain walls."""

# Shares of the outlines in the order of `SHAPES`: weak scenes have more bars.
_OUTLINES: dict[Surfaces, tuple[float, ...]] = {
    "textured": (0.5, 0.25, 0.15, 0.1),
    "weak": (0.4, 0.2, 0.3, 0.1),
    "fine": (0.5, 0.5, 0.0, 0.0),
}
# Weak surfaces of a weak scene: the background, and this share of the objects.
_WEAK_SHARE = 1 / 3
_PLAIN_SHARE = 1 / 3  # of the weak surfaces; the others have some texture
_WEAKEST, _STRONGEST = 0.02, 0.2  # contrast of the others
_SHADED_SHARE = 0.5  # of the weak surfaces
_SHADING = (0.02, 0.15)
_GREYS = (0.3, 0.7)
# Widths of the parts and the gaps of fine objects, and the largest contrast of the wall behind.
_FINE_PX, _FINE_CONTRAST = (8.0, 20.0), 0.1

# Margin around an object that also keeps to its depth range, since the blur brings it in.
_BESIDE_PX = 40


class RandomScene(ScenePart):
    """Objects in front of a background, like the synthetic data of the paper's supplement.

    The seed determines the whole scene. Each layer has its own range of inverse depth, so layers
    never intersect.

    In a scene with weak surfaces the background is plain or has a contrast of 0.02 to 0.2, and so
    has a third of the objects; half of these surfaces have slow shading. More of the objects are
    thin bars. In a fine scene the objects are fences, meshes, leaves, blinds, chairs and cables
    of `masks.FINE`, and the background has a contrast of at most 0.1.
    """

    seed: int = Field(ge=0, lt=2**63, description="the seed of the whole scene")
    nearest_m: float = Field(
        default=0.3, gt=0, le=FARTHEST_M, description="the smallest depth in the scene"
    )
    farthest_m: float = Field(
        default=1.9, gt=0, le=FARTHEST_M, description="the largest depth in the scene"
    )
    things: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="the number of objects in front; two to five by default",
    )
    patterns: Converted[tuple[OneLine, ...]] = Field(
        default=(), validate_default=True, description="the patterns to choose from; all by default"
    )
    photos: Converted[tuple[OneLine, ...]] = Field(
        default=(),
        validate_default=True,
        description="folders of photos to use as textures, in place of patterns",
    )

    surfaces: Surfaces = Field(
        default="textured",
        description="textured, or weak: a plain or weakly textured background, and some such "
        "objects, or fine: fences and the like before a plain background",
    )

    @field_validator("farthest_m")
    @classmethod
    def _is_farther(cls, farthest_m: float, info: ValidationInfo) -> float:
        nearest_m = info.data.get("nearest_m")
        if nearest_m is not None and farthest_m < 1.1 * nearest_m:
            raise ValueError(f"must be at least 1.1 times nearest_m={nearest_m:g}.")
        return farthest_m

    @field_validator("patterns")
    @classmethod
    def _are_known(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_pattern(name) for name in patterns)

    @property
    def own_shape(self) -> tuple[int, int]:
        """Rows and columns of the paper's synthetic data."""
        return (1025, 1025)

    def layers_for(self, optics: Optics, shape: tuple[int, int]) -> tuple[Layer, ...]:
        """Layers of the scene for a frame of (rows, cols), the background last."""
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, _STREAM)))
        view, _ = perfect_views(optics, shape)
        count = int(rng.integers(2, 6)) if self.things is None else self.things
        nearest_dpt, farthest_dpt = 1 / self.nearest_m, 1 / self.farthest_m
        # The background gets the far part of the range; the objects share the rest.
        middle_dpt = farthest_dpt + rng.uniform(0.25, 0.5) * (nearest_dpt - farthest_dpt)
        edges = np.linspace(middle_dpt, nearest_dpt, count + 1)
        layers = [
            self._thing(view, shape, (low, high), rng) for low, high in pairwise(edges.tolist())
        ]
        background = _tilted(view, Window.frame(shape), (farthest_dpt, middle_dpt), rng)
        return (*layers[::-1], Layer(**background, texture=self._background_texture(rng)))

    def _thing(
        self,
        view: View,
        shape: tuple[int, int],
        range_dpt: tuple[float, float],
        rng: np.random.Generator,
    ) -> Layer:
        # An outline can miss the frame; the first attempt nearly always succeeds.
        for _ in range(100):
            mask = _outline(shape, _OUTLINES[self.surfaces], rng)
            if self.surfaces == "fine":
                kind = tuple(FINE)[int(rng.integers(len(FINE)))]
                width_px, gap_px = rng.uniform(*_FINE_PX, 2).tolist()
                mask = np.minimum(mask, fine_mask(kind, shape, width_px, gap_px, rng))
            if mask.max() == 1:
                break
        else:
            raise SceneError(f"shape={shape} is too small for a random scene.")
        plane = _tilted(view, Window.around(mask), range_dpt, rng)
        is_weak = self.surfaces == "weak" and rng.random() < _WEAK_SHARE
        texture = self._weak_texture(rng) if is_weak else self._texture(rng)
        return Layer(**plane, texture=texture, mask=mask)

    def _background_texture(self, rng: np.random.Generator) -> Texture | Photo:
        if self.surfaces == "fine":
            plain = self._weak_texture(rng)
            return plain.replace(contrast=min(plain.contrast, _FINE_CONTRAST))
        return self._weak_texture(rng) if self.surfaces == "weak" else self._texture(rng)

    def _weak_texture(self, rng: np.random.Generator) -> Texture | Photo:
        texture = self._texture(rng)
        contrast = float(np.exp(rng.uniform(np.log(_WEAKEST), np.log(_STRONGEST))))
        grey, shading = float(rng.uniform(*_GREYS)), float(rng.uniform(*_SHADING))
        is_plain, is_shaded = rng.random(2) < (_PLAIN_SHARE, _SHADED_SHARE)
        if is_plain:  # a photo has some contrast
            texture, contrast = Texture(seed=int(rng.integers(2**31))), 0.0
        return texture.replace(contrast=contrast, grey=grey, shading=shading if is_shaded else 0.0)

    def _texture(self, rng: np.random.Generator) -> Texture | Photo:
        contrast, angle = float(rng.uniform(0.6, 1.1)), float(rng.uniform(-np.pi, np.pi))
        number, scale = int(rng.integers(2**31)), float(np.exp(rng.uniform(-0.5, 0.7)))
        if self.photos:
            folder = self.photos[int(rng.integers(len(self.photos)))]
            return Photo(image=folder, number=number, contrast=contrast)
        from d3s.lab.twin.patterns import PATTERNS

        names = self.patterns or tuple(PATTERNS)
        return Texture(
            pattern=names[int(rng.integers(len(names)))],
            seed=number,
            scale=scale,
            angle_rad=angle,
            contrast=contrast,
        )


def _outline(
    shape: tuple[int, int], shares: tuple[float, ...], rng: np.random.Generator
) -> Coverage:
    kind = tuple(SHAPES)[int(rng.choice(len(SHAPES), p=shares))]
    centre = (float(rng.uniform(0, shape[1])), float(rng.uniform(0, shape[0])))
    return draw_mask(kind, shape, centre, float(rng.uniform(0.08, 0.3)) * min(shape), rng)


def _tilted(
    view: View, window: Window, range_dpt: tuple[float, float], rng: np.random.Generator
) -> dict[str, float]:
    """Random plane within a range of inverse depth over a window, as fields of a `Layer`."""
    low, high = range_dpt
    middle = low + (high - low) * rng.uniform(0.4, 0.6)
    # Random share of the range over the window, limited to the slope of a floor or a wall.
    room = _TILT_SHARE * min(middle - low, high - middle)
    reach = 0.5 * np.array(window.shape[::-1]) + _BESIDE_PX
    per_px = room * rng.dirichlet((1.0, 1.0, 1.0))[:2] / reach
    steepest_rad = rng.uniform(0.0, _STEEPEST_RAD, size=2)
    slopes = np.minimum(per_px * view.optics.focal_length_px / middle, np.tan(steepest_rad))
    slopes *= rng.choice((-1.0, 1.0), size=2)
    centre = view.ray_matrix @ (
        window.col + (window.cols - 1) / 2,
        window.row + (window.rows - 1) / 2,
        1.0,
    )
    # Depth such that 1/Z = middle on the ray through the centre of the window.
    depth_m = (1 - slopes @ centre[:2]) / middle
    return {
        "depth_m": float(depth_m),
        "tilt_x_rad": float(np.arctan(slopes[0])),
        "tilt_y_rad": float(np.arctan(slopes[1])),
    }
