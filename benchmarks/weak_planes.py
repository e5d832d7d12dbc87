"""Planes of weak texture and of text: which pixels have a depth, and whether sigma holds.

    .venv/bin/python benchmarks/weak_planes.py

A pixel has texture of its own where the view without noise has a standard deviation above that of
the noise over 9 x 9 px. Pixels near the border, whose window or match leaves the frame, do not
count.
"""

import cv2
import numpy as np
from rich.progress import track

import d3s
from d3s.lab.evaluate import REPORT_PATTERNS
from sheets import Sheet, show

RIG = d3s.Rig.paper_prototype()
DEPTHS_M, SHAPE, NOISE, BORDER_PX, OWN_PX = (0.25, 0.5, 1.0, 1.5, 2.0), (260, 460), 0.005, 33, 9
KINDS = {"weak, contrast 0.1": (REPORT_PATTERNS, 0.1), "text": (("text",), 1.0)}


def judged(depth_m: float, pattern: str, contrast: float) -> np.ndarray:
    """Shares with a depth of own texture, of all, of all with `enclosed`; within 1, 3 sigma."""
    texture = d3s.Texture(pattern=pattern, seed=11, contrast=contrast)
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    pair, clean = (
        d3s.simulate(scene, RIG, noise=noise, shape=SHAPE, seed=3) for noise in (NOISE, 0.0)
    )
    view = clean.left.astype(np.float64)
    mean, square = (cv2.blur(part, (OWN_PX, OWN_PX)) for part in (view, view**2))
    inside = np.zeros(SHAPE, dtype=bool)
    inside[BORDER_PX:-BORDER_PX, BORDER_PX:-BORDER_PX] = True
    inside &= np.arange(SHAPE[1]) - pair.disparity_px >= BORDER_PX
    own = inside & (square - mean**2 > NOISE**2)
    found = d3s.estimate(pair.left, pair.right, RIG)
    every = d3s.estimate(pair.left, pair.right, RIG, options={"enclosed": True})
    known = inside & every.valid
    over = np.abs(every.depth_m - depth_m)[known] / every.sigma_m[known]
    shares = [found.valid[own], found.valid[inside], every.valid[inside], over < 1, over < 3]
    return np.array([100 * share.mean() if share.size else np.nan for share in shares])


def main() -> None:
    """Judge all planes and print the means over the textures."""
    lines = []
    for kind, (patterns, contrast) in KINDS.items():
        for depth_m in track(DEPTHS_M, kind, transient=True):
            shares = [judged(depth_m, pattern, contrast) for pattern in patterns]
            means = (f"{share:.1f}" for share in np.nanmean(shares, axis=0))
            lines.append((kind, f"{depth_m:g}", *means))
    heads = ("own texture", "all", "with enclosed", "in 1 sigma", "in 3 sigma")
    show([Sheet("Pixels with a depth (%)", ("planes", "m", *heads), lines)])


if __name__ == "__main__":
    main()
