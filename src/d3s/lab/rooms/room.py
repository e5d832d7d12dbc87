"""Room: the record of a random room, and the layout that its seed gives."""

from typing import Literal

from pydantic import Field, field_validator

from d3s.lab.twin.geometry import ScenePart
from d3s.lab.twin.textures import check_pattern
from d3s.record import Converted, OneLine

Walls = Literal["plain", "textured", "mixed"]


class Room(ScenePart):
    """Random room: floor, walls and things in front of them, lit by two lamps.

    The seed determines the whole room. Things, depths and sizes are chosen for the field of view of
    the camera.
    """

    seed: int = Field(ge=0, lt=2**31, description="the seed of the whole room")
    walls: Walls = Field(
        default="mixed",
        description="the walls and the floor: painted evenly, with textures, or some of each",
    )
    patterns: Converted[tuple[OneLine, ...]] = Field(
        default=(), validate_default=True, description="the patterns to choose from; all by default"
    )
    shape: tuple[int, int] = Field(default=(400, 700), description="rows and columns of a view")
    samples: int = Field(
        default=512, ge=16, le=65536, description="the light paths per pixel of a view"
    )

    @field_validator("patterns")
    @classmethod
    def _are_known(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_pattern(name) for name in patterns)

    @field_validator("shape")
    @classmethod
    def _is_a_picture(cls, shape: tuple[int, int]) -> tuple[int, int]:
        if not all(16 <= side <= 4096 for side in shape):
            raise ValueError("must be (rows, cols), each from 16 to 4096.")
        return shape
