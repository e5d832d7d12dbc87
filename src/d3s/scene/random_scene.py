"""Random scenes: things in front of a background, all tilted, each with its own texture."""

from itertools import pairwise

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import SceneError
from d3s.record import Converted, OneLine
from d3s.rig import Optics
from d3s.scene.geometry import FARTHEST_M, ScenePart, View, Window, perfect_views
from d3s.scene.masks import SHAPES, Coverage
from d3s.scene.scenes import Layer
from d3s.scene.textures import Photo, Texture, check_pattern

# Keeps the numbers of a scene apart from those of the noise of the same seed.
_STREAM = int.from_bytes(b"scene")

# Share of the room between two layers that the tilt of one may use.
_TILT_SHARE = 0.8
_STEEPEST_RAD = 1.1

# What is beside the window keeps to the range too: the blur brings it in.
_BESIDE_PX = 40


class RandomScene(ScenePart):
    """Things in front of a background, after the synthetic data of the paper's supplement.

    All of it follows from the seed. Layers keep to ranges of inverse depth of their own, so that
    they never cut through each other.
    """

    seed: int = Field(ge=0, lt=2**63, description="which of all scenes")
    nearest_m: float = Field(
        default=0.3, gt=0, le=FARTHEST_M, description="the smallest depth in the scene"
    )
    farthest_m: float = Field(
        default=1.9, gt=0, le=FARTHEST_M, description="the largest depth in the scene"
    )
    things: int | None = Field(
        default=None, ge=0, le=20, description="how many are in front; two to five if left"
    )
    patterns: Converted[tuple[OneLine, ...]] = Field(
        default=(), validate_default=True, description="the patterns to choose from; all if left"
    )
    photos: Converted[tuple[OneLine, ...]] = Field(
        default=(),
        validate_default=True,
        description="folders of photographs to take textures from instead",
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
        """Layers of the scene for a frame of this shape, the background last."""
        rng = np.random.default_rng(np.random.SeedSequence((self.seed, _STREAM)))
        view, _ = perfect_views(optics, shape)
        count = int(rng.integers(2, 6)) if self.things is None else self.things
        nearest_dpt, farthest_dpt = 1 / self.nearest_m, 1 / self.farthest_m
        # The background has the far half of the range, the others share the rest.
        middle_dpt = farthest_dpt + rng.uniform(0.25, 0.5) * (nearest_dpt - farthest_dpt)
        edges = np.linspace(middle_dpt, nearest_dpt, count + 1)
        layers = [
            self._thing(view, shape, (low, high), rng) for low, high in pairwise(edges.tolist())
        ]
        background = _tilted(view, Window.frame(shape), (farthest_dpt, middle_dpt), rng)
        return (*layers[::-1], Layer(**background, texture=self._texture(rng)))

    def _thing(
        self,
        view: View,
        shape: tuple[int, int],
        range_dpt: tuple[float, float],
        rng: np.random.Generator,
    ) -> Layer:
        # On its first try nearly always; an outline can miss the frame.
        for _ in range(100):
            mask = _outline(shape, rng)
            if mask.max() == 1:
                break
        else:
            raise SceneError(f"shape={shape} is too small for a random scene.")
        rows, cols = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        window = Window(int(rows[0]), int(cols[0]), int(np.ptp(rows)) + 1, int(np.ptp(cols)) + 1)
        return Layer(**_tilted(view, window, range_dpt, rng), texture=self._texture(rng), mask=mask)

    def _texture(self, rng: np.random.Generator) -> Texture | Photo:
        contrast, angle = float(rng.uniform(0.6, 1.1)), float(rng.uniform(-np.pi, np.pi))
        number, scale = int(rng.integers(2**31)), float(np.exp(rng.uniform(-0.5, 0.7)))
        if self.photos:
            folder = self.photos[int(rng.integers(len(self.photos)))]
            return Photo(image=folder, number=number, contrast=contrast)
        from d3s.scene.patterns import PATTERNS

        names = self.patterns or tuple(PATTERNS)
        return Texture(
            pattern=names[int(rng.integers(len(names)))],
            seed=number,
            scale=scale,
            angle_rad=angle,
            contrast=contrast,
        )


def _outline(shape: tuple[int, int], rng: np.random.Generator) -> Coverage:
    names = tuple(SHAPES)
    draw = SHAPES[names[int(rng.choice(len(names), p=(0.5, 0.25, 0.15, 0.1)))]]
    centre = (float(rng.uniform(0, shape[1])), float(rng.uniform(0, shape[0])))
    return draw(shape, centre, float(rng.uniform(0.08, 0.3)) * min(shape), rng)


def _tilted(
    view: View, window: Window, range_dpt: tuple[float, float], rng: np.random.Generator
) -> dict[str, float]:
    """A plane that keeps to a range of inverse depth over a window, as arguments of a layer."""
    low, high = range_dpt
    middle = low + (high - low) * rng.uniform(0.4, 0.6)
    # Its share of the room over the window, and never steeper than a floor or a wall looks.
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
    # Z = depth + slope X + slope Y has 1/Z = middle along the ray of the window's centre.
    depth_m = (1 - slopes @ centre[:2]) / middle
    return {
        "depth_m": float(depth_m),
        "tilt_x_rad": float(np.arctan(slopes[0])),
        "tilt_y_rad": float(np.arctan(slopes[1])),
    }
