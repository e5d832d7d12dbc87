"""Simulated cameras with a calibration: the tuned twin, and the typical camera.

The tuned twin is the paper's prototype, tuned on boards as the paper tunes its own camera. The
typical camera is the prototype with typical lenses; its rig was found by `calibrate` from simulated
boards (benchmarks/typical_rig.py), and nothing of the true lens errors is in it. Only the part of
the sensor that a view needs is rendered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import hypot
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from d3s.calibrate.baselines import ChosenBaselines, choose_baselines
from d3s.calibrate.tuning import CONSENSUS, Tuning, find_tuning
from d3s.errors import InputError, SceneError
from d3s.estimate import ConsensusOptions
from d3s.lab.twin.geometry import Mount
from d3s.lab.twin.lens_errors import typical_lenses
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.point_spread import PsfName
from d3s.lab.twin.raw import DEFAULT_MOUNTS, RawFrame, RawLayout, simulate_raw
from d3s.lab.twin.scenes import DepthMapScene, Layer, Layered, LayeredScene, Plane, Scene
from d3s.lab.twin.sensor import Sensor, as_sensor, generator, seed_sequence
from d3s.lab.twin.sequence import CALIBRATION_DISTANCES_M, EVALUATION_DISTANCES_M, even_distances_m
from d3s.lab.twin.textures import Texture
from d3s.rig import Calibration, Provenance, Rig
from d3s.rig.calibration import view_to_raw_places
from d3s.types import FloatArray, Image, Mask
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
    options: ConsensusOptions = CONSENSUS,
) -> TunedTwin:
    """Tune scale, offset and virtual baselines of the paper's prototype on simulated boards.

    The geometry is known, so that the views need no rectification. The options name window and
    smoothing, for which a and b hold.
    """
    rig = Rig.paper_prototype()
    views = [
        plane_views(rig, depth_m, BOARD, seed=(seed, _STREAM, i), shape=shape, noise=noise)
        for i, depth_m in enumerate(depths_m)
    ]
    tuning = find_tuning(views, depths_m, rig, options=options)
    baselines = choose_baselines(views, depths_m, rig, tuning, options=options)
    calibration = _calibration(tuning, baselines, shape, options)
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

    The first number of `seed` is that of the texture.
    """
    plane = Plane(depth_m=depth_m, texture=Texture(pattern=pattern, seed=seed[0]))
    pair = simulate(plane, rig, noise=noise, seed=seed, shape=shape)
    return pair.left, pair.right


def _calibration(
    tuning: Tuning, baselines: ChosenBaselines, shape: tuple[int, int], options: ConsensusOptions
) -> Calibration:
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
        tuned_candidates=options.candidates,
        tuned_window_px=options.window_px,
        tuned_prefilter_sigma_px=options.prefilter_sigma_px,
        tuned_without_noise=not options.as_printed,
        provenance=Provenance(
            residuals={"tuning_mae_m": float(tuning.mae_m.min())},
            input_sha256={},
            created=_CREATED,
            d3s_version=__version__,
        ),
    )


Lens = Literal["perfect", "typical"]
"""Lenses of the camera of a sweep."""

LENS_SEED = 11
"""Seed of the two lenses; no other camera of the package has it."""

MOUNTS: tuple[Mount, Mount] = DEFAULT_MOUNTS
"""Mounting errors of the two lenses."""

TYPICAL_RIG = Path(__file__).with_name("typical_rig.toml")
"""Rig file of the typical camera, written by benchmarks/typical_rig.py."""

SENSOR_LAYOUT = RawLayout()
"""Size of the sensor."""

# Around a view: mounting errors move and turn it by some 10 px, and the kernel of the split
# reaches 8 px beyond.
_MARGIN_PX = 32
_SAME_SURFACE_PX = 1.0  # disparities of one surface at neighbouring pixels differ by less


def typical_rig() -> Rig:
    """Return the calibrated rig of the typical camera."""
    return Rig.load(TYPICAL_RIG)


def raw_frame(
    scene: LayeredScene,
    *,
    layout: RawLayout = SENSOR_LAYOUT,
    noise: float | Sensor = 0.0,
    seed: tuple[int, ...] = (0,),
    psf: PsfName = "disk",
) -> RawFrame:
    """Render a raw frame of the typical camera."""
    return simulate_raw(
        scene,
        Rig.paper_prototype(),
        noise=noise,
        seed=seed,
        psf=psf,
        layout=layout,
        mounts=MOUNTS,
        lenses=typical_lenses(LENS_SEED),
    )


