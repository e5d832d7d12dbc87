"""Depth maps of known values, for tests of what comes after the estimator."""

import numpy as np

import d3s


def made_depth_map(depth_m, *, sigma_m=0.01, view=None) -> d3s.DepthMap:
    """Depth map of the prototype with holes where the depth is NaN, seen in `view`."""
    depth_m = np.asarray(depth_m, np.float32)
    known = np.isfinite(depth_m)
    return d3s.DepthMap(
        depth_m=depth_m,
        sigma_m=np.where(known, sigma_m, np.nan).astype(np.float32),
        confidence=np.where(known, 0.9, 0.2).astype(np.float32),
        flags=np.where(known, 0, d3s.Flag.LOW_TEXTURE).astype(np.uint16),
        rig=d3s.Rig.paper_prototype(),
        method="joint",
        options=d3s.JointOptions(),
        intensity=view,
    )
