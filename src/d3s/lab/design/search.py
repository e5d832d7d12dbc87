"""From what is asked of a camera to cameras: the smallest, brightest, most exact, and their front.

Cameras are drawn at random over all that is free, and differential evolution varies the best of
them. All are judged by the table of errors; the answers are predicted once more in full.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.errors import DesignError
from d3s.estimate.candidates import WIDEST_BLUR_PX
from d3s.lab.design.camera import CLEAR_SHARE, THICKNESS_SHARE, Camera, view_and_box
from d3s.lab.design.candidates import FixedValues, ImageSensor, Requirements, load_catalogue
from d3s.lab.design.error_model import (
    LARGEST_DIFFERENCE_PX,
    LARGEST_RADIUS_PX,
    MAE_PER_SIGMA,
    Axes,
    ErrorTable,
    build_table,
    error_model,
    natural_table,
)
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.predict import LEAST_DENSITY
from d3s.lab.design.wall import NATURAL_CONTRAST, Lighting, Wall
from d3s.types import Progress

Array = NDArray[Any]
"""One value for each camera: numbers, indices or truths."""

MARGIN_SIGMAS = 1.65
"""Standard deviations of the scatter of predictions by which errors stay below the wish."""
GOALS = ("smallest", "brightest", "most exact")
"""Kinds of answers of a search."""
ROUNDS = 120
"""Generations of the evolution for each goal."""

_DRAWN, _POPULATION = 12_000, 150
_OTHERS = 0.02  # weight of the other goals beside one: a per cent of size for half of the error
_FRONT = 16  # most cameras of the front that are told
_ALIKE = 0.02  # difference of figures of the front that count as equal, in natural logarithms
_FOCAL_M, _F_NUMBER, _BASELINE_M = (1e-3, 60e-3), (1.8, 22.0), (1e-3, 0.3)
_APART_PX = (0.02, 3.0)  # difference of the blur radii
_NODES, _BEYOND = 14, 8  # depths over a reach, and up to three times as far, at which errors are
_MOST_SHARED = 0.5  # of the width of a view that the largest disparity may take
_NEAREST_FOCAL_LENGTHS = 4.0
_LONGEST_BASELINE = 49.0  # of the sensor distance: the rule of `Optics`, and some

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
class Search:
    """Result of a search: answers and front, or what to relax."""

    wish: Requirements
    answers: tuple[Answer, ...]  # one for each goal; none if the wish cannot be met
    front: tuple[Answer, ...]  # none is smaller, brighter and farther than another
    relaxed: dict[str, str]  # by the name of a wish, what can be met of it with all others
    tried: int  # number of cameras


class Merits(NamedTuple):
    """Figures of merit of cameras; one value each."""

    is_possible: Array  # rules that no wish can relax: lenses fit, views overlap, blur known
    size_m: Array
    light_um2: Array
    field_rad: Array
    worst: Array  # largest error over its limit, over the reach, with its margin
    nearest_m: Array  # depths between which the error is within its limit, from either end
    farthest_m: Array


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
    evolution = _Evolution(MeritFunction(wish, given, light, wall), seed, progress)
    for goal in GOALS:
        evolution.best(goal)
    met, merits = np.concatenate(evolution.met, axis=1), evolution.merits
    if met.size == 0:
        return Search(wish, (), (), evolution.relaxed(), evolution.tried)
    figures = merits(met)
    places = {goal: int(np.argmin(objectives(figures)[goal])) for goal in GOALS}
    answers = [merits.answer(met[:, place], goal) for goal, place in places.items()]
    front = [merits.answer(met[:, place], "front") for place in front_places(figures)]
    return Search(wish, tuple(answers), tuple(front), {}, evolution.tried)


class MeritFunction:
    """Figures of merit of cameras, which are columns of seven numbers within bounds.

    The numbers are logarithms of focal length, f-number and baseline, the mean vergence of both
    focus distances, the logarithm of the difference of the blur radii in pixels, and the indices of
    sensor and lens. What is given takes the place of its number.
    """

    def __init__(self, wish: Requirements, given: FixedValues, light: Lighting, wall: Wall) -> None:
        self.wish, self.given, self.light = wish, given, light
        self.table, self.contrast = _table(wall)
        self.sensors: tuple[ImageSensor, ...] = given.sensors or load_catalogue().sensors
        near, far = wish.reach_m
        self.bounds = np.array(
            [
                *np.log([_FOCAL_M, _F_NUMBER, _BASELINE_M]),
                (0.3 / far, 1.2 / near),
                np.log(_APART_PX),
                (0, len(self.sensors) - 1e-9),
                (0, max(len(given.lenses), 1) - 1e-9),
            ]
        )
        within = 1 / np.linspace(1 / near, 1 / far, _NODES)
        self.depths_m = np.concatenate([within, far * np.linspace(1, 3, _BEYOND + 1)[1:]])

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Draw cameras at random, (7, count)."""
        return rng.uniform(self.bounds[:, 0], self.bounds[:, 1], (count, len(self.bounds))).T

    def _lengths(self, cameras: Array) -> tuple[Array, ...]:
        """Focal length, f-number, baseline, and both focus vergences; index of sensor and lens."""
        given, pitch = self.given, np.array([one.pixel_pitch_m for one in self.sensors])
        sensor, part = cameras[5:].astype(int)
        focal, f_number, baseline, apart_px = np.exp(cameras[[0, 1, 2, 4]])
        if given.lenses:
            focal, least = np.array(
                [(one.focal_length_m, one.least_f_number) for one in given.lenses]
            ).T[:, part]
            f_number = np.maximum(f_number, least)
        else:
            focal = given.focal_length_m or focal
        f_number = given.f_number or f_number
        middle = cameras[3]
        half = np.minimum(apart_px * f_number * pitch[sensor] / np.square(focal), 0.9 * middle)
        left, right = middle + half, middle - half
        if given.focus_m is not None:
            left, right = (1 / one for one in given.focus_m)
        baseline = given.baseline_m or baseline
        return np.broadcast_arrays(focal, f_number, baseline, left, right, sensor, part)

    def __call__(self, cameras: Array) -> Merits:
        """Figures of cameras, (7, n)."""
        focal, f_number, baseline, left, right, sensor, part = self._lengths(cameras)
        pitch, rows, cols = np.array(
            [(one.pixel_pitch_m, one.rows_px, one.cols_px) for one in self.sensors]
        ).T[:, sensor]
        opening = focal / f_number
        diameter, length, clear = opening / CLEAR_SHARE * [[1], [THICKNESS_SHARE], [CLEAR_SHARE]]
        if self.given.lenses:
            sizes = np.array([one.sizes_m for one in self.given.lenses]).T
            diameter, length, clear = sizes[:, part]
        sensor_m = 1 / (1 / focal - 0.5 * (left + right))
        view, box = view_and_box(baseline, sensor_m, pitch, (rows, cols), (diameter, length))
        over, is_known = self._errors(f_number, focal, baseline, (left, right), pitch, sensor_m)
        nearest = sensor_m / pitch * baseline / self.wish.reach_m[0]
        is_possible = (
            is_known
            & (opening <= clear * (1 + 1e-9))
            & (diameter <= baseline)
            & (baseline <= _LONGEST_BASELINE * sensor_m)
            & ((baseline >= cols * pitch) | (view >= 0.25 * cols))
            & (nearest <= _MOST_SHARED * view)
            & (np.minimum(left, right) > 0)
            & (0.5 * (left + right) * focal * _NEAREST_FOCAL_LENGTHS < 1)
        )
        return Merits(
            is_possible,
            np.maximum.reduce(box),
            np.square(1e6 * pitch / f_number),
            2 * np.arctan(0.5 * np.maximum(view, 0) * pitch / sensor_m),
            over[:, :_NODES].max(axis=1),
            *self._reach(over <= 1),
        )

    def _errors(
        self,
        f_number: Array,
        focal: Array,
        baseline: Array,
        focus_dpt: tuple[Array, Array],
        pitch: Array,
        sensor_m: Array,
    ) -> tuple[Array, Array]:
        """Error at each depth over its limit, and whether the table knows the blur."""
        depths, column = self.depths_m, (slice(None), np.newaxis)
        aperture = 0.5 * focal / f_number
        per_dpt = sensor_m * aperture / pitch
        left, right = (per_dpt[column] * (1 / depths - one[column]) for one in focus_dpt)
        apart = np.abs(left - right)[:, 0]
        cutoff = 2 * aperture * pitch / (WAVELENGTH_M * sensor_m)
        disparity_dpt = (sensor_m / pitch * baseline)[column]
        # alpha over the disparity per dioptre, as `defocus_slope_px`.
        slope = (0.25 * per_dpt * apart)[column] / disparity_dpt
        errors = self.table.at((left, right), cutoff[column], slope, self.contrast)
        noise = self.light.noise_sigma(f_number, pitch)[column]
        model = error_model()
        per_px = depths**2 / disparity_dpt
        margin = np.exp(MARGIN_SIGMAS * model.scatter_of(errors))
        # What remains without noise is alike over a frame, and may add to the calibration's.
        error_m = per_px * np.hypot(
            margin * MAE_PER_SIGMA * model.sigma_px(errors, noise),
            self.wish.calibration_px + model.floor_px,
        )
        over = error_m / self.wish.limit.limit_m(depths)
        over[model.density(errors, noise, disparity_dpt / depths) < LEAST_DENSITY] = 1e3
        widest = np.maximum(np.abs(left), np.abs(right))
        over[2 * widest > WIDEST_BLUR_PX] = 1e3
        is_known = apart <= LARGEST_DIFFERENCE_PX
        return over, is_known & (widest[:, :_NODES].max(axis=1) <= LARGEST_RADIUS_PX)

    def _reach(self, is_good: Array) -> tuple[Array, Array]:
        """Nearest depth from the far end of the reach, and farthest from its near end."""
        ahead = np.cumprod(is_good, axis=1).sum(axis=1)
        behind = np.cumprod(is_good[:, _NODES - 1 :: -1], axis=1).sum(axis=1)
        depths = self.depths_m
        after = np.append(depths[:_NODES], 1e3 * depths[_NODES - 1])[_NODES - behind]
        nearest = np.where(behind > 0, after, 1e3 * depths[_NODES - 1])
        return nearest, np.append(1e-3 * depths[0], depths)[ahead]

    def answer(self, camera: Array, goal: str) -> Answer:
        """Camera of a column, as an answer that is best at a goal."""
        focal, f_number, baseline, *focus, place, part = (
            one.item() for one in self._lengths(camera[:, np.newaxis])
        )
        _, size, light, field, worst, _, far = (one.item() for one in self(camera[:, np.newaxis]))
        sensor = self.sensors[place]
        lens = self.given.lenses[part] if self.given.lenses else None
        built = Camera.of_lenses(
            focal_length_m=focal,
            f_number=f_number,
            baseline_m=baseline,
            focus_m=(1 / focus[0], 1 / focus[1]),
            pixel_pitch_m=sensor.pixel_pitch_m,
            sensor_px=sensor.shape,
            lens_diameter_m=lens and lens.diameter_m,
            lens_length_m=lens and lens.length_m,
            name=f"{goal} camera",
        )
        name = lens.name if lens else ""
        return Answer(goal, built, size, light, field, worst, far, sensor.name, name)


