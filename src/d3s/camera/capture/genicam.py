"""Cameras with GenICam, by the package harvesters and the GenTL producer of their maker."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from d3s.camera.capture.device import CountedOn, check_setting, pixel_format_of
from d3s.errors import CameraError, InputError, MissingPackageError
from d3s.frames.frame import CameraSettings, Counts, Frame, Setting

PRODUCERS = "GENICAM_GENTL64_PATH"
"""Variable of the standard GenTL with the folders of producers, which their installers set."""

_MICROSECOND_S = 1e-6
_NANOSECOND_S = 1e-9


class GenicamDevice:
    """Device with GenICam: mono and Bayer sensors with 8, 10 or 12 bits."""

    def __init__(self, serial: str = "", *, rate_hz: float | None = None) -> None:
        try:
            from genicam import genapi, gentl
            from harvesters.core import Harvester
        except ImportError as error:
            raise MissingPackageError(
                "cameras with GenICam need the package harvesters", "genicam"
            ) from error
        self._new_library = Harvester
        self._problems = (gentl.GenericException, genapi.GenericException)
        self._serial, self._rate_hz = serial, rate_hz
        self._library: Any = None
        self._camera: Any = None
        self._name = f"genicam:{serial}" if serial else "genicam"
        self._full_scale = 0
        self._numbers = CountedOn()

    @property
    def name(self) -> str:
        """Model and serial number, once it is open."""
        return self._name

    @property
    def settings(self) -> CameraSettings:
        """Exposure and gain as they are now; None if it has none, or while the camera is lost."""
        exposure = self._setting("ExposureTime")
        if exposure is not None:
            low, high = exposure.range or (0.0, np.inf)
            exposure = Setting(
                exposure.value * _MICROSECOND_S, (low * _MICROSECOND_S, high * _MICROSECOND_S)
            )
        return CameraSettings(exposure, self._setting("Gain"))

    def open(self) -> None:
        """Load the producers, connect to the camera, choose its format, and begin to grab."""
        self.close()
        self._library = self._new_library()
        try:
            with self._named_problems():
                for path in _producers():
                    self._library.add_file(str(path))
                self._library.update()
                self._camera = self._library.create(self._chosen())
                self._prepare()
                self._camera.start()
        except BaseException:
            self.close()
            raise
        self._numbers = CountedOn()

    def _chosen(self) -> int:
        """Place of the camera in the list of the library."""
        found = self._library.device_info_list
        numbers = [str(one.serial_number) for one in found]
        place = (
            0
            if not self._serial
            else next(
                (place for place, number in enumerate(numbers) if number == self._serial),
                len(numbers),
            )
        )
        if place >= len(numbers):
            known = ", ".join(numbers) or "none"
            raise CameraError(
                f"there is no camera {self._name}; there are: {known}. Plug it in, and close other "
                "programs that use it."
            )
        self._name = f"{found[place].model} {numbers[place]}"
        return place

    def _prepare(self) -> None:
        nodes = self._camera.remote_device.node_map
        chosen = pixel_format_of(tuple(nodes.PixelFormat.symbolics), self._name)
        nodes.PixelFormat.value, self._full_scale = chosen
        if self._rate_hz is not None:
            with suppress(AttributeError, *self._problems):  # some have no switch
                nodes.AcquisitionFrameRateEnable.value = True
            rate = self._node("AcquisitionFrameRate")
            if rate is None:
                raise InputError(f"{self._name} has no frame rate to set. Leave it.")
            rate.value = self._rate_hz

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame; its pixels are copied, and its buffer is given back at once."""
        if self._camera is None:
            raise CameraError(f"{self._name} is not open.")
        with self._named_problems():
            buffer = self._camera.try_fetch(timeout=timeout_s)
            if buffer is None:
                return None
            try:
                return self._frame(buffer)
            finally:
                buffer.queue()

    def _frame(self, buffer: Any) -> Frame:
        nanoseconds = None
        with suppress(*self._problems):  # not all count time
            nanoseconds = buffer.timestamp_ns
        return Frame(
            number=self._numbers.whole(int(buffer.module.frame_id)),
            counts=self._pixels(buffer),
            full_scale=self._full_scale,
            time_s=time.monotonic(),
            camera_time_s=None if nanoseconds is None else nanoseconds * _NANOSECOND_S,
            whole=bool(buffer.module.is_complete()),
        )

    def _pixels(self, buffer: Any) -> Counts:
        image = buffer.payload.components[0]
        kind = np.uint8 if self._full_scale <= 255 else np.uint16
        pixels: Counts = np.array(image.data, dtype=kind)
        return pixels.reshape(image.height, image.width)

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change exposure and gain, while it grabs."""
        settings = self.settings
        check_setting("exposure_s", exposure_s, settings, " s")
        check_setting("gain", gain, settings)
        with self._named_problems():
            if exposure_s is not None:
                self._node("ExposureTime").value = exposure_s / _MICROSECOND_S
            if gain is not None:
                self._node("Gain").value = gain

    def close(self) -> None:
        """Release the camera. Closing twice is fine, and so is closing one that is gone."""
        camera, self._camera = self._camera, None
        library, self._library = self._library, None
        ends = [] if camera is None else [camera.stop, camera.destroy]
        for end in (*ends, *([] if library is None else [library.reset])):
            with suppress(*self._problems):
                end()

    def _setting(self, name: str) -> Setting | None:
        with suppress(*self._problems):
            node = self._node(name)
            if node is not None:
                return Setting(float(node.value), (float(node.min), float(node.max)))
        return None

    def _node(self, name: str) -> Any:
        """Setting of a name; None if the camera has none."""
        return (
            None
            if self._camera is None
            else getattr(self._camera.remote_device.node_map, name, None)
        )

    @contextmanager
    def _named_problems(self) -> Iterator[None]:
        """Raise errors of the library as `CameraError`."""
        try:
            yield
        except self._problems as error:
            first = str(error).strip().partition("\n")[0] or "no reason given"
            raise CameraError(f"{self._name}: {first}") from error


def _producers() -> list[Path]:
    """Files of the producers that are installed."""
    folders = os.environ.get(PRODUCERS, "").split(os.pathsep)
    found = [path for one in folders if one for path in sorted(Path(one).glob("*.cti"))]
    if not found:
        raise CameraError(
            f"no producer of GenICam cameras was found. Install that of the camera's maker, and "
            f"name the folder of its .cti file in the variable {PRODUCERS}."
        )
    return found
