"""Cameras of Basler, by their library pypylon."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from d3s.camera.capture.device import CountedOn, check_setting, pixel_format_of
from d3s.errors import CameraError, MissingPackageError
from d3s.frames.frame import CameraSettings, Counts, Frame, Setting

_MICROSECOND_S = 1e-6
_NANOSECOND_S = 1e-9
_NO_NUMBER = 2**64 - 1


class BaslerDevice:
    """Device of Basler: mono and Bayer sensors with 8, 10 or 12 bits."""

    def __init__(self, serial: str = "", *, rate_hz: float | None = None) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning that is an error crashes this import
                from pypylon import genicam, pylon
        except ImportError as error:
            raise MissingPackageError(
                "cameras of Basler need the package pypylon", "basler"
            ) from error
        self._pylon: Any = pylon
        self._problem: type[Exception] = genicam.GenericException
        self._serial, self._rate_hz = serial, rate_hz
        self._camera: Any = None
        self._name = f"basler:{serial}" if serial else "basler"
        self._full_scale = 0
        self._tick_s = _NANOSECOND_S
        self._numbers = CountedOn()

    @property
    def name(self) -> str:
        """Model and serial number, once it is open."""
        return self._name

    @property
    def settings(self) -> CameraSettings:
        """Exposure, and gain in dB, as they are now; None while the camera is lost."""
        if self._camera is None:
            return CameraSettings()
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
        with self._named_problems():
            factory = self._pylon.TlFactory.GetInstance()
            found = list(factory.EnumerateDevices())
            chosen = [one for one in found if self._serial in ("", one.GetSerialNumber())]
            if not chosen:
                known = ", ".join(one.GetSerialNumber() for one in found) or "none"
                raise CameraError(
                    f"there is no camera {self._name}; there are: {known}. Plug it in, and close "
                    "other programs that use it."
                )
            camera = self._pylon.InstantCamera(factory.CreateDevice(chosen[0]))
            camera.Open()
            self._camera = camera
            self._name = f"{chosen[0].GetModelName()} {chosen[0].GetSerialNumber()}"
            try:
                self._prepare(camera)
                camera.StartGrabbing(self._pylon.GrabStrategy_OneByOne)
            except BaseException:
                self.close()
                raise
        self._numbers = CountedOn()

    def _prepare(self, camera: Any) -> None:
        chosen = pixel_format_of(tuple(camera.PixelFormat.Symbolics), self._name)
        camera.PixelFormat.Value, self._full_scale = chosen
        if self._rate_hz is not None:
            with suppress(self._problem):  # some have no switch
                camera.AcquisitionFrameRateEnable.Value = True
            self._node("AcquisitionFrameRate", "AcquisitionFrameRateAbs").SetValue(self._rate_hz)
        with suppress(self._problem):  # USB cameras count nanoseconds
            self._tick_s = 1 / float(camera.GevTimestampTickFrequency.Value)

    def grab(self, timeout_s: float) -> Frame | None:
        """Next frame; its pixels are copied, and its buffer is released at once."""
        camera = self._camera
        if camera is None:
            raise CameraError(f"{self._name} is not open.")
        with self._named_problems():
            result = camera.RetrieveResult(
                max(int(1e3 * timeout_s), 1), self._pylon.TimeoutHandling_Return
            )
            if not result.IsValid():
                if camera.IsCameraDeviceRemoved() or not camera.IsGrabbing():
                    raise CameraError(f"{self._name} was unplugged. Plug it in.")
                return None
            try:
                return self._frame(result)
            finally:
                result.Release()

    def _frame(self, result: Any) -> Frame:
        number = result.BlockID
        number = result.ImageNumber if number in (None, _NO_NUMBER) else number
        ticks = result.TimeStamp  # always 0 of the emulator
        return Frame(
            number=self._numbers.whole(number),
            counts=self._pixels(result),
            full_scale=self._full_scale,
            time_s=time.monotonic(),
            camera_time_s=ticks * self._tick_s if ticks else None,
            whole=bool(result.GrabSucceeded()),
        )

    def _pixels(self, result: Any) -> Counts:
        try:
            with result.GetArrayZeroCopy() as pixels:
                return np.array(pixels)
        except (self._problem, ValueError, RuntimeError):
            if result.GrabSucceeded():
                raise
            shape = self._camera.Height.Value, self._camera.Width.Value
            return np.zeros(shape, np.uint8 if self._full_scale <= 255 else np.uint16)

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change exposure and gain, while it grabs."""
        settings = self.settings
        check_setting("exposure_s", exposure_s, settings, " s")
        check_setting("gain", gain, settings, " dB")
        with self._named_problems():
            if exposure_s is not None:
                node = self._node("ExposureTime", "ExposureTimeAbs")
                node.SetValue(exposure_s / _MICROSECOND_S)
            if gain is not None:
                name, node = self._named_node("Gain", "GainRaw")
                node.SetValue(round(gain) if name == "GainRaw" else gain)

    def close(self) -> None:
        """Release the camera. Closing twice is fine, and so is closing one that is gone."""
        camera, self._camera = self._camera, None
        if camera is None:
            return
        for end in (camera.StopGrabbing, camera.Close, camera.DestroyDevice):
            with suppress(self._problem):
                end()

    def _setting(self, *names: str) -> Setting | None:
        try:
            node = self._node(*names)
            return Setting(float(node.GetValue()), (float(node.GetMin()), float(node.GetMax())))
        except (self._problem, CameraError):
            return None

    def _node(self, *names: str) -> Any:
        return self._named_node(*names)[1]

    def _named_node(self, *names: str) -> tuple[str, Any]:
        """First setting of these names that the camera has: old models have other names."""
        for name in names:
            with suppress(self._problem, AttributeError):
                node = self._camera.GetNodeMap().GetNode(name)
                node.GetValue()  # an error if it is there in name only
                return name, node
        raise CameraError(f"{self._name} has no setting {' or '.join(names)}.")

    @contextmanager
    def _named_problems(self) -> Iterator[None]:
        """Raise errors of the library as `CameraError`."""
        try:
            yield
        except self._problem as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
            raise CameraError(f"{self._name}: {first}") from error
