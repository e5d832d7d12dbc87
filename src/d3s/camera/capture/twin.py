"""The twin as a camera: a moving scene, rendered once and shown again and again at a fixed rate."""

import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from d3s.camera.capture.device import Device
from d3s.errors import D3SError, InputError
from d3s.frames.frame import Frame
from d3s.lab.twin.pair import DEFAULT_SHAPE, simulate
from d3s.lab.twin.raw import RawLayout, simulate_raw
from d3s.lab.twin.scenes import Layer, Layered
from d3s.lab.twin.textures import Texture
from d3s.rig import Rig

DEFAULT_RATE_HZ = 30.0
DEFAULT_STEPS = 8
_NOISE = 0.01  # standard deviation, of full scale
_FULL_SCALE = 4095  # of raw frames: 12 bits
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


class TwinDevice(Device):
    """Device that shows the frames of a moving scene, to and fro, as far as they are rendered.

    Rendering takes seconds, and showing nearly nothing: frames of an iterator are rendered in a
    thread while those that are done are shown, and all those of a sequence are there.
    """

    name = "twin"

    def __init__(self, frames: Iterable[Frame], *, rate_hz: float) -> None:
        if not 0 < rate_hz <= 1e4:
            raise InputError(f"rate_hz={rate_hz:g} must be above 0, to 10000 frames a second.")
        self._rate_hz = rate_hz
        self._start_s, self._next = 0.0, 0
        self._frames: list[Frame] = []
        self._problem: D3SError | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        if isinstance(frames, Sequence):
            self._frames += frames
            if not frames:
                raise InputError("frames is empty: a device shows at least one.")
        else:
            self.busy = "rendering the first frame of the scene"
            work = threading.Thread(target=self._render, args=(frames,), daemon=True)
            self._thread = work

    def _render(self, frames: Iterable[Frame]) -> None:
        try:
            for frame in frames:
                if self._is_closed:
                    return
                with self._changed:
                    self._frames.append(frame)
                    self.busy = ""
                    self._changed.notify_all()
        except D3SError as error:
            self._problem, self.busy = error, ""

    def open(self) -> None:
        """Begin with the first frame."""
        if self._thread is not None and self._thread.ident is None:
            self._thread.start()
        self._start_s, self._next = time.monotonic(), 0

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame when its time has come; frames that nobody took in time are lost."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._frames, timeout_s):
                if self._problem is not None:
                    raise self._problem
                return None
        due_s = self._start_s + self._next / self._rate_hz - time.monotonic()
        time.sleep(min(max(due_s, 0.0), timeout_s))
        if due_s > timeout_s:
            return None
        elapsed = int((time.monotonic() - self._start_s) * self._rate_hz + 1e-6)
        number = max(self._next, elapsed)
        self._next = number + 1
        done = len(self._frames)
        place = number % max(2 * done - 2, 1)
        shown = self._frames[min(place, 2 * done - 2 - place) if done > 1 else 0]
        return replace(shown, number=number, time_s=time.monotonic())

    def close(self) -> None:
        """Stop rendering, after the frame that is under way."""
        self._is_closed = True
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()  # a compiled loop must not outlive the interpreter


def twin_pairs(
    rig: Rig, *, shape: tuple[int, int] | None = None, steps: int = DEFAULT_STEPS
) -> Iterator[Frame]:
    """Rectified pairs of the moving scene, each rendered when it is asked for."""
    calibration = rig.calibration
    if shape is None and calibration is not None:
        shape = calibration.crop_rows_px, calibration.crop_cols_px
    shape = shape or DEFAULT_SHAPE
    for number, phase in enumerate(np.linspace(0, 1, steps)):
        scene = moving_scene(float(phase), shape)
        pair = simulate(scene, rig, noise=_NOISE, seed=(0, number), shape=shape)
        yield Frame(number=number, views=(pair.left, pair.right))


def twin_raw(rig: Rig, *, layout: RawLayout) -> Iterator[Frame]:
    """Raw frames of the moving scene, as counts of 12 bits, each rendered when it is asked for."""
    half = layout.rows_px, layout.cols_px // 2
    for number, phase in enumerate(np.linspace(0, 1, DEFAULT_STEPS)):
        scene = moving_scene(float(phase), half)
        image = simulate_raw(scene, rig, noise=_NOISE, seed=(0, number), layout=layout).image
        levels = np.rint(np.clip(image, 0, 1) * np.float32(_FULL_SCALE)).astype(np.uint16)
        yield Frame(number=number, counts=levels, full_scale=_FULL_SCALE)


def scaled_layout(shape: tuple[int, int]) -> RawLayout:
    """Layout of a sensor of another size: everything is as large in proportion to its width."""
    default = RawLayout()
    factor = shape[1] / default.cols_px
    names = ("field_radius_px", "field_edge_px", "partition_px", "partition_edge_px")
    scaled = {name: max(factor * getattr(default, name), 1.0) for name in names}
    return default.replace(rows_px=shape[0], cols_px=shape[1], **scaled)
