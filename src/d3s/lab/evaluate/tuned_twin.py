"""Tuned twin: the simulated prototype, tuned on boards as the paper tunes its own camera."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.tuning import CONSENSUS, Tuning, find_tuning
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.sequence import CALIBRATION_DISTANCES_M, EVALUATION_DISTANCES_M, even_distances_m
from d3s.lab.twin.textures import Texture
from d3s.rig import Calibration, Provenance, Rig
from d3s.types import Image
from d3s.version import __version__

NEAR_M, FAR_M = CALIBRATION_DISTANCES_M, EVALUATION_DISTANCES_M
"""Depths of the two series of the paper: 25 planes each, every 4 cm, with six depths in both."""

QUICK_NEAR_M, QUICK_FAR_M = even_distances_m(0.25, 1.21, 7), even_distances_m(1.09, 1.97, 5)
"""The same ranges in fewer steps."""

NOISE = 0.01
"""Standard deviation of the noise, of full scale. The paper does not give that of its sensor."""

BOARD = "calibration"
"""Pattern of the board; none of the textures of reports."""

# Makes the noise of the boards differ from that of the planes of a sweep with the same seed.
_STREAM = int.from_bytes(b"board")

# The same seed must give the same rig file, so that its date of creation is a constant.
_CREATED = "2000-01-01T00:00:00+00:00"


TUNED_RIG = Path(__file__).with_name("tuned_rig.toml")
"""Rig file of `tuned_twin` with its defaults, written by `benchmarks/typical_rig.py --tuned`."""


def tuned_rig() -> Rig:
    """Return the paper's prototype with the scale, offset and virtual baselines of `tuned_twin`."""
    return Rig.load(TUNED_RIG)


class TunedTwin(NamedTuple):
    """Tuned rig, and the results of its tuning."""

    rig: Rig
    tuning: Tuning
    baselines: ChosenBaselines
    depths_m: tuple[float, ...]  # depths of the boards


@lru_cache(maxsize=4)
def tuned_twin(
    *,
    depths_m: tuple[float, ...] = NEAR_M + FAR_M,
    shape: tuple[int, int] = (300, 640),
    noise: float = NOISE,
    seed: int = 0,
) -> TunedTwin:
    """Tune scale, offset and virtual baselines of the paper's prototype on simulated boards.

    The geometry is known, so that the views need no rectification.

    Parameters
    ----------
    depths_m
        Depths of the boards.
    shape
        Rows and columns of a view.
    noise
        Standard deviation of the noise, of full scale.
    seed
        Seed of the board's texture and of the noise.
    """
    rig = Rig.paper_prototype()
    views = [
        plane_views(rig, depth_m, BOARD, seed=(seed, _STREAM, i), shape=shape, noise=noise)
        for i, depth_m in enumerate(depths_m)
    ]
    tuning = find_tuning(views, depths_m, rig)
    baselines = choose_baselines(views, depths_m, rig, tuning)
    calibration = _calibration(tuning, baselines, shape)
    return TunedTwin(rig.replace(calibration=calibration), tuning, baselines, depths_m)


def plane_views(
    rig: Rig,
    depth_m: float,
    pattern: str,
    *,
    seed: Sequence[int],
    shape: tuple[int, int],
    noise: float = NOISE,
) -> tuple[Image, Image]:
    """Simulate the noisy views of a plane.

    Parameters
    ----------
    rig
        The camera.
    depth_m, pattern
        Depth and texture of the plane.
    seed
        Seed of the noise; its first number is the seed of the texture.
    shape
        Rows and columns of a view.
    noise
        Standard deviation of the noise, of full scale.
    """
    plane = Plane(depth_m=depth_m, texture=Texture(pattern=pattern, seed=seed[0]))
    pair = simulate(plane, rig, noise=noise, seed=seed, shape=shape)
    return pair.left, pair.right


def _calibration(tuning: Tuning, baselines: ChosenBaselines, shape: tuple[int, int]) -> Calibration:
    """Calibration of views that lie side by side and need no rectification."""
    rows, cols = shape
    middle_row, middle_col = (rows - 1) / 2, (cols - 1) / 2
    return Calibration(
        anchor_left_px=(cols + middle_col, middle_row),
        anchor_right_px=(middle_col, middle_row),
        crop_rows_px=rows,
        crop_cols_px=cols,
        rectify_scale=1.0,
        rectify_angle_rad=0.0,
        rectify_shift_y_px=0.0,
        virtual_baselines_m=baselines.chosen.virtual_baselines_m,
        a_cubic_m_px=tuning.a_cubic.coefficients,
        b_cubic_m=tuning.b_cubic.coefficients,
        tuned_candidates=CONSENSUS.candidates,
        tuned_window_px=CONSENSUS.window_px,
        tuned_prefilter_sigma_px=CONSENSUS.prefilter_sigma_px,
        provenance=Provenance(
            residuals={"tuning_mae_m": float(tuning.mae_m.min())},
            input_sha256={},
            created=_CREATED,
            d3s_version=__version__,
        ),
    )
