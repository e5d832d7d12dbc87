"""Devices: what a live camera needs from the hardware, or from what stands for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from d3s.errors import CameraError, InputError
from d3s.frames.frame import CameraSettings, Frame, Setting

# Best first. Packed formats are left out: unpacking them costs more time.
_FORMATS = ("Mono12", "Mono10", "Mono8")
_BAYER_FORMATS = tuple(
    f"Bayer{order}{bits}" for bits in (12, 10, 8) for order in ("RG", "BG", "GR", "GB")
)
_LARGEST_SHORT = 65535  # block numbers of GigE Vision begin again after it
_MICROSECOND_S = 1e-6


class Device:
    """One camera, which may be unplugged, here without settings. `LiveCamera` makes a source of it.

    `busy` says for people what comes before the first frame; empty if nothing does.
    """

    name = "camera"
    busy = ""

    @property
    def settings(self) -> CameraSettings:
        """Settings as they are now; None where it has none, or while it is lost."""
        return CameraSettings()

    def open(self) -> None:
        """Connect, and begin to grab. A `CameraError` if the camera is not there."""
        raise NotImplementedError

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame, with the number and the time of the camera; None if none came in time.

        The pixels are a copy, and the number counts from the opening on. A `CameraError` if the
        camera is lost.
        """
        raise NotImplementedError

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change settings; None leaves one as it is."""
        for name, value, unit in (("exposure_s", exposure_s, "s"), ("gain", gain, "dB")):
            if value is None:
                continue
            setting = getattr(self.settings, name)
            if setting is None:
                raise InputError(
                    f"{name}={value:g}: the camera has no such setting that d3s can change. Leave "
                    "it, or use the tool of the system, such as v4l2-ctl for cameras on USB."
                )
            low, high = setting.range or (value, value)
            if not low <= value <= high:
                limits = f"{low:g} to {high:g} {unit}"
                raise InputError(f"{name}={value:g} must be {limits} for this camera.")

    def close(self) -> None:
        """Release the camera. Closing twice is fine."""


class NodeDevice(Device):
    """Camera with the named settings of GenICam, 8, 10 or 12 bits, mono or Bayer, by a library.

    A library gives `_open`, `_next`, `_ends` and `_number`.
    """

    problems: tuple[type[Exception], ...]
    """Errors of the library, which become `CameraError`s."""

    def __init__(self, word: str, serial: str, rate_hz: float | None) -> None:
        self.name = f"{word}:{serial}" if serial else word
        self._serial, self._rate_hz = serial, rate_hz
        self._camera: Any = None
        self._full_scale = 0
        self._last: int | None = None  # number of the camera
        self._added = 0

    @property
    def settings(self) -> CameraSettings:
        """Exposure, and gain in dB, as they are now; None where it has none, or is lost."""
        exposure = self._setting("ExposureTime", "ExposureTimeAbs")
        if exposure is not None:
            low, high = exposure.range or (0.0, np.inf)
            exposure = Setting(
                exposure.value * _MICROSECOND_S, (low * _MICROSECOND_S, high * _MICROSECOND_S)
            )
        return CameraSettings(exposure, self._setting("Gain", "GainRaw"))

    def open(self) -> None:
        """Connect to the camera, choose its format, and begin to grab."""
        self.close()
        self._last, self._added = None, 0
        try:
            with self._named_problems():
                self._open()
        except BaseException:
            self.close()
            raise

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame; its pixels are copied, and its buffer is given back at once."""
        if self._camera is None:
            raise CameraError(f"{self.name} is not open.")
        with self._named_problems():
            return self._next(timeout_s)

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change exposure and gain, while it grabs."""
        super().configure(exposure_s=exposure_s, gain=gain)
        with self._named_problems():
            if exposure_s is not None:
                self._set(exposure_s / _MICROSECOND_S, "ExposureTime", "ExposureTimeAbs")
            if gain is not None:
                self._set(gain, "Gain", "GainRaw")

    def close(self) -> None:
        """Release the camera. Closing twice is fine, and so is closing one that is gone."""
        for end in self._ends():
            try:
                end()
            except self.problems:
                continue
        self._camera = None

    def _open(self) -> None:
        """Set `_camera`, with its name and its format, and begin to grab."""
        raise NotImplementedError

    def _next(self, timeout_s: float) -> Frame | None:
        raise NotImplementedError

    def _ends(self) -> list[Any]:
        """Calls that release what is held."""
        raise NotImplementedError

    def _number(self, name: str, value: float | None = None) -> tuple[float, float, float] | None:
        """Value and range of a setting of a name, after it was set; None if there is none."""
        raise NotImplementedError

    def _missing(self, known: list[str]) -> NoReturn:
        raise CameraError(
            f"there is no camera {self.name}; there are: {', '.join(known) or 'none'}. Plug it in, "
            "and close other programs that use it."
        )

    def _setting(self, *names: str) -> Setting | None:
        """First setting of these names that the camera has: old models have other names."""
        if self._camera is None:
            return None
        found = next(filter(None, map(self._number, names)), None)
        return None if found is None else Setting(found[0], found[1:])

    def _set(self, value: float, *names: str) -> None:
        for name in names:
            if self._number(name) is not None:
                self._number(name, round(value) if name.endswith("Raw") else value)
                return
        raise InputError(f"{self.name} has no setting {' or '.join(names)}. Leave it.")

    def _format(self, can_have: tuple[str, ...]) -> str:
        """Name of the pixel format to use, whose full scale is kept."""
        names = (*_FORMATS, *_BAYER_FORMATS)
        name = next((one for one in names if one in can_have), None)
        if name is None:
            raise InputError(
                f"{self.name} has the formats {', '.join(can_have)}, and none of "
                f"{', '.join(names)}."
            )
        self._full_scale = 2 ** int("".join(filter(str.isdigit, name))) - 1
        return name

    def _frame(self, number: int, counts: Any, time_s: float | None, *, whole: bool) -> Frame:
        """Frame with a number that goes on where the counter of a GigE camera begins again."""
        last, self._last = self._last, number
        if last is not None and last > _LARGEST_SHORT - 500 and number < 500:
            self._added += _LARGEST_SHORT
        return Frame(
            number=number + self._added,
            counts=counts,
            full_scale=self._full_scale,
            time_s=time.monotonic(),
            camera_time_s=time_s,
            whole=whole,
        )

    @contextmanager
    def _named_problems(self) -> Iterator[None]:
        """Raise errors of the library as `CameraError`."""
        try:
            yield
        except self.problems as error:
            first = str(error).strip().partition("\n")[0].strip() or "no reason given"
            raise CameraError(f"{self.name}: {first}") from error
