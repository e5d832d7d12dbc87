"""From what is asked of a camera to cameras: the smallest, brightest, most exact, and their front.

Cameras are drawn at random over all that is free, then the best of them are varied, in smaller and
smaller steps. All are judged by the table of errors; the answers are predicted once more in full.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import DesignError, RecordError
from d3s.lab.design.camera import Camera
from d3s.lab.design.candidates import (
    Array,
    CameraCandidates,
    ImageSensor,
    MeritFunction,
    Merits,
    Parts,
    StockLens,
    load_catalogue,
)
from d3s.lab.design.error_model import Axes, ErrorTable, build_table, natural_table
from d3s.lab.design.predict import ErrorLimit
from d3s.lab.design.wall import Lighting, Wall
from d3s.record import Converted, Record
from d3s.types import Progress

_Depth = Annotated[float, Field(gt=1e-3, le=1e4)]


class Requirements(Record):
    """Task of a camera: reach, error, size, field and light.

    The error is the mean absolute error of `joint` on a textured wall at every depth of the reach.
    """

    error: ClassVar[type[RecordError]] = DesignError

    reach_m: Converted[tuple[_Depth, _Depth]] = Field(
        description="the nearest and the farthest depth"
    )
    error_m: float = Field(default=0.0, ge=0, le=100, description="the largest error, as a length")
    error_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        validate_default=True,
        description="the largest error, as a share of the depth; the larger of both holds",
    )
    max_size_m: float | None = Field(
        default=None, gt=0, le=10, description="the longest side of lenses and sensor together"
    )
    min_field_rad: float = Field(
        default=math.radians(20),
        gt=0,
        lt=3,
        description="the least horizontal field of view, in radians",
    )
    min_light_um2: float | None = Field(
        default=None,
        gt=0,
        description="the least area of a pixel over the squared f-number, in square micrometres",
    )

    calibration_px: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="the disparity that a calibration leaves, which the error includes",
    )

    @field_validator("reach_m")
    @classmethod
    def _increases(cls, reach_m: tuple[float, float]) -> tuple[float, float]:
        if not reach_m[0] < reach_m[1]:
            raise ValueError("must be the nearest depth, then a larger one.")
        return reach_m

    @field_validator("error_share")
    @classmethod
    def _is_one_of_two(cls, share: float, info: ValidationInfo) -> float:
        if share == 0 and info.data.get("error_m") == 0:
            raise ValueError("or error_m must be above 0: say how large the error may be.")
        return share

    @property
    def limit(self) -> ErrorLimit:
        """Largest error at each depth."""
        return ErrorLimit(self.error_m, self.error_share)


class FixedValues(Record):
    """Values of the camera that are given; None is free to choose."""

    error: ClassVar[type[RecordError]] = DesignError

    focal_length_m: float | None = Field(
        default=None, gt=0, lt=1, description="the focal length of both lenses"
    )
    f_number: float | None = Field(
        default=None, ge=0.5, le=1000, description="the focal length over the opening"
    )
    baseline_m: float | None = Field(
        default=None, gt=0, lt=10, description="the distance of the lens centres"
    )
    focus_m: Converted[tuple[_Depth, _Depth] | None] = Field(
        default=None,
        validate_default=True,
        description="the distances in focus of the left and the right lens",
    )
    sensors: tuple[ImageSensor, ...] = Field(
        default=(), description="the sensors to choose from; those of the catalogue if none"
    )
    lenses: tuple[StockLens, ...] = Field(
        default=(), description="the lenses to choose from; lenses of any focal length if none"
    )


MARGIN_SIGMAS = 1.65
"""Standard deviations of the scatter of predictions by which errors stay below the wish."""
GOALS = ("smallest", "brightest", "most exact")
"""What the answers of a search are."""

ROUNDS = 26
"""Rounds of variation for each goal."""

_DRAWN, _PARENTS, _CHILDREN = 24_000, 60, 1500
_FIRST_STEP, _LAST_STEP = 0.35, 0.004  # of the variation, in natural logarithms
_NEW_PART = 0.1  # share of children with another sensor or lens
_OTHERS = 0.02  # weight of the other goals beside one: a per cent of size for half of the error
_FRONT = 16  # most cameras of the front that are told
_ALIKE = 0.02  # difference of figures of the front that count as equal, in natural logarithms
_FOCAL_M, _F_NUMBER, _BASELINE_M = (1e-3, 60e-3), (1.8, 22.0), (1e-3, 0.3)
_APART_PX = (0.05, 2.5)  # difference of the blur radii
_CONTRAST = 0.15  # of the texture of the table

# Tables of photos have coarser steps, since they are made on the way.
_COARSE_AXES = {
    1: Axes((0.0, 1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 0.6, 1.5, 3.0), (0.12, 0.3, 0.7, 1.6, 4.0)),
    2: Axes((0.0, 2.0, 4.0, 5.0, 6.5), (0.0, 1.0, 3.0), (0.12, 0.3, 0.7, 1.6, 4.0)),
    4: Axes((0.0, 3.0, 6.0, 9.0, 12.0, 18.0), (0.0, 1.0, 3.0), (0.12, 0.3, 0.7, 1.6, 4.0)),
}


@dataclass(frozen=True)
class Answer:
    """One camera that meets a wish, with the goal that it is best at."""

    goal: str
    camera: Camera
    size_m: float
    light_um2: float
    field_rad: float
    worst: float  # largest error over its limit, with the margin for the scatter
    farthest_m: float  # depth up to which the error stays within the wish, at most three reaches
    sensor: str
    lens: str  # name in the catalogue; empty for a lens of any kind


@dataclass(frozen=True)
class Relaxed:
    """Change of one wish that would let a camera meet the others."""

    wish: str
    words: str


@dataclass(frozen=True)
class Search:
    """Result of a search: answers and front, or what to relax."""

    wish: Requirements
    answers: tuple[Answer, ...]  # one for each goal; none if the wish cannot be met
    front: tuple[Answer, ...]  # none is smaller, brighter and farther than another
    relaxed: tuple[Relaxed, ...]
    tried: int  # number of cameras


_Score = Callable[[Merits], Array]


def search(
    wish: Requirements,
    given: FixedValues = FixedValues(),  # noqa: B008 - immutable
    *,
    light: Lighting = Lighting(),  # noqa: B008 - immutable
    wall: Wall = Wall(),  # noqa: B008 - immutable
    seed: int = 0,
    progress: Progress | None = None,
) -> Search:
    """Search cameras that meet a wish.

    Parameters
    ----------
    wish
        Reach, error, size, field and light.
    given
        Values that are not to be chosen; sensors and lenses to choose from.
    light, wall
        Noise and texture. The texture must look alike at every distance: natural, or a photo
        without a width.
    seed
        Seed of the random numbers.
    progress
        Called with the number of finished rounds, and of all.

    Raises
    ------
    DesignError
        If the texture has a size of its own.
    """
    seeker = _Seeker(judge_of(wish, given, light, wall), wish, given, seed, progress)
    found = {goal: seeker.best(_objective(goal), _violation(wish)) for goal in GOALS}
    archive, merits = seeker.archive
    if merits.size_m.size == 0:
        return Search(wish, (), (), seeker.relaxed(), seeker.tried)
    answers = []
    for goal in GOALS:
        best, figures = found[goal]
        answers.append(seeker.answer(goal, best, figures, 0))
    places = front_places(merits)
    front = tuple(seeker.answer("front", archive, merits, int(place)) for place in places)
    return Search(wish, tuple(answers), front, (), seeker.tried)


def judge_of(wish: Requirements, given: FixedValues, light: Lighting, wall: Wall) -> MeritFunction:
    """Figures of merit of cameras for what is asked."""
    table, contrast = _table(wall)
    return MeritFunction(
        parts=Parts(given.sensors or load_catalogue().sensors, given.lenses),
        table=table,
        light=light,
        limit=wish.limit,
        reach_m=wish.reach_m,
        contrast=contrast,
        calibration_px=wish.calibration_px,
        sigmas=MARGIN_SIGMAS,
    )


def _table(wall: Wall) -> tuple[ErrorTable, float]:
    """Table of a texture, and its contrast over that of the table."""
    if wall.is_natural and wall.slope == 2:
        return natural_table(), wall.contrast / _CONTRAST
    if not wall.looks_alike:
        raise DesignError(
            f"texture={wall.texture!r} must look alike at every distance for a search: natural, "
            "or a photo without a width. Search with natural, then predict with this texture."
        )
    return build_table(wall, _COARSE_AXES, side_px=256), 1.0


def draw(
    judge: MeritFunction, given: FixedValues, count: int, rng: np.random.Generator
) -> CameraCandidates:
    """Draw cameras at random over all that is not given."""

    def log_uniform(ends: tuple[float, float]) -> Array:
        low, high = np.log(ends)
        return np.asarray(np.exp(rng.uniform(low, high, count)))

    parts = judge.parts
    sensor = rng.integers(len(parts.sensors), size=count)
    lens = rng.integers(len(parts.lenses), size=count) if parts.lenses else np.full(count, -1)
    near, far = judge.reach_m
    middle = rng.uniform(0.3 / far, 1.2 / near, count)
    found = CameraCandidates(
        sensor=sensor,
        lens=lens,
        focal_m=log_uniform(_FOCAL_M),
        f_number=log_uniform(_F_NUMBER),
        baseline_m=log_uniform(_BASELINE_M),
        middle_dpt=middle,
        apart_dpt=log_uniform(_APART_PX),
    )
    # About a third has its lenses in the middle of the halves of its sensor.
    width = np.array([one.cols_px * one.pixel_pitch_m for one in parts.sensors])[sensor]
    halved = np.where(rng.random(count) < 0.35, 0.5 * width, found.baseline_m)
    found = replace(found, baseline_m=halved, apart_dpt=_in_dioptres(judge, found))
    return _as_given(found, judge, given)


def _in_dioptres(judge: MeritFunction, found: CameraCandidates) -> Array:
    """Vergence by which the focus differs, for a difference of the blur radii in pixels."""
    pitch = np.array([one.pixel_pitch_m for one in judge.parts.sensors])[found.sensor]
    per_dpt = found.focal_m**2 / (2 * found.f_number) / pitch
    return np.asarray(np.minimum(found.apart_dpt / per_dpt, 1.8 * found.middle_dpt))


def _as_given(
    found: CameraCandidates, judge: MeritFunction, given: FixedValues
) -> CameraCandidates:
    """Cameras with the values that are given; a stock lens gives its focal length."""
    values = {
        "focal_m": given.focal_length_m,
        "f_number": given.f_number,
        "baseline_m": given.baseline_m,
    }
    if given.focus_m is not None:
        left, right = (1 / one for one in given.focus_m)
        values |= {"middle_dpt": (left + right) / 2, "apart_dpt": left - right}
    fixed = {
        name: np.full(len(found), value) for name, value in values.items() if value is not None
    }
    lenses = judge.parts.lenses
    if lenses:
        fixed["focal_m"] = np.array([one.focal_length_m for one in lenses])[found.lens]
        least = np.array([one.least_f_number for one in lenses])[found.lens]
        if given.f_number is None:
            fixed["f_number"] = np.maximum(found.f_number, least)
    return replace(found, **fixed)


def _objective(goal: str) -> _Score:
    """Figure of a goal, the smaller the better; the other goals decide between equals."""

    def score(merits: Merits) -> Array:
        figures = dict(
            zip(
                GOALS,
                (np.log(merits.size_m), -np.log(merits.light_um2), np.log(merits.worst)),
                strict=True,
            )
        )
        weighted = [(1 if one == goal else _OTHERS) * value for one, value in figures.items()]
        return np.asarray(np.sum(weighted, axis=0))

    return score


def violations(wish: Requirements) -> dict[str, _Score]:
    """Logarithm of what is missed of each wish; 0 or less if it is met."""
    found: dict[str, _Score] = {
        "error": lambda merits: np.log(merits.worst),
        "field": lambda merits: np.log(wish.min_field_rad / np.maximum(merits.field_rad, 1e-6)),
    }
    if wish.max_size_m is not None:
        largest = wish.max_size_m
        found["size"] = lambda merits: np.log(merits.size_m / largest)
    if wish.min_light_um2 is not None:
        least = wish.min_light_um2
        found["light"] = lambda merits: np.log(least / merits.light_um2)
    return found


def _violation(wish: Requirements, but: str = "") -> _Score:
    """Sum of what is missed of all wishes, but one."""
    scores = [score for name, score in violations(wish).items() if name != but]

    def total(merits: Merits) -> Array:
        missed = [np.maximum(score(merits), 0) for score in scores]
        return np.where(merits.is_possible, np.sum(missed, axis=0) if missed else 0.0, 50.0)

    return total


def front_places(merits: Merits) -> Array:
    """Places of the cameras that no other beats in size, light and reach; at most 16, by size.

    Figures within 2 % of each other count as equal: nobody would choose between them.
    """
    figures = np.log([merits.size_m, 1 / merits.light_um2, 1 / merits.farthest_m])
    figures = np.round(figures / _ALIKE) * _ALIKE
    order = np.lexsort(figures[::-1])
    kept: list[int] = []
    for place in order:
        rivals = figures[:, kept]
        if not np.any(np.all(rivals <= figures[:, [place]] + 1e-9, axis=0)):
            kept.append(int(place))
    if len(kept) <= _FRONT:
        return np.array(kept)
    # Spread over the front: from one end, always the camera farthest from those chosen.
    points = figures[:, kept]
    points = (points - points.min(axis=1, keepdims=True)) / np.maximum(
        np.ptp(points, axis=1)[:, np.newaxis], 1e-9
    )
    chosen = [0]
    distance = np.linalg.norm(points - points[:, [0]], axis=0)
    while len(chosen) < _FRONT:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(points - points[:, [chosen[-1]]], axis=0))
    return np.array(kept)[sorted(chosen)]


class _Seeker:
    """Evolution of cameras, and all that were found to meet the wish."""

    def __init__(
        self,
        judge: MeritFunction,
        wish: Requirements,
        given: FixedValues,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self._judge, self._wish, self._given = judge, wish, given
        self._rng = np.random.default_rng(seed)
        self._progress = progress
        self._done, self._total = 0, len(GOALS) * ROUNDS
        self._pool = draw(judge, given, _DRAWN, self._rng)
        self._merits = judge.merits(self._pool)
        self.tried = _DRAWN
        self._good: list[tuple[CameraCandidates, Merits]] = []
        self._keep_good(self._pool, self._merits)

    @property
    def archive(self) -> tuple[CameraCandidates, Merits]:
        """All cameras that meet the wish."""
        return (
            CameraCandidates.join([one for one, _ in self._good]),
            Merits.join([one for _, one in self._good]),
        )

    def best(self, objective: _Score, violation: _Score) -> tuple[CameraCandidates, Merits]:
        """Cameras in the order of an objective, those that meet the wish first."""

        def score(merits: Merits) -> Array:
            missed = violation(merits)
            return np.asarray(np.where(missed > 0, 1e3 + 1e3 * missed, objective(merits)))

        parents, figures = self._pool, self._merits
        for step in np.geomspace(_FIRST_STEP, _LAST_STEP, ROUNDS):
            order = np.argsort(score(figures), kind="stable")[:_PARENTS]
            parents, figures = parents.take(order), figures.take(order)
            children = self._varied(parents, float(step))
            new = self._judge.merits(children)
            self.tried += len(children)
            self._keep_good(children, new)
            parents = CameraCandidates.join([parents, children])
            figures = Merits.join([figures, new])
            self._done += 1
            if self._progress is not None:
                self._progress(min(self._done, self._total), self._total)
        order = np.argsort(score(figures), kind="stable")[:_PARENTS]
        return parents.take(order), figures.take(order)

    def _varied(self, parents: CameraCandidates, step: float) -> CameraCandidates:
        places = self._rng.integers(len(parents), size=_CHILDREN)
        one = parents.take(places)

        def moved(values: Array, ends: tuple[float, float], share: float = 1.0) -> Array:
            moves = np.exp(share * step * self._rng.standard_normal(values.size))
            return np.asarray(np.clip(values * moves, *ends))

        parts = self._judge.parts
        other = self._rng.random(_CHILDREN) < _NEW_PART
        sensor = np.where(other, self._rng.integers(len(parts.sensors), size=_CHILDREN), one.sensor)
        lens = one.lens
        if parts.lenses:
            other = self._rng.random(_CHILDREN) < _NEW_PART
            lens = np.where(other, self._rng.integers(len(parts.lenses), size=_CHILDREN), lens)
        found = CameraCandidates(
            sensor=sensor,
            lens=lens,
            focal_m=moved(one.focal_m, _FOCAL_M),
            f_number=moved(one.f_number, _F_NUMBER),
            baseline_m=moved(one.baseline_m, _BASELINE_M),
            middle_dpt=moved(one.middle_dpt, (1e-4, 1e3)),
            apart_dpt=np.minimum(
                moved(np.abs(one.apart_dpt), (1e-6, 1e3), 2.0), 1.8 * one.middle_dpt
            ),
        )
        return _as_given(found, self._judge, self._given)

    def _keep_good(self, candidates: CameraCandidates, merits: Merits) -> None:
        places = np.flatnonzero(_violation(self._wish)(merits) <= 0)
        self._good.append((candidates.take(places), merits.take(places)))

    def answer(self, goal: str, found: CameraCandidates, merits: Merits, place: int) -> Answer:
        """Camera of one candidate, as an answer that is best at a goal."""
        parts = self._judge.parts
        lens = int(found.lens[place])
        return Answer(
            goal=goal,
            camera=parts.camera(found, place, f"{goal} camera"),
            size_m=float(merits.size_m[place]),
            light_um2=float(merits.light_um2[place]),
            field_rad=float(merits.field_rad[place]),
            worst=float(merits.worst[place]),
            farthest_m=float(merits.farthest_m[place]),
            sensor=parts.sensors[int(found.sensor[place])].name,
            lens=parts.lenses[lens].name if lens >= 0 else "",
        )

    def relaxed(self) -> tuple[Relaxed, ...]:
        """Least change of each single wish with which the others can be met."""
        wish = self._wish
        found = []
        for name, score in violations(wish).items():
            _, merits = self.best(score, _violation(wish, name))
            if _violation(wish, name)(merits)[0] <= 0:
                factor = float(np.exp(score(merits)[0]))
                found.append(Relaxed(name, _relaxed_words(wish, name, factor)))
        near, far = wish.reach_m
        for name, objective in (
            ("farthest", lambda merits: -merits.farthest_m),
            ("nearest", lambda merits: merits.nearest_m),
        ):
            _, merits = self.best(objective, _violation(wish, "error"))
            reach = float(merits.farthest_m[0] if name == "farthest" else merits.nearest_m[0])
            is_met = _violation(wish, "error")(merits)[0] <= 0
            if is_met and (near < reach < far):
                ends = (near, reach) if name == "farthest" else (reach, far)
                found.append(
                    Relaxed(name, f"a reach of {ends[0]:.3g} to {ends[1]:.3g} m can be met")
                )
        return tuple(found)


def _relaxed_words(wish: Requirements, name: str, factor: float) -> str:
    if name == "error":
        return f"an error of {factor:.2f} times the wish can be met"
    if name == "size" and wish.max_size_m is not None:
        return f"a size of {1e3 * wish.max_size_m * factor:.1f} mm can be met"
    if name == "field":
        return f"a field of {np.degrees(wish.min_field_rad / factor):.1f} degrees can be met"
    return f"light of {(wish.min_light_um2 or 0) / factor:.3g} um2 can be met"
