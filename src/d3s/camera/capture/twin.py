"""The twin as a camera: a moving scene, rendered once and shown again and again at a fixed rate."""

import math
import time
from collections.abc import Sequence

import numpy as np

from d3s.camera.capture.device import Pace
from d3s.errors import InputError
from d3s.frames.frame import CameraSettings, Frame
from d3s.lab.twin.geometry import Mount
from d3s.lab.twin.pair import DEFAULT_SHAPE, simulate
from d3s.lab.twin.raw import DEFAULT_MOUNTS, RawLayout, simulate_raw
from d3s.lab.twin.scenes import Layer, Layered
from d3s.lab.twin.sensor import Sensor
from d3s.lab.twin.textures import Texture
from d3s.rig import Rig
from d3s.types import Progress

NOISE = 0.01
"""Standard deviation of the noise of pairs, relative to full scale."""
DEFAULT_RATE_HZ = 30.0
DEFAULT_STEPS = 8
FULL_SCALE = 4095
"""Of raw frames: 12 bits."""

_WALL_M, _NEAREST_M, _FARTHEST_M = 1.4, 0.45, 0.9


def moving_scene(phase: float, shape: tuple[int, int]) -> Layered:
    """Disc that comes and goes before a tilted wall, at a phase from 0 to 1 of its way."""
    rows, cols = shape
    x = cols * (0.35 + 0.3 * phase)
    y = rows * (0.5 + 0.12 * math.sin(2 * math.pi * phase))
    inverse = (1 - phase) / _NEAREST_M + phase / _FARTHEST_M
    radius = 0.12 * rows * _WALL_M * inverse / 1.4
    distance = np.hypot(np.arange(cols) - x, (np.arange(rows) - y)[:, np.newaxis])
    mask = np.clip(radius - distance + 0.5, 0.0, 1.0).astype(np.float32)
    return Layered(
        layers=[
            Layer(
                depth_m=1 / inverse,
                texture=Texture(pattern="carpet", scale=0.6),
                tilt_y_rad=0.2,
                mask=mask,
            ),
            Layer(depth_m=_WALL_M, texture=Texture(pattern="leaves"), tilt_x_rad=0.3),
        ]
    )


class TwinDevice:
    """Device that shows the frames of a moving scene.

    Rendering takes seconds, and showing nearly nothing: every frame is rendered before the first
    is shown, and the scene goes to and fro.
    """

    def __init__(self, frames: Sequence[Frame], *, rate_hz: float, name: str = "twin") -> None:
        if not frames:
            raise InputError("frames is empty: a device shows at least one.")
        self._loop = tuple(frames) + tuple(frames[-2:0:-1])
        self._pace = Pace(rate_hz)
        self._name = name

    @property
    def name(self) -> str:
        """Name for people."""
        return self._name

    @property
    def settings(self) -> CameraSettings:
        """No settings: exposure and gain are part of the rendered frames."""
        return CameraSettings()

    def open(self) -> None:
        """Begin with the first frame."""
        self._pace.begin()

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame when its time has come; frames that nobody took in time are lost."""
        number = self._pace.wait(timeout_s)
        if number is None:
            return None
        shown = self._loop[number % len(self._loop)]
        return Frame(
            number=number,
            name=shown.name,
            views=shown.views,
            raw=shown.raw,
            counts=shown.counts,
            full_scale=shown.full_scale,
            time_s=time.monotonic(),
        )

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Refuse to change settings: there are none."""
        if exposure_s is not None or gain is not None:
            raise InputError("the twin has no exposure and no gain. Leave them.")

    def close(self) -> None:
        """Do nothing: nothing is held."""


def twin_pairs(
    rig: Rig,
    *,
    shape: tuple[int, int] | None = None,
    steps: int = DEFAULT_STEPS,
    noise: float | Sensor = NOISE,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Frame]:
    """Rectified pairs of the moving scene."""
    shape = shape or _view_shape(rig)
    frames = []
    for number, phase in enumerate(np.linspace(0, 1, _checked_steps(steps))):
        pair = simulate(
            moving_scene(float(phase), shape), rig, noise=noise, seed=(seed, number), shape=shape
        )
        frames.append(Frame(number=number, views=(pair.left, pair.right)))
        if progress is not None:
            progress(number + 1, steps)
    return frames


def twin_raw(
    rig: Rig,
    *,
    layout: RawLayout = RawLayout(),  # noqa: B008 - frozen
    mounts: tuple[Mount, Mount] = DEFAULT_MOUNTS,
    steps: int = DEFAULT_STEPS,
    noise: float | Sensor = NOISE,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Frame]:
    """Raw frames of the moving scene, as counts of 12 bits."""
    half = layout.rows_px, layout.cols_px // 2
    frames = []
    for number, phase in enumerate(np.linspace(0, 1, _checked_steps(steps))):
        image = simulate_raw(
            moving_scene(float(phase), half),
            rig,
            noise=noise,
            seed=(seed, number),
            layout=layout,
            mounts=mounts,
        ).image
        levels = np.rint(np.clip(image, 0, 1) * np.float32(FULL_SCALE)).astype(np.uint16)
        frames.append(Frame(number=number, counts=levels, full_scale=FULL_SCALE))
        if progress is not None:
            progress(number + 1, steps)
    return frames


def scaled_layout(shape: tuple[int, int]) -> RawLayout:
    """Layout of a sensor of another size: everything is as large in proportion to its width."""
    default = RawLayout()
    factor = shape[1] / default.cols_px
    names = ("field_radius_px", "field_edge_px", "partition_px", "partition_edge_px")
    scaled = {name: max(factor * getattr(default, name), 1.0) for name in names}
    return default.replace(rows_px=shape[0], cols_px=shape[1], **scaled)


def _checked_steps(steps: int) -> int:
    if not 1 <= steps <= 1000:
        raise InputError(f"steps={steps} must be 1 to 1000.")
    return steps


def _view_shape(rig: Rig) -> tuple[int, int]:
    if rig.calibration is not None:
        return rig.calibration.crop_rows_px, rig.calibration.crop_cols_px
    return DEFAULT_SHAPE