def _table(wall: Wall) -> tuple[ErrorTable, float]:
    """Table of a texture, and its contrast over that of the table."""
    if wall.is_natural and wall.slope == 2:
        return natural_table(), wall.contrast / NATURAL_CONTRAST
    if not wall.looks_alike:
        raise DesignError(
            f"texture={wall.texture!r} must look alike at every distance for a search: natural, "
            "or a photo without a width. Search with natural, then predict with this texture."
        )
    return build_table(wall, _COARSE_AXES, side_px=256), 1.0


def objectives(merits: Merits) -> dict[str, Array]:
    """Figure of each goal, the smaller the better; the other goals decide between equals."""
    figures = np.log([merits.size_m, 1 / merits.light_um2, merits.worst])
    weights = _OTHERS + (1 - _OTHERS) * np.eye(len(GOALS))
    found = dict(zip(GOALS, weights @ figures, strict=True))
    return found | {"farthest": -merits.farthest_m, "nearest": merits.nearest_m}


def violations(wish: Requirements, merits: Merits) -> dict[str, Array]:
    """Logarithm of what is missed of each wish; 0 or less if it is met."""
    found = {
        "error": np.log(merits.worst),
        "field": np.log(wish.min_field_rad / np.maximum(merits.field_rad, 1e-6)),
    }
    if wish.max_size_m is not None:
        found["size"] = np.log(merits.size_m / wish.max_size_m)
    if wish.min_light_um2 is not None:
        found["light"] = np.log(wish.min_light_um2 / merits.light_um2)
    return found


