"""What the claims about depth maps measure: fixed seeds, public functions, a judge of its own.

The judge shares nothing with `d3s.lab.evaluate` but the definition of an error: pixels count whose
window and whose match lie in the views.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import cv2
import numpy as np
from scipy import ndimage

import d3s

RIG = d3s.Rig.paper_prototype()
TEXTURES = ("text", "brick", "gravel", "bark")  # no option was tuned on them
DEPTHS_M = (0.25, 0.5, 1.0, 1.5, 2.0)
SCENES = 4
BORDER_PX = 33  # reach of the methods: it would decide in frames as small as these
FIELDS = ("depth_m", "sigma_m", "confidence", "flags")
Change = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Judged:
    """Judged pixels of depth maps: error and sigma in cm, NaN where there is no depth."""

    error_cm: np.ndarray
    sigma_cm: np.ndarray

    @classmethod
    def joined(cls, parts: Iterable["Judged"]) -> "Judged":
        """All pixels of several."""
        errors, sigmas = zip(*((part.error_cm, part.sigma_cm) for part in parts), strict=True)
        return cls(np.hstack(errors), np.hstack(sigmas))

    @property
    def density(self) -> float:
        """Pixels with a depth, in percent."""
        return 100 * float(np.isfinite(self.error_cm).mean())

    @property
    def mae_cm(self) -> float:
        """Mean absolute error."""
        return float(np.nanmean(np.abs(self.error_cm)))

    def above(self, limit_cm: float) -> float:
        """Errors above a limit, in percent of the depths."""
        return 100 * float((np.abs(self.error_cm[np.isfinite(self.error_cm)]) > limit_cm).mean())

    def within(self, sigmas: float) -> float:
        """Errors within a number of sigma, in percent of the depths."""
        known = np.isfinite(self.error_cm)
        return 100 * float((np.abs(self.error_cm) < sigmas * self.sigma_cm)[known].mean())


def judge(found: d3s.DepthMap, pair: d3s.Pair, where: np.ndarray | bool = True) -> Judged:
    """Errors of a depth map on the pixels that count."""
    inside = np.zeros(pair.left.shape, dtype=bool)
    inside[BORDER_PX:-BORDER_PX, BORDER_PX:-BORDER_PX] = True
    inside &= (np.arange(inside.shape[1]) - pair.disparity_px >= BORDER_PX) & where
    sigma_m = np.where(found.valid, found.sigma_m, np.nan)
    return Judged(100 * (found.depth_m - pair.depth_m)[inside], 100 * sigma_m[inside])


def estimate_views(
    left: np.ndarray, right: np.ndarray, rig: d3s.Rig = RIG, *, threads: int = 2, **options: Any
) -> d3s.DepthMap:
    """Depth map of two views; its warnings are judged where they matter."""
    with warnings.catch_warnings(), patch.dict(os.environ, D3S_THREADS=str(threads)):
        warnings.simplefilter("ignore", d3s.DepthWarning)
        return d3s.estimate(left, right, rig, **options)


def estimate(pair: d3s.Pair, **options: Any) -> d3s.DepthMap:
    """Depth map of a pair by its camera."""
    return estimate_views(pair.left, pair.right, pair.rig, **options)


# Planes -------------------------------------------------------------------------------------------


@cache
def plane(depth_m: float, pattern: str, noise: float = 0.01, shape=(160, 340), seed=0) -> d3s.Pair:
    """A wall that faces the prototype."""
    scene = d3s.Plane(depth_m=depth_m, texture=d3s.Texture(pattern=pattern, seed=7))
    return d3s.simulate(scene, RIG, noise=noise, seed=seed, shape=shape)


@cache
def on_plane(depth_m: float, pattern: str, method: str = "joint", noise: float = 0.01) -> Judged:
    """Errors of a method on a wall; "tuned" is `consensus` with the numbers that tuning found."""
    from d3s.lab.evaluate.cameras import tuned_rig

    pair = plane(depth_m, pattern, noise)
    if method == "tuned":
        return judge(estimate(replace(pair, rig=tuned_rig()), method="consensus"), pair)
    return judge(estimate(pair, method=method), pair)


def planes(
    method: str = "joint", depths_m: Sequence[float] = DEPTHS_M, noise: float = 0.01
) -> Judged:
    """Errors of a method on all walls."""
    return Judged.joined(on_plane(z, one, method, noise) for z in depths_m for one in TEXTURES)


def noisy(figure: str) -> float:
    """A figure of walls from 0.5 to 2 m seen with 3 % noise."""
    return float(getattr(planes(depths_m=(0.5, 1.0, 2.0), noise=0.03), figure))


def worst_plane_cm() -> float:
    """Largest mean error of a texture at a depth, in cm."""
    return max(on_plane(z, one).mae_cm for z in DEPTHS_M for one in TEXTURES)


def depth_of_a_plane_m() -> float:
    """Median depth of a wall at 1 m, by the defaults."""
    return float(np.nanmedian(estimate(plane(1.0, "bark")).depth_m.astype(np.float64)))


def consensus_range_m() -> float:
    """Farthest of ten depths at which two textures are below 1 cm by the tuned consensus."""
    depths_m = np.geomspace(0.25, 2.0, 10)
    good = [max(on_plane(z, t, "tuned").mae_cm for t in ("brick", "gravel")) < 1 for z in depths_m]
    return float(depths_m[good].max())


# Scenes -------------------------------------------------------------------------------------------


@cache
def scene(number: int, surfaces: str = "textured") -> d3s.Pair:
    """A random scene with edges, slopes and occlusions before the prototype."""
    made = d3s.RandomScene(
        seed=number, nearest_m=0.4, farthest_m=1.9, patterns=TEXTURES, surfaces=surfaces
    )
    return d3s.simulate(made, RIG, noise=0.01, seed=number, shape=(300, 420))


def near_edges(pair: d3s.Pair) -> np.ndarray:
    """Pixels within 16 px of a jump of depth."""
    jump = np.zeros(pair.left.shape, dtype=bool)
    jump[:, 1:] |= np.abs(np.diff(pair.disparity_px, axis=1)) > 1
    jump[1:] |= np.abs(np.diff(pair.disparity_px, axis=0)) > 1
    return ndimage.maximum_filter(jump, size=33)


@cache
def scenes(surfaces: str = "textured", method: str = "joint", edges: bool = False) -> Judged:
    """Errors of a method on random scenes; near edges only, if told."""
    pairs = [scene(number, surfaces) for number in range(SCENES)]
    return Judged.joined(
        judge(estimate(one, method=method), one, near_edges(one) if edges else True)
        for one in pairs
    )


@cache
def slopes() -> Judged:
    """Errors on tilted walls."""
    parts = []
    for number, (depth_m, pattern) in enumerate([(0.6, "gravel"), (1.0, "bark"), (1.5, "brick")]):
        tilted = d3s.TiltedPlane(depth_m=depth_m, texture=pattern, tilt_x_rad=1.0, tilt_y_rad=0.5)
        pair = d3s.simulate(tilted, RIG, noise=0.01, seed=number, shape=(160, 340))
        parts.append(judge(estimate(pair), pair))
    return Judged.joined(parts)


def sigma_over_spread() -> float:
    """Sigma at 1 m over the spread of the depth of a pixel, when only the noise is drawn anew."""
    found = [estimate(plane(1.0, "gravel", shape=(120, 260), seed=draw)) for draw in range(24)]
    depth, sigma = (np.array([getattr(one, name) for one in found], float) for name in FIELDS[:2])
    always = np.isfinite(depth).all(axis=0)
    told, spread = np.mean(sigma[:, always] ** 2, axis=0), np.var(depth[:, always], axis=0, ddof=1)
    return float(np.sqrt(np.median(told) / np.median(spread)))


# What must not matter -----------------------------------------------------------------------------


def blind_depths() -> float:
    """Pixels with a depth in pairs that show nothing: black, grey, white, and one lens covered."""
    flat = [np.full((120, 260), value, np.float32) for value in (0.0, 0.5, 1.0)]
    pairs = [*((view, view) for view in flat), (plane(1.0, "bark").left[:120, :260], flat[0])]
    return float(sum(estimate_views(*pair).valid.sum() for pair in pairs))


def depths_by_chance() -> float:
    """Pixels with a depth, in percent, where the views are independent noise."""
    pairs = [np.random.default_rng(seed).random((2, 300, 500), np.float32) for seed in range(4)]
    return 100 * float(np.mean([estimate_views(*pair).valid for pair in pairs]))


def bytes_that_differ() -> float:
    """Bytes of a depth map that change with two threads for one, and with four times the light."""
    pair = scene(0)
    one = estimate_views(pair.left, pair.right, threads=1)
    two = estimate_views(4 * pair.left, 4 * pair.right)
    parts = [(getattr(one, name), getattr(two, name)) for name in FIELDS]
    return float(sum((a.view(np.uint8) != b.view(np.uint8)).sum() for a, b in parts))


def moved_depths(change: Change, back: Change = np.asarray) -> float:
    """Depths, in percent, that differ by more than a hundredth of sigma after a change of views."""
    pair = scene(0)
    before = estimate(pair)
    after = estimate_views(*(change(view.astype(np.float64)) for view in (pair.left, pair.right)))
    gap = np.abs(back(after.depth_m) - before.depth_m) / before.sigma_m
    either = back(after.valid) | before.valid
    return 100 * float((~(gap < 0.01))[either].mean())


def moved_by_a_cut() -> float:
    """Typical difference of the depth of a wall, in sigma, if 4 rows are cut off above."""
    pair = plane(1.0, "bark", shape=(204, 340))
    rows = slice(200), slice(4, 204)
    whole, cut = (estimate_views(pair.left[part], pair.right[part]) for part in rows)
    gap = np.abs(whole.depth_m[4:] - cut.depth_m[:-4]) / whole.sigma_m[4:]
    return float(np.nanmedian(gap[40:160, 100:300]))


# Warnings -----------------------------------------------------------------------------------------


def good_pairs() -> list[d3s.Pair]:
    """Pairs without a fault: the walls and the scenes of the claims above."""
    walls = [plane(depth_m, pattern) for depth_m in DEPTHS_M for pattern in TEXTURES]
    return walls + [scene(number) for number in range(SCENES)]


def false_alarms() -> float:
    """Good pairs with a warning."""
    return float(sum(bool(estimate(one).warnings) for one in good_pairs()))


def _down(view: np.ndarray) -> np.ndarray:
    size = view.shape[::-1]
    return cv2.warpAffine(view, np.array([[1.0, 0, 0], [0, 1, 1]]), size, flags=cv2.INTER_CUBIC)


def _grain(view: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.5, 0.01, view.shape)


FAULTS = {
    "swapped": lambda left, right: (right, left),
    "rows": lambda left, right: (left, _down(right)),
    "contrast": lambda left, right: (left, 0.9 * right),
    "clipped": lambda *views: [np.minimum(one, np.quantile(one, 0.8)) for one in views],
    "no texture": lambda left, right: (_grain(left, 0), _grain(right, 1)),
}
"""Faults by the words that name them."""


def named_faults() -> float:
    """Share of spoilt pairs, in percent, whose warnings name the fault."""
    pairs = [*(plane(1.0, pattern) for pattern in TEXTURES), scene(0)]
    named = [
        words in " ".join(estimate_views(*spoil(pair.left, pair.right)).warnings)
        for pair in pairs
        for words, spoil in FAULTS.items()
    ]
    return 100 * float(np.mean(named))


# Dense --------------------------------------------------------------------------------------------


@cache
def filled() -> tuple[Judged, Judged, Judged]:
    """Weak scenes, densified: all pixels, filled ones, and these by the nearest measured one."""
    from d3s.lab.dense import estimate_dense

    parts = []
    for number in range(SCENES):
        pair = scene(number, "weak")
        sparse, dense = estimate(pair), estimate_dense(pair.left, pair.right, RIG)
        holes = dense.valid & ~sparse.valid
        nearest = ndimage.distance_transform_edt(~sparse.valid, return_indices=True)[1]
        copied = replace(dense, depth_m=sparse.depth_m[tuple(nearest)])
        parts.append((judge(dense, pair), judge(dense, pair, holes), judge(copied, pair, holes)))
    everywhere, holes, copied = (Judged.joined(some) for some in zip(*parts, strict=True))
    return everywhere, holes, copied


def fall_of_sigma() -> float:
    """Sigma of one frame of a wall over that of eight fused."""
    from d3s.lab.dense import fuse

    frames = [estimate(plane(1.4, "bark", noise=0.02, seed=seed)) for seed in range(8)]
    return float(np.nanmedian(frames[-1].sigma_m) / np.nanmedian(fuse(frames).sigma_m))


# Against others -----------------------------------------------------------------------------------


@cache
def league(lens: str = "perfect") -> dict[str, dict[str, Any]]:
    """Standings of all methods in each section of a small `d3s compare`, by name."""
    from d3s.lab.evaluate import Program, compare

    program = Program.typical(quick=True) if lens == "typical" else Program.quick()
    methods = {"names": ("joint", "sgbm", "bm", "phase")} if lens == "typical" else {}
    sections = compare(program=program, **methods).sections()
    return {part.name: {one.method: one for one in part.standings} for part in sections}


def common_mae_cm(section: str, method: str, lens: str = "perfect") -> float:
    """Mean absolute error of a method at the density that all dense methods reach."""
    figures = league(lens)[section][method].common
    return 100 * figures["mae_m"] if figures else float("nan")


def side_mae_cm() -> float:
    """The same of `joint` at the sides of the field of typical lenses."""
    return common_mae_cm("planes at the sides", "joint", "typical")


def sections_led(method: str, lens: str = "perfect") -> float:
    """Sections of the league in which no method has a smaller error than this one."""
    errors = [{m: common_mae_cm(part, m, lens) for m in of} for part, of in league(lens).items()]
    return float(sum(one[method] == np.nanmin(list(one.values())) for one in errors))


def in_order(section: str, *best_first: str) -> float:
    """Neighbours of a claimed order of methods that come in this order, by their error."""
    errors = [common_mae_cm(section, method) for method in best_first]
    return float(np.sum(np.diff(errors) > 0))


@cache
def middlebury() -> dict[str, dict[str, Any]]:
    """Figures of `joint` and `sgbm` over the scenes in the folder D3S_MIDDLEBURY, by method."""
    from d3s.lab.evaluate import evaluate_stereo

    found = evaluate_stereo(os.environ["D3S_MIDDLEBURY"], ("joint", "sgbm"))
    return {line["method"]: line for line in found.summary()}


def of_stereo(figure: str) -> float:
    """A figure of `joint` over these scenes, in percent."""
    return 100 * float(middlebury()["joint"][figure])


def thinned_sgbm() -> float:
    """Bad-1 of `sgbm` at the density that `joint` keeps, in percent, read from its curve."""
    ours, theirs = middlebury()["joint"], middlebury()["sgbm"]
    curve = [one for one in theirs["curves"] if one["order"] == "confidence"]
    points = sorted((one["density"], one["bad_1"]) for one in curve)
    return 100 * float(np.interp(ours["density"], *np.transpose(points)))


@cache
def rooms() -> Judged:
    """Errors of `joint` in eight path-traced rooms, rendered into the folder D3S_ROOMS before."""
    from d3s.lab.evaluate import RoomSweep
    from d3s.lab.evaluate.rooms import render_rooms

    sweep, parts = RoomSweep(), []
    for number, clean in enumerate(render_rooms(sweep, RIG, os.environ["D3S_ROOMS"])):
        noisy_views = sweep.trial_of(clean, (number,))
        pair = replace(clean, left=noisy_views.left, right=noisy_views.right)
        parts.append(judge(estimate(pair), pair))
    return Judged.joined(parts)


def speed_ratio() -> float:
    """Time of OpenCV's SGBM over that of `joint`, best of eight in turns, 902 x 1802 px."""
    made = d3s.RandomScene(seed=1, nearest_m=0.3, farthest_m=1.9, patterns=TEXTURES)
    pair = d3s.simulate(made, RIG, noise=0.01, shape=(902, 1802))
    grey = [np.clip(255 * view + 0.5, 0, 255).astype(np.uint8) for view in (pair.left, pair.right)]
    matcher = cv2.StereoSGBM_create(0, 96, blockSize=5, P1=200, P2=800)
    works = (lambda: matcher.compute(*grey), lambda: d3s.estimate(pair.left, pair.right, RIG))
    times_s = np.array([[_time_s(work) for work in works] for _ in range(8)])
    return float(times_s[:, 0].min() / times_s[:, 1].min())


def _time_s(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
