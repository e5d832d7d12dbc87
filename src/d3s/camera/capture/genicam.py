"""Cameras with GenICam, by the package harvesters and the GenTL producer of their maker."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from d3s.camera.capture.device import NodeDevice
from d3s.errors import CameraError, MissingPackageError
from d3s.frames.frame import Frame

PRODUCERS = "GENICAM_GENTL64_PATH"
"""Variable of the standard GenTL with the folders of producers, which their installers set."""


class GenicamDevice(NodeDevice):
    """Device with GenICam."""

    def __init__(self, serial: str = "", *, rate_hz: float | None = None) -> None:
        try:
            from genicam import genapi, gentl
            from harvesters.core import Harvester
        except ImportError as error:
            raise MissingPackageError(
                "cameras with GenICam need the package harvesters", "genicam"
            ) from error
        super().__init__("genicam", serial, rate_hz)
        self._new_library = Harvester
        self.problems = (gentl.GenericException, genapi.GenericException)
        self._library: Any = None

    def _open(self) -> None:
        self._library = self._new_library()
        for path in _producers():
            self._library.add_file(str(path))
        self._library.update()
        found = self._library.device_info_list
        numbers = [str(one.serial_number) for one in found]
        if self._serial not in ("", *numbers) or not numbers:
            self._missing(numbers)
        place = numbers.index(self._serial) if self._serial else 0
        self.name = f"{found[place].model} {numbers[place]}"
        self._camera = self._library.create(place)
        nodes = self._camera.remote_device.node_map
        nodes.PixelFormat.value = self._format(tuple(nodes.PixelFormat.symbolics))
        if self._rate_hz is not None:
            with suppress(AttributeError, *self.problems):  # some have no switch
                nodes.AcquisitionFrameRateEnable.value = True
            self._set(self._rate_hz, "AcquisitionFrameRate")
        self._camera.start()

    def _next(self, timeout_s: float) -> Frame | None:
        buffer = self._camera.try_fetch(timeout=timeout_s)
        if buffer is None:
            return None
        try:
            time_s = None
            with suppress(*self.problems):  # not all count time
                time_s = 1e-9 * buffer.timestamp_ns
            image = buffer.payload.components[0]
            pixels = np.array(image.data, np.uint8 if self._full_scale <= 255 else np.uint16)
            return self._frame(
                int(buffer.module.frame_id),
                pixels.reshape(image.height, image.width),
                time_s,
                whole=bool(buffer.module.is_complete()),
            )
        finally:
            buffer.queue()

    def _ends(self) -> list[Callable[[], Any]]:
        camera, library, self._library = self._camera, self._library, None
        ends = [] if camera is None else [camera.stop, camera.destroy]
        return ends if library is None else [*ends, library.reset]

    def _number(self, name: str, value: float | None = None) -> tuple[float, float, float] | None:
        node = getattr(self._camera.remote_device.node_map, name, None)
        if node is None:
            return None
        if value is not None:
            node.value = value
        with suppress(*self.problems):
            return float(node.value), float(node.min), float(node.max)
        return None


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
