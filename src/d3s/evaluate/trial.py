"""One noisy pair, its truth, and what each contender makes of it."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import AfterValidator, Field

from d3s.errors import OptionsError, RecordError
from d3s.estimate import DepthMap, estimate
from d3s.evaluate.contender import Contender
from d3s.evaluate.metrics import Duel, duel
from d3s.evaluate.texture_sets import REPORT_PATTERNS
from d3s.evaluate.truth import WINDOW_PX, Truth, truth_of
from d3s.record import Record
from d3s.rig import Rig
from d3s.scene.pair import simulate
from d3s.scene.scenes import Scene
from d3s.scene.sensor import expose_pair
from d3s.scene.textures import check_pattern
from d3s.types import Image

# So that something is left within the border, on either side of the largest disparity.
_SMALLEST_PX = 3 * WINDOW_PX
_Pixels = Annotated[int, Field(ge=_SMALLEST_PX, le=8000)]
Shape = tuple[_Pixels, _Pixels]
_WARM_SHAPE = (48, 128)


def _known(patterns: tuple[str, ...]) -> tuple[str, ...]:
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


class Sweep(Record):
    """What planes and scenes have in common."""

    error: ClassVar[type[RecordError]] = OptionsError

    patterns: Annotated[tuple[str, ...], AfterValidator(_known)] = Field(
        default=REPORT_PATTERNS, description="the textures"
    )
    noise: float = Field(
        default=0.01, gt=0, lt=1, description="the standard deviation of the noise, of full scale"
    )
    psf: Literal["disk", "gaussian", "diffraction"] = Field(
        default="disk", description="the shape of a blurred point"
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="of the textures and of the noise")

    @classmethod
    @abstractmethod
    def quick(cls) -> Self:
        """Return a sweep of half a minute, for a first look."""

    @property
    @abstractmethod
    def places(self) -> list[tuple[int, ...]]:
        """Where the pairs stand in the sweep, one for each: what a trial is found by."""


class Outcome(NamedTuple):
    """What one contender made of a pair."""

    depth_map: DepthMap
    time_s: float  # of the processor, all threads together: what else runs does not count


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A noisy pair, with its truth."""

    left: Image
    right: Image
    truth: Truth
    rig: Rig

    def run(self, contenders: Sequence[Contender]) -> dict[str, Outcome]:
        """Depth maps of all contenders, by their names."""
        outcomes = {}
        for contender in contenders:
            _warm_up(contender.method)
            started = time.process_time()
            depth_map = contender.estimate(self.left, self.right, self.rig)
            outcomes[contender.name] = Outcome(depth_map, time.process_time() - started)
        return outcomes

    def duels(
        self, contenders: Sequence[Contender], outcomes: dict[str, Outcome]
    ) -> Iterator[tuple[str, str, Duel]]:
        """Each contender against each rival: both names, and how it went."""
        for contender in contenders:
            for rival in contenders:
                if rival.is_rival and rival.name != contender.name:
                    names = contender.name, rival.name
                    own, other = (outcomes[name].depth_map for name in names)
                    yield *names, duel(own, other, self.truth)


@cache
def _warm_up(method: str) -> None:
    """Load and compile a method, once in each process, so that no trial's time has that in it."""
    left, right = np.random.default_rng(0).random((2, *_WARM_SHAPE))
    estimate(left, right, Rig.paper_prototype(), method=method)


def make_trial(
    scene: Scene, rig: Rig, sweep: Sweep, shape: tuple[int, int], noise_seed: tuple[int, ...]
) -> Trial:
    """Simulate without noise, take the bound of that, and add the noise."""
    clean = simulate(scene, rig, shape=shape, psf=sweep.psf)
    left, right = expose_pair(clean.left, clean.right, sweep.noise, noise_seed)
    return Trial(left=left, right=right, truth=truth_of(clean, sweep.noise), rig=rig)


def jobs_of(
    work: str, sweep: Sweep, rig: Rig, contenders: Sequence[Contender]
) -> list[dict[str, Any]]:
    """A job for each pair of a sweep, as `run_jobs` takes them."""
    common = {
        "work": work,
        "sweep": sweep.model_dump(mode="json"),
        "rig": rig.model_dump(mode="json", exclude_none=True),
        "methods": [one.as_table() for one in contenders],
    }
    return [{**common, "place": list(place)} for place in sweep.places]


def rig_of(job: Mapping[str, Any]) -> Rig:
    """The rig of a job."""
    return Rig(**job["rig"])


def contenders_of(job: Mapping[str, Any]) -> tuple[Contender, ...]:
    """The contenders of a job."""
    return tuple(Contender.from_table(table) for table in job["methods"])
