"""Frames of a still camera, fused: how far sigma falls, whether it stays true, and ghosts.

    .venv/bin/python benchmarks/dense_temporal.py [--patterns tuning]

Planes with report textures at three depths are seen 8 times, with 2 % noise and with 1 %. The part
of an error that all frames share stays, however many there are: its share of the squared errors of
a frame says how far the root mean square of 8 averaged frames can fall, and sigma with it. Then a
board with each texture moves in front of a wall: ghosts are pixels that it has left and that still
have its depth, one frame after the first that shows it elsewhere.
"""

import argparse
from collections.abc import Iterator

import numpy as np

import d3s
from d3s.estimate.methods import estimate_quietly
from d3s.lab.dense import TemporalFilter, fuse
from d3s.lab.evaluate import REPORT_PATTERNS, TUNING_PATTERNS
from d3s.types import Mask

RIG = d3s.Rig.paper_prototype()
SHAPE, FRAMES = (120, 180), 8
DEPTHS_M, NOISES = (0.7, 1.2, 1.6), (0.02, 0.01)
BOARD_M, WALL_M, NEAR_M = 0.8, 1.4, 0.1


def estimates(scene: d3s.Plane | d3s.Layered, noise: float, count: int) -> Iterator[d3s.DepthMap]:
    """Depth maps of one scene with new noise each."""
    for seed in range(count):
        pair = d3s.simulate(scene, RIG, noise=noise, shape=SHAPE, seed=seed)
        yield estimate_quietly(pair.left, pair.right, RIG)


def still(pattern: str, depth_m: float, noise: float) -> list[float]:
    """Figures of one plane.

    Returns
    -------
    Ratio of sigma and of errors; share of the squared errors that all frames have in common, and
    the ratio that it allows; shares within 1 and 3 sigma of one frame, and of all.
    """
    texture = d3s.Texture(pattern=pattern, seed=11)
    found = list(estimates(d3s.Plane(depth_m=depth_m, texture=texture), noise, FRAMES))
    one, fused = found[-1], fuse(found)
    both = one.valid & fused.valid
    errors = [np.abs(each.depth_m - depth_m) for each in (one, fused)]
    shares = [
        float(np.mean(error[each.valid] < many * each.sigma_m[each.valid]))
        for each, error in zip((one, fused), errors, strict=True)
        for many in (1, 3)
    ]
    sigma = float(np.median(one.sigma_m[both] / fused.sigma_m[both]))
    ratio = float(np.median(errors[0][both]) / np.median(errors[1][both]))
    common = common_share(found, depth_m)
    return [sigma, ratio, common, 1 / np.sqrt((1 - common) / FRAMES + common), *shares]


def common_share(found: list[d3s.DepthMap], depth_m: float) -> float:
    """Share of the squared errors of a frame that is the same in all frames, 0 to 1."""
    everywhere = np.all([one.valid for one in found], axis=0)
    errors = np.stack([one.depth_m[everywhere].astype(float) for one in found]) - depth_m
    noise = float(errors.var(axis=0, ddof=1).mean())
    common = max(float(np.mean(errors.mean(axis=0) ** 2)) - noise / len(found), 0.0)
    return common / (common + noise)


def board(pattern: str, first: int) -> tuple[d3s.Layered, Mask]:
    """Board in front of a wall, and where it is."""
    mask = np.zeros(SHAPE, np.float32)
    mask[20:100, first : first + 60] = 1
    near = d3s.Layer(depth_m=BOARD_M, mask=mask, texture=d3s.Texture(pattern=pattern, seed=1))
    wall = d3s.Layer(depth_m=WALL_M, texture=d3s.Texture(pattern=pattern, seed=2))
    return d3s.Layered(layers=[near, wall]), mask > 0


def ghosts(pattern: str) -> list[float]:
    """Share of the pixels a board has left that have its depth: fused, and in one frame."""
    kept = TemporalFilter()
    scene, before = board(pattern, 30)
    for one in estimates(scene, NOISES[1], 4):
        kept.add(one)
    scene, after = board(pattern, 90)
    for one in estimates(scene, NOISES[1], 2):
        fused, alone = kept.add(one), one
    left = before & ~after
    return [
        float(np.mean(np.abs(each.depth_m - BOARD_M)[left] < NEAR_M)) for each in (fused, alone)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patterns", choices=("report", "tuning"), default="report")
    patterns = {"report": REPORT_PATTERNS, "tuning": TUNING_PATTERNS}[parser.parse_args().patterns]
    print("| noise (%) | texture | sigma falls by (least) | errors fall by |", end="")
    print(" shared by all frames (%) | can fall by |", end="")
    print(f" one frame < 1, 3 sigma (%) | {FRAMES} frames < 1, 3 sigma (%) |")
    print("|---|---|---|---|---|---|---|---|")
    for noise in NOISES:
        for pattern in patterns:
            each = np.array([still(pattern, depth_m, noise) for depth_m in DEPTHS_M])
            sigma, error, common, most, *shares = each.mean(axis=0)
            print(
                f"| {100 * noise:.0f} | {pattern} | {sigma:.2f} ({each[:, 0].min():.2f}) | "
                f"{error:.2f} | {100 * common:.0f} | {most:.2f} | "
                + " | ".join(f"{100 * a:.0f}, {100 * b:.1f}" for a, b in (shares[:2], shares[2:]))
                + " |",
                flush=True,
            )
    for pattern in patterns:
        fused, alone = ghosts(pattern)
        print(f"ghosts, {pattern}: {100 * fused:.1f} % fused, {100 * alone:.1f} % in one frame")


if __name__ == "__main__":
    main()