def part_of_sensor(shape: tuple[int, int]) -> RawLayout:
    """Return the part of the sensor around both axes that holds views of (rows, cols)."""
    optics = Rig.paper_prototype().optics
    apart_px = round(optics.baseline_m / optics.pixel_pitch_m)
    # Twice a half, so that the middle of the part is a whole number of pixels from the sensor's.
    rows, cols = (2 * (size // 2 + _MARGIN_PX) for size in shape)
    radius_px = hypot(rows, cols) / 2 + SENSOR_LAYOUT.field_edge_px
    return SENSOR_LAYOUT.replace(
        rows_px=min(rows, SENSOR_LAYOUT.rows_px),
        cols_px=min(apart_px + cols, SENSOR_LAYOUT.cols_px),
        field_radius_px=min(radius_px, SENSOR_LAYOUT.field_radius_px),
    )


def rig_of_part(rig: Rig, layout: RawLayout, shape: tuple[int, int]) -> Rig:
    """Return the calibrated rig for a part of the sensor and smaller views around the axes.

    `shape` is that of a view; `layout` lies around the middle of the sensor.
    """
    calibration = rig.calibration
    if calibration is None or _frame_shape(calibration) != SENSOR_LAYOUT.shape:
        raise InputError(
            f"the rig {rig.name!r} is not calibrated for frames of {SENSOR_LAYOUT.shape}, those of "
            "the camera with typical lenses. Leave the rig out: the package has one."
        )
    largest = calibration.crop_rows_px, calibration.crop_cols_px
    if shape[0] > largest[0] or shape[1] > largest[1]:
        raise InputError(
            f"shape={shape} must be at most {largest}, the views that the rig was calibrated for."
        )
    offset = np.array(SENSOR_LAYOUT.middle_px) - layout.middle_px
    return rig.replace(
        calibration=calibration.replace(
            anchor_left_px=tuple(calibration.anchor_left_px - offset),
            anchor_right_px=tuple(calibration.anchor_right_px - offset),
            frame_rows_px=layout.rows_px,
            frame_cols_px=layout.cols_px,
            crop_rows_px=shape[0],
            crop_cols_px=shape[1],
        )
    )


def _frame_shape(calibration: Calibration) -> tuple[int | None, int | None]:
    return calibration.frame_rows_px, calibration.frame_cols_px


@dataclass(frozen=True, kw_only=True, eq=False)
class TypicalPair:
    """Rectified views of the typical camera with their truth, on the pixels of the left view."""

    noisy: tuple[Image, Image]
    left: Image  # without noise
    right: Image
    depth_m: Image
    occluded: Mask  # the point is hidden from the right camera
    rig: Rig  # for views of this size


def typical_pair(
    scene: Scene,
    rig: Rig,
    shape: tuple[int, int],
    *,
    noise: float,
    seed: tuple[int, ...],
    psf: PsfName = "disk",
) -> TypicalPair:
    """Render a scene by the typical camera, and split the frame by its calibrated rig.

    The middle of the views is the middle of the field; the scene is that of a perfect left view of
    `shape`.
    """
    layout = part_of_sensor(shape)
    part = rig_of_part(rig, layout, shape)
    wide = _widened(scene, shape, (layout.rows_px, layout.cols_px // 2))
    clean = raw_frame(wide, layout=layout, psf=psf)
    rng = generator(seed_sequence(seed))
    left, right = part.split(clean.image)
    depth_m = _depth_of_view(clean.depth_m, part)
    return TypicalPair(
        noisy=part.split(as_sensor(noise).expose(clean.image, camera=0, rng=rng)),
        left=left,
        right=right,
        depth_m=depth_m,
        occluded=hidden_from_right(part.optics.disparity_px(depth_m)),
        rig=part,
    )


def _widened(scene: Scene, shape: tuple[int, int], wide: tuple[int, int]) -> LayeredScene:
    """Scene for a perfect view of `shape`, with masks that reach over a larger view."""
    if isinstance(scene, DepthMapScene):
        raise SceneError(
            "scene must have layers: the camera with typical lenses sees beyond a map."
        )
    if hasattr(scene, "plane"):  # without a mask
        return scene
    before = [(size - own) // 2 for size, own in zip(wide, shape, strict=True)]
    after = [size - own - one for size, own, one in zip(wide, shape, before, strict=True)]
    pad = list(zip(before, after, strict=True))

    def widened(layer: Layer) -> Layer:
        if layer.mask is None:
            return layer
        return layer.replace(mask=np.pad(layer.mask, pad, mode="edge"))

    layers = scene.layers_for(Rig.paper_prototype().optics, shape)
    return Layered(layers=tuple(widened(layer) for layer in layers))


def _depth_of_view(raw_depth_m: Image, rig: Rig) -> Image:
    """Depth at each pixel of the rectified left view: that of the nearest pixel of the frame."""
    calibration = rig.calibration
    if calibration is None:
        raise InputError(f"the rig {rig.name!r} has no calibration.")
    y, x = np.indices((calibration.crop_rows_px, calibration.crop_cols_px))
    col, row = np.rint(view_to_raw_places(calibration, 0, x, y)).astype(np.intp)
    return np.asarray(raw_depth_m[row, col])


def hidden_from_right(disparity_px: FloatArray) -> Mask:
    """Mask of the pixels of the left view that a nearer surface hides in the right view.

    Points beside the frame hide nothing, and a match outside of the right view is not hidden.
    """
    rows, cols = disparity_px.shape
    column = np.arange(cols) - disparity_px
    nearest_px = np.full((rows, cols), -np.inf)
    row = np.broadcast_to(np.arange(rows)[:, np.newaxis], column.shape)
    for place in (np.floor(column), np.ceil(column)):  # both: a surface has no gaps
        inside = (place >= 0) & (place < cols)
        at = row[inside], place[inside].astype(np.intp)
        np.maximum.at(nearest_px, at, disparity_px[inside])
    own = np.clip(np.rint(column), 0, cols - 1).astype(np.intp)
    nearest = np.take_along_axis(nearest_px, own, axis=1)
    is_seen = (column >= 0) & (column <= cols - 1)
    return np.asarray(is_seen & (nearest > disparity_px + _SAME_SURFACE_PX))
