"""Compilation of loops ahead of their use: what `d3s doctor --warm` does.

Small simulated pairs go through the methods `joint` and `consensus` with each kind of camera, and a
raw frame is split. The loops of calibration and of most textures are compiled when they are first
used.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from d3s.estimate.methods import estimate_quietly
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.rig import Calibration, Provenance, Rig, warp
from d3s.rig.lens_maps import LensMaps
from d3s.runtime.cache import Folders, folders_of
from d3s.types import Progress
from d3s.version import __version__

_SHAPE, _FRAME, _CROP = (160, 320), (200, 720), (161, 321)
_RAW_LEVELS = 4095


@dataclass(frozen=True, kw_only=True)
class Warmed:
    """Result of `warm_up`."""

    seconds: float
    folders: Folders  # of the loops of d3s.rig; those of other packages are beside them


def warm_up(progress: Progress | None = None) -> Warmed:
    """Compile the loops that depth maps need, and keep them where a folder can be written.

    Parameters
    ----------
    progress
        Called with (steps done, steps in all).
    """
    started = time.perf_counter()
    steps = list(_steps())
    for number, step in enumerate(steps):
        step()
        if progress is not None:
            progress(number + 1, len(steps))
    return Warmed(seconds=time.perf_counter() - started, folders=folders_of(Path(warp.__file__)))


def _steps() -> Iterator[Callable[[], object]]:
    prototype = Rig.paper_prototype()
    pinhole = Rig.from_pinhole(focal_length_px=500.0, baseline_m=0.05)
    calibrated = prototype.replace(calibration=_calibration(None))
    with_lenses = prototype.replace(calibration=_calibration(_LENSES))
    for rig in (prototype, pinhole, calibrated, with_lenses):
        yield lambda rig=rig: _estimate(rig, "joint")  # type: ignore[misc]
        yield lambda rig=rig: _estimate(rig, "consensus")  # type: ignore[misc]
    for rig in (calibrated, with_lenses):
        yield lambda rig=rig: _split(rig)  # type: ignore[misc]


def _estimate(rig: Rig, method: str) -> None:
    """Estimate the pairs of all types that take ways of their own, and a pair that is swapped."""
    pair = simulate(Plane(depth_m=1.0), rig, noise=0.01, shape=_SHAPE)
    views = pair.left.astype(np.float32), pair.right.astype(np.float32)
    clipped = tuple(np.clip(view, 0.3, 0.6) for view in views)
    levels = tuple((255 * view).astype(np.uint8) for view in views)
    doubles = tuple(view.astype(np.float64) / 3 for view in views)
    missing = tuple(np.where(view < 0.3, np.float32(np.nan), view) for view in views)
    for left, right in (views, views[::-1], clipped, levels, doubles, missing):
        estimate_quietly(left, right, rig, method=method)
    for view in views:
        view.flags.writeable = False
    estimate_quietly(*views, rig, method=method)


def _split(rig: Rig) -> None:
    """Split raw frames as files have them, of integers and of floats."""
    levels = np.random.default_rng(0).integers(0, _RAW_LEVELS, _FRAME, dtype=np.uint16)
    rig.split(levels)
    left, right = rig.split((levels / np.float32(_RAW_LEVELS)).astype(np.float32))
    estimate_quietly(left, right, rig)


_LENSES = LensMaps(
    field_radius_px=160.0,
    distortion_left=(0.01, 0.0, 0.0, 0.0),
    distortion_right=(0.01, 0.0, 0.0, 0.0),
    illumination_left=(1.0, 0.0, 0.0, -0.1, 0.0, -0.1),
    illumination_right=(1.0, 0.0, 0.0, -0.1, 0.0, -0.1),
    focus_left_dpt=(0.0, 0.0, 0.1, 0.2),
    focus_right_dpt=(0.0, 0.0, 0.1, 0.2),
)


def _calibration(lenses: LensMaps | None) -> Calibration:
    rows, cols = _FRAME
    return Calibration(
        anchor_left_px=(0.75 * cols, 0.5 * rows),
        anchor_right_px=(0.25 * cols, 0.5 * rows),
        crop_rows_px=_CROP[0],
        crop_cols_px=_CROP[1],
        rectify_scale=1.0,
        rectify_angle_rad=1e-3,
        rectify_shift_y_px=0.1,
        virtual_baselines_m=(5e-4,),
        a_cubic_m_px=(1.0, 0.0, 0.0, 0.0),
        b_cubic_m=(0.0, 0.0, 0.0, 0.0),
        lenses=lenses,
        provenance=Provenance(
            residuals={},
            input_sha256={},
            created="2026-01-31T12:00:00+00:00",
            d3s_version=__version__,
        ),
    )
