"""Sweeps: which planes or random scenes are simulated, and one noisy pair with its truth."""

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import OptionsError, RecordError
from d3s.estimate import DepthMap
from d3s.estimate.methods import estimate_quietly
from d3s.files.images import list_images
from d3s.lab.evaluate.cameras import Lens, TypicalPair, typical_pair, typical_rig
from d3s.lab.evaluate.contender import Contender
from d3s.lab.evaluate.metrics import duel
from d3s.lab.evaluate.truth import WINDOW_PX, Truth, truth_of
from d3s.lab.twin.pair import Pair, simulate
from d3s.lab.twin.point_spread import PsfName
from d3s.lab.twin.random_scene import RandomScene, Surfaces
from d3s.lab.twin.scenes import Plane, Scene
from d3s.lab.twin.sensor import expose_pair
from d3s.lab.twin.sequence import even_distances_m
from d3s.lab.twin.textures import Photo, Texture, check_pattern
from d3s.record import OneLine, Record
from d3s.rig import Rig
from d3s.types import Image

TUNING_PATTERNS = ("leaves", "stone", "wood", "fabric", "noise_smooth", "calibration")
"""Textures on which options may be tuned."""
REPORT_PATTERNS = ("text", "brick", "noise", "noise_white", "gravel", "grass", "carpet", "bark")
"""Textures on which results are reported; none of them is a tuning texture."""

# Three windows, so that some pixels are left within the borders.
_SMALLEST_PX = 3 * WINDOW_PX
_Pixels = Annotated[int, Field(ge=_SMALLEST_PX, le=8000)]
Shape = tuple[_Pixels, _Pixels]
_WARM_UP_SHAPE = (48, 128)
_PHOTO_M = (
    0.3  # width of a photo on a plane: a page's, and the width of the prototype's view at 1 m
)
_LEAST_DEPTH_RATIO = 1.1  # of the farthest to the nearest depth of a random scene


def _known_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not patterns:
        raise ValueError("must name at least one pattern.")
    for pattern in patterns:
        try:
            check_pattern(pattern)
        except ValueError as error:
            raise ValueError(f"has {pattern!r}, and each {error}") from None
    if len(set(patterns)) < len(patterns):
        raise ValueError("must name each pattern once.")
    return patterns


def _increasing(depths_m: tuple[float, ...]) -> tuple[float, ...]:
    if not depths_m or any(np.diff(depths_m) <= 0):
        raise ValueError("must be one depth or several, increasing.")
    return depths_m


class Sweep(Record):
    """Fields that all sweeps have in common."""

    error: ClassVar[type[RecordError]] = OptionsError

    patterns: Annotated[tuple[str, ...], AfterValidator(_known_patterns)] = Field(
        default=REPORT_PATTERNS, description="the textures"
    )
    noise: float = Field(
        default=0.01, gt=0, lt=1, description="the standard deviation of the noise, of full scale"
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="of the textures and of the noise")

    @classmethod
    @abstractmethod
    def quick(cls) -> Self:
        """Return a small sweep that takes half a minute."""

    @property
    @abstractmethod
    def places(self) -> list[tuple[int, ...]]:
        """Indices of each pair in the sweep."""

    def check(self) -> None:
        """Refuse scenes that cannot be, before a process is started for them."""

    def default_rig(self) -> Rig:
        """Return the camera of a sweep that is given none: the paper's prototype."""
        return Rig.paper_prototype()

    @abstractmethod
    def trial(self, place: Sequence[int], rig: Rig) -> "Trial":
        """Return the noisy pair at one of `places`, seen by a camera."""


