"""Cameras of Basler, by their library pypylon."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from d3s.camera.capture.device import NodeDevice
from d3s.errors import CameraError, MissingPackageError
from d3s.frames.frame import Counts, Frame

_NO_NUMBER = 2**64 - 1


class BaslerDevice(NodeDevice):
    """Device of Basler."""

    def __init__(self, serial: str = "", *, rate_hz: float | None = None) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning that is an error crashes this import
                from pypylon import genicam, pylon
        except ImportError as error:
            raise MissingPackageError(
                "cameras of Basler need the package pypylon", "basler"
            ) from error
        super().__init__("basler", serial, rate_hz)
        self._pylon: Any = pylon
        self.problems = (genicam.GenericException,)
        self._tick_s = 1e-9  # USB cameras count nanoseconds

    def _open(self) -> None:
        factory = self._pylon.TlFactory.GetInstance()
        found = list(factory.EnumerateDevices())
        chosen = [one for one in found if self._serial in ("", one.GetSerialNumber())]
        if not chosen:
            self._missing([one.GetSerialNumber() for one in found])
        self._camera = self._pylon.InstantCamera(factory.CreateDevice(chosen[0]))
        self._camera.Open()
        self.name = f"{chosen[0].GetModelName()} {chosen[0].GetSerialNumber()}"
        pixels = self._camera.PixelFormat
        pixels.Value = self._format(tuple(pixels.Symbolics))
        if self._rate_hz is not None:
            with suppress(*self.problems):  # some have no switch
                self._camera.AcquisitionFrameRateEnable.Value = True
            self._set(self._rate_hz, "AcquisitionFrameRate", "AcquisitionFrameRateAbs")
        with suppress(*self.problems):
            self._tick_s = 1 / float(self._camera.GevTimestampTickFrequency.Value)
        self._camera.StartGrabbing(self._pylon.GrabStrategy_OneByOne)

    def _next(self, timeout_s: float) -> Frame | None:
        camera = self._camera
        waited = max(int(1e3 * timeout_s), 1)
        result = camera.RetrieveResult(waited, self._pylon.TimeoutHandling_Return)
        if not result.IsValid():
            if camera.IsCameraDeviceRemoved() or not camera.IsGrabbing():
                raise CameraError(f"{self.name} was unplugged. Plug it in.")
            return None
        try:
            number, ticks = result.BlockID, result.TimeStamp  # always 0 of the emulator
            return self._frame(
                result.ImageNumber if number in (None, _NO_NUMBER) else number,
                self._pixels(result),
                ticks * self._tick_s if ticks else None,
                whole=bool(result.GrabSucceeded()),
            )
        finally:
            result.Release()

    def _pixels(self, result: Any) -> Counts:
        try:
            with result.GetArrayZeroCopy() as pixels:
                return np.array(pixels)
        except (self.problems[0], ValueError, RuntimeError):
            if result.GrabSucceeded():
                raise
            shape = self._camera.Height.Value, self._camera.Width.Value
            return np.zeros(shape, np.uint8 if self._full_scale <= 255 else np.uint16)

    def _ends(self) -> list[Callable[[], Any]]:
        camera = self._camera
        if camera is None:
            return []
        return [camera.StopGrabbing, camera.Close, camera.DestroyDevice]

    def _number(self, name: str, value: float | None = None) -> tuple[float, float, float] | None:
        with suppress(AttributeError, *self.problems if value is None else ()):
            node = self._camera.GetNodeMap().GetNode(name)
            if value is not None:
                node.SetValue(value)
            return float(node.GetValue()), float(node.GetMin()), float(node.GetMax())
        return None
