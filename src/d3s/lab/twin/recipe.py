"""Recipes: one readable file with everything needed to simulate a folder of images again."""

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_serializer,
    field_validator,
)

from d3s.atomic import write_text
from d3s.document import MAX_BYTES, MAX_LINE_CHARS, DocumentKind
from d3s.errors import SceneError
from d3s.lab.twin.geometry import PERFECT, Mount, ScenePart
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors
from d3s.lab.twin.pair import DEFAULT_SHAPE
from d3s.lab.twin.point_spread import PsfName
from d3s.lab.twin.random_scene import RandomScene
from d3s.lab.twin.raw import DEFAULT_MOUNTS, RawLayout
from d3s.lab.twin.scenes import BentPlane, Depth, DepthMapScene, Layered, Plane, TiltedPlane
from d3s.lab.twin.sensor import Sensor
from d3s.lab.twin.sequence import MOST_DISTANCES, typed_distances_m
from d3s.record import Converted, FrozenTable, OneLine, Sha256, short_repr
from d3s.rig import Rig

_HEADER = """\
# A D3S recipe: simulated images, and all that is needed to make them again. Run it with
#     d3s simulate --recipe recipe.toml --output FOLDER
# All values are in SI units, and the unit is the end of each name: m metres, rad radians, px
# pixels, e electrons. A file named without its folder is looked for where d3s is run.

"""

RECIPE_FILE = DocumentKind(noun="recipe", schema_version=1, header=_HEADER, error=SceneError)

RecipeScene = Plane | TiltedPlane | BentPlane | Layered | DepthMapScene | RandomScene

# Scene classes by the `kind` of [scene] in a recipe.
SCENES: dict[str, type[RecipeScene]] = {
    "plane": Plane,
    "tilted": TiltedPlane,
    "bent": BentPlane,
    "layered": Layered,
    "depth_map": DepthMapScene,
    "random": RandomScene,
}
_KINDS = {scene: kind for kind, scene in SCENES.items()}

_Size = Annotated[int, Field(ge=1)]


def _as_scene(given: Any) -> RecipeScene:
    """Scene that a file can hold, from a scene or from a table with its kind."""
    scene = given
    if isinstance(given, Mapping):
        known, fields = ", ".join(SCENES), dict(given)
        if "kind" not in fields:
            raise SceneError(f"kind is missing: one of {known}.")
        kind = fields.pop("kind")
        if not isinstance(kind, str) or kind not in SCENES:
            raise SceneError(f"kind={short_repr(kind)} must be one of {known}.")
        scene = SCENES[kind](**fields)
    if type(scene) not in _KINDS:
        raise ValueError(f"must be a scene: {', '.join(one.__name__ for one in _KINDS)}.")
    problems = tuple(_unstorable(scene.model_dump(), ""))
    if problems:
        raise SceneError(*problems)
    checked: RecipeScene = scene
    return checked


def _unstorable(value: Any, name: str) -> Iterator[str]:
    """Problems of values that a text file cannot hold, with the name of each value."""
    if isinstance(value, np.ndarray):
        yield (
            f"{name} is an array of shape {value.shape}, and a recipe names files. Write it with "
            "d3s.files.write_image, and name that file."
        )
    elif isinstance(value, str) and not (value.isprintable() and value):
        yield f"{name}={short_repr(value)} must be one line of text, and not empty."
    elif isinstance(value, dict):
        for key in value:
            yield from _unstorable(value[key], f"{name}.{key}".removeprefix("."))
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _unstorable(part, f"{name}[{number}]")