class TwinSweep(Sweep):
    """Fields of the sweeps over scenes of the twin."""

    psf: PsfName = Field(default="disk", description="the shape of a blurred point")
    lens: Lens = Field(
        default="perfect",
        description="the lenses; with typical ones, raw frames are split by the calibrated rig",
    )
    photos: OneLine | None = Field(
        default=None, description="a folder of photos that are the textures, in place of patterns"
    )

    def default_rig(self) -> Rig:
        """Return the paper's prototype, or the calibrated rig of the camera with typical lenses."""
        return typical_rig() if self.lens == "typical" else super().default_rig()

    @property
    def textures(self) -> dict[str, Texture | Photo]:
        """Textures by name: the patterns, or as many photos, the first of the folder by name.

        Photos have a width of 30 cm, and are mirrored beyond.
        """
        if self.photos is None:
            return {one: Texture(pattern=one, seed=self.seed) for one in self.patterns}
        names = [path.name for path in list_images(self.photos)][: len(self.patterns)]
        return {
            name: Photo(image=self.photos, number=i, width_m=_PHOTO_M)
            for i, name in enumerate(names)
        }

    def check(self) -> None:
        """Refuse photos that cannot be read, before a process is started for them."""
        for texture in self.textures.values():
            if isinstance(texture, Photo):
                texture.pixels()


class PlaneSweep(TwinSweep):
    """Planes that face the camera: every texture at every depth."""

    depths_m: Annotated[
        tuple[Annotated[float, Field(gt=0, le=100)], ...],
        Field(max_length=1000),
        AfterValidator(_increasing),
    ] = Field(default=even_distances_m(0.25, 2.0, 25), description="the distances, increasing")
    # Wide enough for the largest disparity of the prototype, 93 px.
    shape: Shape = Field(default=(300, 640), description="rows and columns of a view")
    beyond_px: int = Field(
        default=0,
        ge=0,
        le=4000,
        description="the least distance of judged pixels from the middle column",
    )

    @classmethod
    def quick(cls) -> Self:
        """Return a small sweep that takes half a minute."""
        return cls(
            depths_m=even_distances_m(0.25, 2.0, 8), patterns=("brick", "grass"), shape=(200, 400)
        )

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Indices of texture and depth of each pair."""
        return [(i, j) for i in range(len(self.textures)) for j in range(len(self.depths_m))]

    def trial(self, place: Sequence[int], rig: Rig) -> "Trial":
        """Return the noisy pair of one texture at one depth; its key is `texture` and `depth_m`."""
        i, j = place
        name, texture = list(self.textures.items())[i]
        key = {"texture": name, "depth_m": self.depths_m[j]}
        scene = Plane(depth_m=self.depths_m[j], texture=texture)
        trial = make_trial(scene, rig, self, self.shape, (self.seed, i, j), key)
        from_middle = np.abs(np.arange(self.shape[1]) - (self.shape[1] - 1) / 2)
        judged = trial.truth.judged & (from_middle >= self.beyond_px)
        return replace(trial, truth=replace(trial.truth, judged=judged))


class SceneSweep(TwinSweep):
    """Random scenes with edges, slopes and occlusions."""

    count: int = Field(default=30, ge=1, le=10_000, description="how many scenes")
    nearest_m: float = Field(
        default=0.4, gt=0, le=100, description="the smallest depth in the scenes"
    )
    farthest_m: float = Field(
        default=1.9,
        gt=0,
        le=100,
        validate_default=True,  # against a nearest depth that is given
        description="the largest depth in the scenes",
    )
    surfaces: Surfaces = Field(
        default="textured",
        description="textured, weak (plain ones among them), or fine (fences before plain walls)",
    )
    # The size of the synthetic data of the paper.
    shape: Shape = Field(default=(1025, 1025), description="rows and columns of a view")

    @field_validator("farthest_m")
    @classmethod
    def _is_farther(cls, farthest_m: float, info: ValidationInfo) -> float:
        nearest_m = info.data.get("nearest_m")
        if nearest_m is not None and farthest_m < _LEAST_DEPTH_RATIO * nearest_m:
            raise ValueError(
                f"must be at least {_LEAST_DEPTH_RATIO:g} times nearest_m={nearest_m:g}."
            )
        return farthest_m

    @classmethod
    def quick(cls) -> Self:
        """Return a small sweep that takes half a minute."""
        return cls(count=3, shape=(400, 500))

    @property
    def places(self) -> list[tuple[int, ...]]:
        """Number of each scene."""
        return [(number,) for number in range(self.count)]

    def check(self) -> None:
        """Refuse scenes that cannot be."""
        super().check()
        self.scene(0)

    def scene(self, number: int) -> RandomScene:
        """Return one of the scenes; its seed is the seed of the sweep plus its number."""
        return RandomScene(
            seed=self.seed + number,
            nearest_m=self.nearest_m,
            farthest_m=self.farthest_m,
            patterns=self.patterns,
            photos=() if self.photos is None else (self.photos,),
            surfaces=self.surfaces,
        )

    def trial(self, place: Sequence[int], rig: Rig) -> "Trial":
        """Return the noisy pair of one scene; its key is `scene`, the seed of the scene."""
        (number,) = place
        scene = self.scene(number)
        key = {"scene": scene.seed}
        return make_trial(scene, rig, self, self.shape, (self.seed, number), key)


class TimedDepth(NamedTuple):
    """Depth map of one contender, and its cost."""

    depth_map: DepthMap
    time_s: float  # processor time of all threads together: other programs do not count


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A noisy pair with its truth; `key` holds the columns that name the pair in a table."""

    left: Image
    right: Image
    truth: Truth
    rig: Rig
    key: Mapping[str, Any]

    def run(self, contenders: Sequence[Contender]) -> dict[str, TimedDepth]:
        """Depth map and time of each contender, by name."""
        return {one.name: run_contender(one, self.left, self.right, self.rig) for one in contenders}

    def duel_rows(
        self, contenders: Sequence[Contender], outcomes: Mapping[str, TimedDepth]
    ) -> list[dict[str, Any]]:
        """Rows of each contender against each rival, on the pixels that both retained."""
        found = {name: outcome.depth_map for name, outcome in outcomes.items()}
        return [
            {**self.key, "method": one.name, "rival": rival.name}
            | duel(found[one.name], found[rival.name], self.truth)
            for one in contenders
            for rival in contenders
            if rival.is_rival and rival.name != one.name
        ]


