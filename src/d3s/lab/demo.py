"""Demonstration: one simulated snapshot, its depth by three methods, and their errors."""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from d3s.estimate import DepthMap
from d3s.estimate.methods import estimate_quietly
from d3s.lab.evaluate.cameras import tuned_rig
from d3s.lab.evaluate.metrics import Score, score
from d3s.lab.evaluate.truth import Truth, truth_of
from d3s.lab.twin.pair import Pair, simulate
from d3s.lab.twin.random_scene import draw_mask
from d3s.lab.twin.scenes import Layer, Layered
from d3s.lab.twin.sensor import expose_pair
from d3s.lab.twin.textures import Texture
from d3s.rig import Rig
from d3s.runtime.parallel import thread_count
from d3s.types import Image

DEMO_METHODS = ("joint", "consensus", "sgbm")
"""Our method, the paper's, and the best-known stereo matcher."""
SHAPE = (600, 1200)
"""Rows and columns of a view: less than half the prototype's pixels, to stay below a minute."""
NOISE = 0.01
"""Standard deviation of the sensor noise, relative to full scale."""

# The floor: 0.61 m away at the lower edge of the frame, 1.3 m at its far end.
_FLOOR_M, _FLOOR_SLOPE, _STEEPEST_SLOPE = 0.9, -9.6, -14.0
_FLOOR_END = 0.19  # row of the far end, relative to the height of the frame
# Rows of the first, untimed call of a method, which compiles it.
_STRIP_PX = 96
_SLOW_TO_COMPILE = ("joint", "consensus")


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodResult:
    """Depth map of one method, its score and its time."""

    depth_map: DepthMap
    score: Score
    time_s: float  # without compilation


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """One simulated snapshot of the prototype with its ground truth, and the result per method."""

    pair: Pair  # with sensor noise
    truth: Truth
    results: dict[str, MethodResult]  # by method


def run_demo(
    shape: tuple[int, int] = SHAPE, *, on_step: Callable[[str], None] | None = None
) -> Demo:
    """Simulate the snapshot and estimate its depth by each method."""
    say = on_step or (lambda _: None)
    rig = Rig.paper_prototype()
    with _compiling():
        say("Simulating a snapshot of the prototype ...")
        clean = simulate(demo_scene(rig, shape), rig, shape=shape)
        left, right = expose_pair(clean.left, clean.right, NOISE, seed=0)
        pair, truth = replace(clean, left=left, right=right), truth_of(clean, NOISE)
        # The paper calibrates its camera for the consensus; the other methods do not need it.
        cameras = {name: tuned_rig() if name == "consensus" else rig for name in DEMO_METHODS}
        for method in reversed(DEMO_METHODS):  # ours last: it takes longest to compile
            say(f"Compiling or loading {method} ...")
            top = pair.left[:_STRIP_PX], pair.right[:_STRIP_PX]
            estimate_quietly(*top, cameras[method], method=method)
    results = {}
    for method in DEMO_METHODS:  # once nothing else is compiled: times are compared
        say(f"Depth by {method} ...")
        results[method] = _run_method(method, pair, truth, cameras[method])
    return Demo(pair=pair, truth=truth, results=results)


def _run_method(method: str, pair: Pair, truth: Truth, rig: Rig) -> MethodResult:
    started = time.perf_counter()
    depth_map = estimate_quietly(pair.left, pair.right, rig, method=method)
    time_s = time.perf_counter() - started
    return MethodResult(depth_map=depth_map, score=score(depth_map, truth), time_s=time_s)


@contextmanager
def _compiling() -> Iterator[None]:
    """Compile slow methods in other processes meanwhile, at most one per remaining core.

    This process loads the compiled code from the cache on disk.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", f"from d3s.lab.demo import warm_up; warm_up({method!r})"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for method in _SLOW_TO_COMPILE[: thread_count() - 1]
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def warm_up(method: str) -> None:
    """Compile a method by running it on a small pair of noise."""
    views = np.random.default_rng(0).normal(size=(2, _STRIP_PX, 2 * _STRIP_PX)).astype(np.float32)
    estimate_quietly(views[0], views[1], Rig.paper_prototype(), method=method)


def demo_scene(rig: Rig, shape: tuple[int, int]) -> Layered:
    """Objects on a floor of gravel before a wall of bricks, from 0.3 to 1.9 m.

    Made for frames about twice as wide as high. No parameter of any method was tuned on its
    textures.
    """
    height_px = shape[0]
    # The same depths from top to bottom at any height, up to the steepest tilt of a plane.
    slope = max(_FLOOR_SLOPE * SHAPE[0] / height_px, _STEEPEST_SLOPE)
    focal_px = rig.optics.focal_length_px

    def foot(depth_m: float) -> float:
        """Row at which the floor has this depth, relative to the height of the frame."""
        return 0.5 + (1 - _FLOOR_M / depth_m) * focal_px / (slope * height_px)

    def seeded(kind: str, centre: tuple[float, float], radius: float) -> Image:
        """Mask of a random outline; centre (x, y) and radius relative to the frame's height."""
        rng = np.random.default_rng(5)
        centre_px = height_px * centre[0], height_px * centre[1]
        return draw_mask(kind, shape, centre_px, height_px * radius, rng)

    poster = _card(shape, (0.60, 0.30, 1.02, foot(0.69)))
    return Layered(
        layers=[
            _layer(0.31, "bark", seeded("bar", (1.70, 0.20), 0.36), scale=0.5),
            _layer(0.45, "carpet", seeded("ring", (0.30, 0.70), 0.24), scale=0.6),
            _layer(0.69, "text", poster, scale=0.5, tilt_x_rad=0.5),
            _layer(0.80, "grass", seeded("blob", (1.60, 0.50), 0.20), scale=0.5),
            _layer(1.00, "bark", _card(shape, (1.18, -0.1, 1.32, foot(1.00))), scale=0.6, seed=2),
            _layer(
                _FLOOR_M,
                "gravel",
                _card(shape, (-1.0, _FLOOR_END, 4.0, 2.0)),
                tilt_y_rad=math.atan(slope),
            ),
            _layer(1.88, "brick", None, scale=0.6, tilt_x_rad=-0.2),
        ]
    )


def _layer(
    depth_m: float,
    pattern: str,
    mask: Image | None,
    *,
    scale: float = 1.0,
    seed: int = 0,
    tilt_x_rad: float = 0.0,
    tilt_y_rad: float = 0.0,
) -> Layer:
    return Layer(
        depth_m=depth_m,
        tilt_x_rad=tilt_x_rad,
        tilt_y_rad=tilt_y_rad,
        texture=Texture(pattern=pattern, scale=scale, seed=seed),
        mask=mask,
    )


def _card(shape: tuple[int, int], edges: tuple[float, float, float, float]) -> Image:
    """Mask of an upright rectangle; left, top, right and bottom relative to the frame's height."""
    left, top, right, bottom = (shape[0] * edge for edge in edges)
    x, y = np.arange(shape[1]), np.arange(shape[0])[:, np.newaxis]
    inside = np.minimum(np.minimum(x - left, right - x), np.minimum(y - top, bottom - y))
    return np.asarray(np.clip(inside + 0.5, 0.0, 1.0), dtype=np.float32)
