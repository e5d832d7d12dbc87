"""Fake camera with faults by a script: what a camera does wrong, on demand."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from d3s.camera.capture import LiveCamera
from d3s.camera.capture.device import Device
from d3s.errors import CameraError
from d3s.frames.frame import CameraSettings, Counts, Frame, Setting


@dataclass(frozen=True)
class FakeFault:
    """One fault, which begins with a frame of the script.

    drop: frames are lost; incomplete: parts of them are; freeze: none comes for some seconds;
    repeat: the frame before comes again; unplug: the camera is gone for some seconds; time, number:
    they go back; size, full_scale: another one.
    """

    kind: str
    at: int
    count: int = 1
    seconds: float = 0.0


@dataclass(frozen=True)
class FakeScript:
    """Frames and faults of a fake camera."""

    rate_hz: float = 30.0
    rows_px: int = 60
    cols_px: int = 100
    full_scale: int = 4095
    faults: tuple[FakeFault, ...] = ()


def opener(script: FakeScript):
    """Opener of a source, as `d3s.sources` has them."""
    return lambda rest, rig, options: LiveCamera(FakeDevice(script), rig=rig)


@dataclass
class _Play:
    """Place in the script: it goes on where it was when the camera is opened again."""

    frame: int = 0  # of the script
    due_s: float | None = None
    gone_until_s: float = 0.0
    opened_at: int = 0  # frame of the script at which the camera was opened


class FakeDevice(Device):
    """Device that follows a script of faults.

    The first two pixels of a frame hold its number in the script, so that frames can be told
    apart; the others show a pattern that moves. The scene goes on while the camera is frozen or
    unplugged.
    """

    def __init__(self, script: FakeScript, name: str = "fake camera") -> None:
        self._script = script
        self.name = name
        self._exposure_s, self._gain = 0.01, 0.0
        self._play = _Play()
        self._faults = {}
        for fault in script.faults:
            for number in range(fault.at, fault.at + fault.count):
                self._faults[number] = fault
        self._pattern = _pattern(script)
        self._is_open = False

    @property
    def settings(self) -> CameraSettings:
        """Exposure, which scales the light, and gain in dB, which scales it as well."""
        return CameraSettings(
            Setting(self._exposure_s, (1e-5, 0.1)), Setting(self._gain, (0.0, 20.0))
        )

    def open(self) -> None:
        """Connect, unless the camera is unplugged."""
        now_s = time.monotonic()
        play = self._play
        if now_s < play.gone_until_s:
            raise CameraError(f"{self.name} is unplugged. Plug it in.")
        if play.due_s is None:
            play.due_s = now_s
        self._skip_past(now_s)
        play.opened_at = play.frame
        self._is_open = True

    def _skip_past(self, now_s: float) -> None:
        """Pass the frames of the script whose time is over."""
        play, period_s = self._play, 1 / self._script.rate_hz
        late = 0 if play.due_s is None else int((now_s - play.due_s) / period_s)
        if late > 0 and play.due_s is not None:
            play.frame += late
            play.due_s += late * period_s

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame of the script, with its fault."""
        play = self._play
        now_s = time.monotonic()
        if not self._is_open or play.due_s is None or now_s < play.gone_until_s:
            raise CameraError(f"{self.name} was unplugged. Plug it in.")
        if play.due_s - now_s > timeout_s:
            time.sleep(timeout_s)
            return None
        time.sleep(max(play.due_s - now_s, 0.0))
        number = play.frame
        play.frame += 1
        play.due_s += 1 / self._script.rate_hz
        fault = self._faults.get(number)
        if fault is None:
            return self._frame(number)
        return self._faulty(number, fault)

    def _faulty(self, number: int, fault: FakeFault) -> Frame | None:
        play = self._play
        if fault.kind == "drop":
            return None
        if fault.kind == "freeze":
            play.due_s = (play.due_s or 0.0) + fault.seconds
            play.frame += int(fault.seconds * self._script.rate_hz)
            return None
        if fault.kind == "unplug":
            play.gone_until_s = time.monotonic() + fault.seconds
            self._is_open = False
            raise CameraError(f"{self.name} was unplugged. Plug it in.")
        if fault.kind == "repeat":
            return self._frame(max(fault.at - 1, 0))
        if fault.kind == "number":
            return self._frame(number, device_number=number - play.opened_at - 5)
        if fault.kind == "time":
            return self._frame(number, camera_time_s=(number - 5) / self._script.rate_hz)
        if fault.kind == "size":
            return self._frame(number, rows=self._script.rows_px // 2)
        if fault.kind == "full_scale":
            return self._frame(number, full_scale=255)
        return self._frame(number, whole=False)

    def _frame(
        self,
        number: int,
        *,
        device_number: int | None = None,
        camera_time_s: float | None = None,
        rows: int | None = None,
        full_scale: int | None = None,
        whole: bool = True,
    ) -> Frame:
        scale = full_scale or self._script.full_scale
        light = min(self._exposure_s / 0.01 * 10 ** (self._gain / 20), 1 / float(_BRIGHTEST))
        moved = np.roll(self._pattern, number, axis=1) * np.float32(light * scale)
        counts: Counts = moved.astype(np.uint8) if scale <= 255 else moved.astype(np.uint16)
        counts[0, 0], counts[0, 1] = number % 128, number // 128
        if not whole:
            counts[counts.shape[0] // 2 :] = 0
        return Frame(
            number=number - self._play.opened_at if device_number is None else device_number,
            counts=counts[:rows],
            full_scale=scale,
            time_s=time.monotonic(),
            camera_time_s=number / self._script.rate_hz if camera_time_s is None else camera_time_s,
            whole=whole,
        )

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change exposure and gain."""
        super().configure(exposure_s=exposure_s, gain=gain)
        self._exposure_s = self._exposure_s if exposure_s is None else exposure_s
        self._gain = self._gain if gain is None else gain

    def close(self) -> None:
        """Disconnect; the scene goes on."""
        self._is_open = False


def script_number(frame: Frame) -> int:
    """Number in the script of a frame of a fake camera, from its pixels."""
    if frame.counts is None:
        raise ValueError("a frame of a fake camera has counts")
    return int(frame.counts[0, 0]) + 128 * int(frame.counts[0, 1])


_BRIGHTEST = 0.6


def _pattern(script: FakeScript) -> NDArray[np.float32]:
    rng = np.random.default_rng(7)
    return rng.uniform(0.1, _BRIGHTEST, (script.rows_px, script.cols_px)).astype(np.float32)