def run_contender(contender: Contender, left: Image, right: Image, rig: Rig) -> TimedDepth:
    """Depth map and time of a contender on a pair; compiling it is not in the time."""
    _warm_up(contender.method)
    started = time.process_time()
    depth_map = contender.estimate(left, right, rig)
    return TimedDepth(depth_map, time.process_time() - started)


@cache
def _warm_up(method: str) -> None:
    """Load and compile a method once in each process, so that no measured time contains that."""
    left, right = np.random.default_rng(0).random((2, *_WARM_UP_SHAPE))
    estimate_quietly(left, right, Rig.paper_prototype(), method=method)


def make_trial(
    scene: Scene,
    rig: Rig,
    sweep: TwinSweep,
    shape: tuple[int, int],
    noise_seed: tuple[int, ...],
    key: Mapping[str, Any] | None = None,
) -> Trial:
    """Simulate a pair without noise, take its truth, and add the noise.

    With typical lenses the rig is the calibrated one. `noise_seed` differs for each pair of a
    sweep, and `key` holds the columns that name the pair in a table.
    """
    pair: Pair | TypicalPair
    if sweep.lens == "typical":
        pair = typical_pair(scene, rig, shape, noise=sweep.noise, seed=noise_seed, psf=sweep.psf)
        left, right = pair.noisy
    else:
        pair = simulate(scene, rig, shape=shape, psf=sweep.psf)
        left, right = expose_pair(pair.left, pair.right, sweep.noise, noise_seed)
    truth = truth_of(pair, sweep.noise)
    return Trial(left=left, right=right, truth=truth, rig=pair.rig, key=key or {})
