"""Devices: what a live camera needs from the hardware, or from what stands for it."""

import time
from typing import Protocol

from d3s.errors import InputError
from d3s.frames.frame import CameraSettings, Frame

# Best first. Packed formats are left out: unpacking them costs more time.
_FORMATS = ("Mono12", "Mono10", "Mono8")
_BAYER_FORMATS = tuple(
    f"Bayer{order}{bits}" for bits in (12, 10, 8) for order in ("RG", "BG", "GR", "GB")
)
_LARGEST_SHORT = 65535  # block numbers of GigE Vision begin again after it


class Device(Protocol):
    """One camera, which may be unplugged. `LiveCamera` makes a source of it."""

    @property
    def name(self) -> str:
        """Name for people."""

    @property
    def settings(self) -> CameraSettings:
        """Settings as they are now."""

    def open(self) -> None:
        """Connect, and begin to grab. A `CameraError` if the camera is not there."""

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame, with the number and the time of the camera; None if none came in time.

        The pixels are a copy, and the number counts from the opening on. A `CameraError` if the
        camera is lost.
        """

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change settings; None leaves one as it is."""

    def close(self) -> None:
        """Release the camera. Closing twice is fine."""


def check_setting(
    name: str, value: float | None, settings: CameraSettings, unit: str = ""
) -> float | None:
    """Value of a setting that a camera has, within its range; None stays None."""
    if value is None:
        return None
    setting = getattr(settings, name)
    if setting is None:
        raise InputError(f"{name}={value:g}: the camera has no such setting. Leave it.")
    low, high = setting.range or (value, value)
    if not low <= value <= high:
        raise InputError(f"{name}={value:g} must be {low:g} to {high:g}{unit} for this camera.")
    return value


def pixel_format_of(can_have: tuple[str, ...], camera: str) -> tuple[str, int]:
    """Name of the pixel format to use, and its full scale."""
    names = (*_FORMATS, *_BAYER_FORMATS)
    name = next((one for one in names if one in can_have), None)
    if name is None:
        raise InputError(
            f"{camera} has the formats {', '.join(can_have)}, and none of {', '.join(names)}."
        )
    digits = "".join(letter for letter in name if letter.isdigit())
    return name, 2 ** int(digits) - 1


class CountedOn:
    """Numbers that go on where the counter of a GigE camera begins again."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._added = 0

    def whole(self, number: int) -> int:
        """Number of a frame since the beginning, by that of the camera."""
        last = self._last
        if last is not None and last > _LARGEST_SHORT - 500 and number < 500 and number < last:
            self._added += _LARGEST_SHORT
        self._last = number
        return number + self._added


class Pace:
    """Times of frames at a fixed rate, by `time.monotonic`: frames that nobody took are lost."""

    def __init__(self, rate_hz: float) -> None:
        if not 0 < rate_hz <= 1e4:
            raise InputError(f"rate_hz={rate_hz:g} must be above 0, to 10000 frames a second.")
        self._rate_hz = rate_hz
        self._start_s = 0.0
        self._next = 0

    def begin(self) -> None:
        """Start with frame 0, now."""
        self._start_s, self._next = time.monotonic(), 0

    def wait(self, timeout_s: float) -> int | None:
        """Number of the newest frame once it is due; None if that is not in time."""
        due_s = self._start_s + self._next / self._rate_hz
        now_s = time.monotonic()
        if due_s - now_s > timeout_s:
            time.sleep(timeout_s)
            return None
        time.sleep(max(due_s - now_s, 0.0))
        elapsed = int((time.monotonic() - self._start_s) * self._rate_hz + 1e-6)
        number = max(self._next, elapsed)
        self._next = number + 1
        return number