def missed(wish: Requirements, merits: Merits, but: str = "") -> Array:
    """Sum of what is missed of all wishes, but one; 0 for cameras that meet them."""
    found = violations(wish, merits)
    total = sum(np.maximum(one, 0) for name, one in found.items() if name != but)
    return np.where(merits.is_possible, total, 50.0)


def front_places(merits: Merits) -> list[int]:
    """Places of the cameras that no other beats in size, light and reach; at most 16, by size.

    Figures within 2 % of each other count as equal: nobody would choose between them.
    """
    figures = np.log([merits.size_m, 1 / merits.light_um2, 1 / merits.farthest_m])
    figures, places = np.unique(np.round(figures / _ALIKE), axis=1, return_index=True)
    kept: list[int] = []
    for place in range(places.size):
        if not np.any(np.all(figures[:, kept] <= figures[:, [place]], axis=0)):
            kept.append(place)
    spread = np.unique(np.linspace(0, len(kept) - 1, _FRONT).round().astype(int))
    return [int(places[kept[one]]) for one in spread]


class _Evolution:
    """Evolution of cameras, and all that were found to meet the wish."""

    def __init__(self, merits: MeritFunction, seed: int, progress: Progress | None) -> None:
        self.merits, self._progress = merits, progress
        self._rng = np.random.default_rng(seed)
        self.met: list[Array] = []
        self.tried = self._done = 0

    def best(self, goal: str, but: str = "") -> Array:
        """Camera that is best at a goal, of those that meet all wishes but one."""
        from scipy.optimize import differential_evolution  # here, to keep `import d3s` fast

        def score(cameras: Array) -> Array:
            merits, wish = self.merits(cameras), self.merits.wish
            self.tried += cameras.shape[1]
            self.met.append(cameras[:, missed(wish, merits) == 0])
            lacks = missed(wish, merits, but)
            found = (objectives(merits) | violations(wish, merits))[goal]
            return np.where(lacks > 0, 1e3 + 1e3 * lacks, found)

        def tell(*_: Any, **__: Any) -> None:
            self._done += 1
            if self._progress is not None:
                total = len(GOALS) * ROUNDS
                self._progress(min(self._done, total), total)

        drawn = self.merits.draw(_DRAWN, self._rng)
        start = drawn[:, np.argsort(score(drawn), kind="stable")[:_POPULATION]].T
        found = differential_evolution(
            score,
            self.merits.bounds,
            init=start,
            maxiter=ROUNDS,
            tol=0,
            vectorized=True,
            updating="deferred",
            polish=False,
            callback=tell,
            seed=self._rng,
        )
        return np.asarray(found.x)

    def relaxed(self) -> dict[str, str]:
        """Least change of each single wish with which the others can be met, in words."""
        wish, found = self.merits.wish, {}
        near, far = wish.reach_m
        limits = {
            "error": (1.0, "an error of {:.2f} times the wish"),
            "field": (-np.degrees(wish.min_field_rad), "a field of {:.1f} degrees"),
            "size": (1e3 * (wish.max_size_m or 0), "a size of {:.1f} mm"),
            "light": (-(wish.min_light_um2 or 0), "light of {:.3g} um2"),
        }
        for name, (limit, words) in limits.items():
            if limit == 0:
                continue
            merits = self.merits(self.best(name, name)[:, np.newaxis])
            factor = float(np.exp(violations(wish, merits)[name][0]))
            if missed(wish, merits, name)[0] == 0:
                told = limit * factor if limit > 0 else -limit / factor
                found[name] = f"{words.format(told)} can be met"
        for name in ("farthest", "nearest"):
            merits = self.merits(self.best(name, "error")[:, np.newaxis])
            reached = float(getattr(merits, f"{name}_m")[0])
            ends = (near, reached) if name == "farthest" else (reached, far)
            if near < reached < far and missed(wish, merits, "error")[0] == 0:
                found[name] = f"a reach of {ends[0]:.3g} to {ends[1]:.3g} m can be met"
        return found