class Recipe(ScenePart):
    """Scene, camera and output files of a simulation.

    Fields that are not given are filled in when the recipe is made, so the file is complete.
    """

    kind: Literal["pair", "raw"] = Field(
        default="pair", description="pair, two rectified views, or raw, frames of the sensor"
    )
    scene: Annotated[RecipeScene, BeforeValidator(_as_scene)] = Field(
        description="what is in front of the camera"
    )
    distances_m: Converted[tuple[Depth, ...] | None] = Field(
        default=None,
        validate_default=True,
        description="the distances of the plane, one per frame, in place of its depth_m",
    )
    distance_sigma_m: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="the standard deviation of the errors of the distances in distances.csv",
    )
    count: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="the number of random scenes, with seeds from the scene's upwards",
    )
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="the seed of the noise, combined with the frame's number",
    )
    shape: Converted[tuple[_Size, _Size] | None] = Field(
        default=None, validate_default=True, description="rows and columns of each view of a pair"
    )
    psf: PsfName = Field(default="disk", description="the shape of a blurred point")
    wavelength_m: float = Field(
        default=550e-9, gt=1e-7, lt=2e-5, description="the wavelength, for diffraction"
    )
    images: Literal["png", "tiff"] = Field(
        default="png", description="png, 16 bit from 0 to 1, or tiff, floats as they are"
    )
    truth: Literal["npz", "pfm"] = Field(
        default="npz", description="npz, one file per frame, or pfm, one file per array"
    )
    sensor: Sensor = Field(default=Sensor(), description="the sensor behind the lenses")
    layout: RawLayout | None = Field(
        default=None,
        validate_default=True,
        description="the part of the sensor that each lens lights",
    )
    mount_left: Mount | None = Field(
        default=None, validate_default=True, description="the mounting error of the left lens"
    )
    mount_right: Mount | None = Field(
        default=None, validate_default=True, description="the mounting error of the right lens"
    )
    lens_left: LensErrors | None = Field(
        default=None, description="the errors of the left lens, none for a perfect one"
    )
    lens_right: LensErrors | None = Field(
        default=None, description="the errors of the right lens, none for a perfect one"
    )
    rig: Rig = Field(description="the camera")
    d3s_version: OneLine | None = Field(
        default=None, description="the version of D3S that made the files"
    )
    input_sha256: Annotated[dict[str, Sha256], AfterValidator(FrozenTable)] | None = Field(
        default=None, description="digests of the input files, to detect changes"
    )

    @field_validator("scene")
    @classmethod
    def _fits_the_kind(cls, scene: RecipeScene, info: ValidationInfo) -> RecipeScene:
        if info.data.get("kind") == "raw" and isinstance(scene, DepthMapScene):
            raise SceneError(
                "kind='depth_map' belongs to a pair: a picture with depth is rectified, and a raw "
                "frame is not. Choose another scene, or kind='pair'."
            )
        return scene

    @field_validator("distances_m")
    @classmethod
    def _are_of_a_plane(
        cls, distances_m: tuple[float, ...] | None, info: ValidationInfo
    ) -> tuple[float, ...] | None:
        if distances_m is None:
            return None
        if "scene" in info.data and not isinstance(info.data["scene"], Plane | TiltedPlane):
            raise ValueError("needs a plane or a tilted plane as its scene: only these are moved.")
        if not distances_m:
            raise ValueError("must have at least 1 value.")
        if len(distances_m) > MOST_DISTANCES:
            raise ValueError(f"must have at most {MOST_DISTANCES} values.")
        return distances_m

    @field_validator("distance_sigma_m")
    @classmethod
    def _is_of_distances(cls, distance_sigma_m: float, info: ValidationInfo) -> float:
        distances_m = info.data.get("distances_m")
        if distance_sigma_m and "distances_m" in info.data:
            if distances_m is None:
                raise ValueError("needs distances_m: only a series of planes has distances.csv.")
            typed_distances_m(distances_m, distance_sigma_m)  # refuses too large an error
        return distance_sigma_m

    @field_validator("count")
    @classmethod
    def _is_of_random_scenes(cls, count: int | None, info: ValidationInfo) -> int | None:
        scene = info.data.get("scene")
        if count is None or scene is None:
            return count
        if not isinstance(scene, RandomScene):
            raise ValueError("needs a random scene: any other looks the same each time.")
        if scene.seed + count > 2**63:
            raise ValueError(f"is too many from scene.seed={scene.seed} on: seeds end at 2**63.")
        return count

    @field_validator("shape")
    @classmethod
    def _is_of_a_pair(
        cls, shape: tuple[int, int] | None, info: ValidationInfo
    ) -> tuple[int, int] | None:
        scene = info.data.get("scene")
        if info.data.get("kind") == "raw":
            if shape is not None:
                raise ValueError("belongs to a pair. The size of a raw frame is in its layout.")
            return None
        if shape is None and not isinstance(scene, DepthMapScene | None):
            return getattr(scene, "own_shape", DEFAULT_SHAPE)
        return shape

    @field_validator("truth")
    @classmethod
    def _holds_the_truth(cls, truth: str, info: ValidationInfo) -> str:
        if truth == "pfm" and info.data.get("kind") == "raw":
            raise ValueError("cannot hold the truth of a raw frame, which is more than images.")
        return truth

    @field_validator("layout")
    @classmethod
    def _is_of_a_raw_frame(cls, layout: RawLayout | None, info: ValidationInfo) -> RawLayout | None:
        kind = info.data.get("kind")
        if kind == "pair" and layout is not None:
            raise SceneError("rows_px and the rest belong to a raw frame, and kind is 'pair'.")
        return RawLayout() if kind == "raw" and layout is None else layout

    @field_validator("mount_left", "mount_right")
    @classmethod
    def _is_filled_in(cls, mount: Mount | None, info: ValidationInfo) -> Mount | None:
        if mount is None and "kind" in info.data:
            mounts = DEFAULT_MOUNTS if info.data["kind"] == "raw" else (PERFECT, PERFECT)
            return mounts[info.field_name == "mount_right"]
        return mount

    @field_serializer("scene", mode="plain")
    def _with_its_kind(self, scene: RecipeScene) -> dict[str, Any]:
        return {"kind": _KINDS[type(scene)], **scene.model_dump(exclude_none=True)}

    @property
    def mounts(self) -> tuple[Mount, Mount]:
        """Mounting errors of the left and the right lens."""
        return self.mount_left or PERFECT, self.mount_right or PERFECT

    @property
    def lenses(self) -> tuple[LensErrors, LensErrors]:
        """Errors of the left and the right lens."""
        return self.lens_left or PERFECT_LENS, self.lens_right or PERFECT_LENS

    @property
    def typed_distances_m(self) -> tuple[float, ...]:
        """Distances of `distances.csv`, with the errors of a person who measures them."""
        return typed_distances_m(self.distances_m or (), self.distance_sigma_m, self.seed)

    @property
    def is_series(self) -> bool:
        """Whether the recipe makes a numbered series of frames."""
        return self.distances_m is not None or self.count is not None

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        return self.count or len(self.distances_m or (None,))

    def scene_of(self, frame: int) -> RecipeScene:
        """Scene of one frame."""
        if self.distances_m is not None:
            return self.scene.replace(depth_m=self.distances_m[frame])
        if isinstance(self.scene, RandomScene):
            return self.scene.replace(seed=self.scene.seed + frame)
        return self.scene

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a recipe file; a SceneError names every field that is wrong."""
        try:
            return cls(**RECIPE_FILE.read(path))
        except SceneError as error:
            raise SceneError(*error.problems, path=path) from error.__cause__

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the recipe atomically; `Recipe.load` returns an equal recipe.

        An OutputError if the file exists with other content and `overwrite` is False.
        """
        write_text(path, self.text(), overwrite=overwrite)

    def text(self) -> str:
        """Text of the recipe file."""
        text = RECIPE_FILE.format(self.model_dump(exclude_none=True))
        longest = max(len(line) for line in text.split("\n"))
        if longest > MAX_LINE_CHARS or len(text.encode()) > MAX_BYTES:
            raise SceneError(
                f"is too long for a recipe: {len(text.encode())} bytes, and {longest} characters "
                f"in a line, of at most {MAX_BYTES} and {MAX_LINE_CHARS}. Shorten its file names, "
                "or make several."
            )
        return text
