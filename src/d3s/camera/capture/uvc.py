"""Cameras on USB that need no driver (UVC), such as stereo cameras with both views side by side."""

import queue
import threading
import time
from contextlib import suppress
from typing import Any

from d3s.camera.capture.device import Device
from d3s.errors import CameraError
from d3s.frames.frame import Frame
from d3s.frames.video import ImageMaker
from d3s.rig import Rig

_WAITING_FRAMES = 4
_FAILURES = 5  # to read an image, in a row: the camera is gone


class UvcDevice(Device):
    """Device that OpenCV reads, in a thread of its own, since reading may wait for ever.

    OpenCV does not tell the units of exposure and gain, which differ between systems: they are no
    settings here. Set them with the tools of the system, such as v4l2-ctl.
    """

    def __init__(
        self,
        number: int,
        *,
        rig: Rig | None = None,
        side_by_side: bool = False,
        linear: bool | None = None,
        rate_hz: float | None = None,
    ) -> None:
        self.name = f"uvc:{number}"
        self._number, self._rate_hz = number, rate_hz
        self._maker = ImageMaker(rig, side_by_side, linear)
        self._images: queue.Queue[tuple[int, float, Any]] = queue.Queue(_WAITING_FRAMES)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Connect, and begin to read."""
        import cv2

        self.close()
        capture = cv2.VideoCapture(self._number)
        if not capture.isOpened():
            capture.release()
            raise CameraError(
                f"there is no camera {self.name}, or another program uses it. Plug it in, "
                "or try another number."
            )
        if self._rate_hz is not None:
            capture.set(cv2.CAP_PROP_FPS, self._rate_hz)
        self._images, self._stop = queue.Queue(_WAITING_FRAMES), threading.Event()
        works = capture, self._images, self._stop
        self._thread = threading.Thread(target=_read, args=works, name="d3s uvc", daemon=True)
        self._thread.start()

    def grab(self, timeout_s: float) -> Frame | None:
        """Next image, if it comes in time."""
        if self._thread is None:
            raise CameraError(f"{self.name} is not open.")
        try:
            number, time_s, image = self._images.get(timeout=timeout_s)
        except queue.Empty:
            if not self._thread.is_alive():
                raise CameraError(f"{self.name} gives no images any more. Plug it in.") from None
            return None
        return self._maker.frame(image, number=number, time_s=time_s)

    def close(self) -> None:
        """Release the camera; a read that hangs is left behind after a moment."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1.0)
            self._thread = None


def _read(capture: Any, images: "queue.Queue[Any]", stop: threading.Event) -> None:
    """Read images; when nobody takes them, the newest ones are lost and numbered."""
    number = failures = 0
    while not stop.is_set() and failures < _FAILURES:
        is_there, image = capture.read()
        if not is_there:
            failures += 1
            stop.wait(0.02)
            continue
        failures = 0
        with suppress(queue.Full):  # then its number is missing, and so the loss is counted
            images.put_nowait((number, time.monotonic(), image))
        number += 1
    capture.release()
