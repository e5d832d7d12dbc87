"""Planes of weak texture, and thin bars before a textured wall, by several methods.

    .venv/bin/python benchmarks/weak_texture.py [METHOD ...] [--patterns tuning]

METHOD is as for `d3s evaluate`; joint and sgbm if left out. Planes have a contrast of 0.1 and 0.5 %
noise: their density is the share of the whole frame with a depth. Bars are 10 px wide, before a
wall at 1.5 m, with 1 % noise. Found is the share of their pixels with a depth nearer to the bar's
than to the wall's, in disparity; fattened is the share of the wall within 12 px with such a depth.
"""

import argparse

import numpy as np

import d3s
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS, Contender
from d3s.lab.evaluate.truth import near_jumps

RIG = d3s.Rig.paper_prototype()
SHAPE = (300, 500)
PLANES_M, BARS_M, WALL_M = (0.5, 1.0, 1.7), (0.7, 1.0), 1.5
WIDTH_PX, REACH_PX, SEEDS = 10, 12, 4


def plane_density(method: Contender, depth_m: float, patterns: tuple[str, ...]) -> float:
    """Share of the frame that has a depth, the mean over textures."""
    shares = []
    for pattern in patterns:
        texture = d3s.Texture(pattern=pattern, contrast=0.1)
        scene = d3s.Plane(depth_m=depth_m, texture=texture)
        pair = d3s.simulate(scene, RIG, shape=SHAPE, noise=0.005)
        shares.append(float(np.mean(_estimate(method, pair).valid)))
    return float(np.mean(shares))


def bars(method: Contender, depth_m: float, patterns: tuple[str, ...]) -> tuple[float, float]:
    """Share of the bars that is found, and of the wall beside them that is fattened."""
    found, fattened = [], []
    for seed in range(SEEDS):
        pair, is_bar = _bars(depth_m, seed, patterns)
        est = _estimate(method, pair)
        middle = RIG.optics.disparity_px(np.array([depth_m, WALL_M])).mean()
        with np.errstate(invalid="ignore"):
            is_near = est.valid & (RIG.optics.disparity_px(est.depth_m) > middle)
        beside = near_jumps(pair.disparity_px, REACH_PX) & ~is_bar & ~pair.occluded
        found.append(float(np.mean(is_near[is_bar & ~pair.occluded])))
        fattened.append(float(np.mean(is_near[beside])))
    return float(np.mean(found)), float(np.mean(fattened))


def _bars(depth_m: float, seed: int, patterns: tuple[str, ...]) -> tuple[d3s.Pair, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = np.zeros(SHAPE, dtype=np.float32)
    for first in (120, 210, 300, 390):
        first += int(rng.integers(-20, 20))
        mask[:, first : first + WIDTH_PX] = 1
    bar, wall = (d3s.Texture(pattern=name, seed=seed) for name in rng.choice(patterns, 2))
    layers = [
        d3s.Layer(depth_m=depth_m, mask=mask, texture=bar),
        d3s.Layer(depth_m=WALL_M, texture=wall),
    ]
    scene = d3s.Layered(layers=layers)
    return d3s.simulate(scene, RIG, shape=SHAPE, noise=0.01, seed=seed), mask > 0.5


def _estimate(method: Contender, pair: d3s.Pair) -> d3s.DepthMap:
    options = method.checked_options()
    return d3s.estimate(pair.left, pair.right, RIG, method=method.method, options=options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=["joint", "sgbm"])
    parser.add_argument("--patterns", choices=("report", "tuning"), default="report")
    given = parser.parse_args()
    patterns = TUNING_PATTERNS if given.patterns == "tuning" else REPORT_PATTERNS
    for name in given.methods:
        method = Contender.parse(name)
        for depth_m in PLANES_M:
            density = 100 * plane_density(method, depth_m, patterns)
            print(f"{name:12} plane at {depth_m} m: density {density:.1f} %", flush=True)
        for depth_m in BARS_M:
            found, fattened = (100 * share for share in bars(method, depth_m, patterns))
            print(f"{name:12} bars at {depth_m} m: found {found:.1f}, fattened {fattened:.1f} %")


if __name__ == "__main__":
    main()
