"""Live camera: a device that is watched, opened again when it is lost, and its losses counted.

The frames of a device may stop, come twice, late or in part, and change their size. None of this
may reach a depth map unseen. `LiveCamera` numbers the frames anew and without repetition, and
keeps a list of all that went wrong.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from d3s.camera.capture.device import Device
from d3s.errors import CameraError, InputError
from d3s.frames.frame import CameraSettings, Frame, Refused, Source
from d3s.rig import Rig

# So many old frames in a row, in order among themselves: the counter of the camera began anew.
ANEW_AFTER = 3


class _Stamp(NamedTuple):
    """Number and time of a frame, as the camera says them."""

    number: int
    time_s: float | None

    def is_after(self, other: "_Stamp") -> bool:
        if self.time_s is not None and other.time_s is not None and self.time_s <= other.time_s:
            return False
        return self.number > other.number


class Order:
    """Order of the frames of one connection."""

    def __init__(self) -> None:
        self._last: _Stamp | None = None
        self._old: list[_Stamp] = []

    @property
    def last(self) -> str:
        """Last frame, in words."""
        if self._last is None:
            return "none"
        time = "" if self._last.time_s is None else f" at {self._last.time_s:.4f} s"
        return f"{self._last.number}{time}"

    def missing_before(self, frame: Frame) -> int | None:
        """Number of frames that are missing before a new one; None if it is not new."""
        stamp = _Stamp(frame.number, frame.camera_time_s)
        last = self._last
        if last is None or stamp.is_after(last):
            missing = 0 if last is None else stamp.number - last.number - 1
        else:
            in_order = self._old and stamp.is_after(self._old[-1])
            self._old = [*self._old, stamp] if in_order else [stamp]
            if len(self._old) < ANEW_AFTER:
                return None
            missing = ANEW_AFTER - 1
        self._last, self._old = stamp, []
        return missing


class FrameFormat:
    """Size and full scale that frames must have: that of the calibration, and of the first one."""

    def __init__(self, rig: Rig | None) -> None:
        self._first: tuple[tuple[int, int], int] | None = None
        self._of_rig: tuple[int, int] | None = None  # of raw frames
        calibration = None if rig is None else rig.calibration
        if calibration is not None and calibration.frame_rows_px is not None:
            self._of_rig = calibration.frame_rows_px, calibration.frame_cols_px or 0

    def mismatch(self, frame: Frame) -> str:
        """Sentence on what a frame has another of, with the remedy; empty if it is alike."""
        self._first = self._first or (frame.shape, frame.full_scale)
        (rows, cols), full_scale = self._first
        known = "the first one has"
        if self._of_rig is not None and frame.views is None:
            (rows, cols), known = self._of_rig, "the rig was calibrated for"
        if frame.shape != (rows, cols):
            return (
                f"a frame has {frame.shape[0]} x {frame.shape[1]} px (rows x columns), and {known} "
                f"{rows} x {cols} px. Set the camera to whole frames, without binning."
            )
        if frame.full_scale != full_scale:
            return (
                f"a frame has the full scale {frame.full_scale}, and the first one has "
                f"{full_scale}: the camera has changed its pixel format. Set it back."
            )
        return ""


def misfit(outcome: Frame | Refused, rig: Rig) -> str:
    """Reason why a rig cannot take frames like this one; empty if it can."""
    if isinstance(outcome, Refused):
        return outcome.reason
    if outcome.views is None:
        try:
            outcome.pair(rig)
        except InputError as error:
            return str(error) if outcome.whole else ""
        return ""
    size = None if rig.stereo is None else rig.stereo.shape
    if rig.calibration is not None:
        size = rig.calibration.crop_rows_px, rig.calibration.crop_cols_px
    if size is None or outcome.shape == size:
        return ""
    return (
        f"views have {outcome.shape[0]} x {outcome.shape[1]} px (rows x columns), and the rig was "
        f"calibrated for views of {size[0]} x {size[1]} px. Give the rig of this camera."
    )


GRABBING = "grabbing"
_STEP_S = 0.1  # of a wait for a frame, and so the time that closing takes
_FAULTS_KEPT = 500
_RATE_FRAMES = 8  # over which the frame rate is averaged


class FaultKind(StrEnum):
    """Kinds of faults."""

    UNPLUGGED = "unplugged"
    FROZEN = "frozen"
    DROPPED = "dropped"
    INCOMPLETE = "incomplete"
    OUT_OF_ORDER = "out of order"
    CHANGED = "changed"


class Fault(NamedTuple):
    """One thing that went wrong."""

    kind: FaultKind
    time_s: float  # when it was seen, by `time.monotonic`
    words: str
    frames: int = 0  # that were lost by it; in an outage, as many as the frame rate says
    back_s: float | None = None  # when frames came again after an outage


class LiveCamera(Source):
    """Source of the frames of a device: waits for each, and goes on when it was lost and is back.

    Another thread may read `state` and `settings`, call `configure`, and `close` it: that ends the
    iteration.

    Parameters
    ----------
    device
        The camera.
    rig
        Rig whose calibration has the size of frames; other sizes are refused. Without one, frames
        must be like the first.
    freeze_s
        Time without a frame, beyond three exposures, after which the camera is opened again.
    retry_s
        Time between attempts to open it.

    Raises
    ------
    CameraError
        When there is no such camera at the beginning.
    """

    def __init__(
        self,
        device: Device,
        *,
        rig: Rig | None = None,
        freeze_s: float = 1.5,
        retry_s: float = 0.5,
    ) -> None:
        self._device = device
        self._freeze_s, self._retry_s = freeze_s, retry_s
        self._format = FrameFormat(rig)
        self._state = GRABBING
        self._closed, self._in_use = threading.Event(), threading.Lock()
        self._faults: deque[Fault] = deque(maxlen=_FAULTS_KEPT)
        self.fault_counts: Counter[str] = Counter()  # by kind
        self.lost = 0  # frames in all
        self._outage: Fault | None = None  # that goes on
        self._next_number = 0
        self._waited_s = 0.0  # for a new frame
        self._arrived_s: float | None = None  # last new frame
        self._period_s: float | None = None
        self._order = Order()
        self._asked: dict[str, float] = {}  # settings
        self._first: Frame | Refused | None = None  # that was looked at before the iteration
        device.open()
        self._is_open = True

    @property
    def frame_count(self) -> None:
        """None: a camera has no end."""

    @property
    def name(self) -> str:
        """Name of the device."""
        return self._device.name

    @property
    def state(self) -> str:
        """State for people: "grabbing", or "lost: " or "refused: " and the reason."""
        return self._device.busy or self._state

    @property
    def settings(self) -> CameraSettings:
        """Settings of the device."""
        return self._device.settings

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Faults so far, the last 500 of them."""
        return tuple(self._faults)

    def configure(self, *, exposure_s: float | None = None, gain: float | None = None) -> None:
        """Change settings of the device; they are set again when it was lost and is back.

        Raises an `InputError` when the camera has no such setting, or the value is out of its
        range.
        """
        self._device.configure(exposure_s=exposure_s, gain=gain)
        asked = {"exposure_s": exposure_s, "gain": gain}
        self._asked |= {name: value for name, value in asked.items() if value is not None}

    def close(self) -> None:
        """Release the device, and end the iteration, in whichever thread it is."""
        self._closed.set()
        with self._in_use:
            self._device.close()
            self._is_open = False

    def first(self, timeout_s: float = 2.0) -> Frame | Refused | None:
        """First outcome, which the iteration gives again; None if none comes in time."""
        end_s = time.monotonic() + timeout_s
        while self._first is None and time.monotonic() < end_s:
            self._first = self._next()
        return self._first

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Frames as they come; waits while the camera is lost."""
        first, self._first = self._first, None
        if first is not None:
            yield first
        while not self._closed.is_set():
            outcome = self._next()
            if outcome is not None:
                yield outcome

    def _next(self) -> Frame | Refused | None:
        """Next outcome, if there is one within a short time."""
        started_s = time.monotonic()
        with self._in_use:
            if self._closed.is_set():
                return None
            try:
                frame = self._grab()
            except CameraError as error:
                self._lose(FaultKind.UNPLUGGED, str(error))
                frame = None
        if not self._is_open:
            self._closed.wait(self._retry_s)
            return None
        missing = None if frame is None else self._order.missing_before(frame)
        if frame is None or missing is None:
            self._pass_over(frame, time.monotonic() - started_s)
            return None
        return self._numbered(frame, missing)

    def _grab(self) -> Frame | None:
        if not self._is_open:
            self._device.open()
            self._is_open, self._order, self._waited_s = True, Order(), 0.0
            with suppress(InputError):  # another camera of this name may have other ranges
                self._device.configure(**self._asked)
        return self._device.grab(_STEP_S)

    def _pass_over(self, frame: Frame | None, waited_s: float) -> None:
        """Note that no new frame came: none at all, or an old one."""
        if frame is not None:
            words = f"frame {frame.number} of the camera came after its frame {self._order.last}."
            self._note(FaultKind.OUT_OF_ORDER, words)
        self._waited_s += 0 if self._device.busy else waited_s
        exposure = self._device.settings.exposure_s
        if self._waited_s > self._freeze_s + (0 if exposure is None else 3 * exposure.value):
            with self._in_use:
                self._lose(FaultKind.FROZEN, f"no new frame for {self._waited_s:.1f} s.")

    def _lose(self, kind: FaultKind, words: str) -> None:
        """Release a camera that is lost; an outage is one fault, however often opening fails."""
        self._device.close()
        self._is_open = False
        self._state = f"lost: {words}"
        if self._outage is None:
            self._outage = self._note(kind, words)

    def _note(self, kind: FaultKind, words: str, frames: int = 0) -> Fault:
        fault = Fault(kind, time.monotonic(), words, frames)
        self._faults.append(fault)
        self.fault_counts[str(kind)] += 1
        self.lost += frames
        return fault

    def _numbered(self, frame: Frame, missing: int) -> Frame | Refused:
        """Frame with its new number, or the reason why it cannot be used."""
        now_s = time.monotonic()
        step_s = None if self._arrived_s is None else now_s - self._arrived_s
        self._arrived_s, self._waited_s = now_s, 0.0
        if self._outage is not None:
            missing = self._end_outage(self._outage, step_s, now_s)
        else:
            if missing:
                words = f"frames of the camera are missing: {missing}."
                self._note(FaultKind.DROPPED, words, missing)
            if step_s is not None:
                period_s = step_s / (missing + 1)
                before_s = period_s if self._period_s is None else self._period_s
                self._period_s = before_s + (period_s - before_s) / _RATE_FRAMES
        number = self._next_number + missing
        self._next_number = number + 1
        return self._checked(replace(frame, number=number, lost_before=missing))

    def _end_outage(self, outage: Fault, step_s: float | None, now_s: float) -> int:
        """Number of frames that an outage cost, by the frame rate before it."""
        missed = 0
        if self._period_s and step_s is not None:
            missed = max(round(step_s / self._period_s) - 1, 0)
        self.lost += missed
        self._outage = None
        ended = outage._replace(frames=missed, back_s=now_s)
        if outage in self._faults:  # unless it is older than the last 500
            self._faults[self._faults.index(outage)] = ended
        return missed

    def _checked(self, frame: Frame) -> Frame | Refused:
        words = self._format.mismatch(frame) if frame.whole else ""
        self._state = f"refused: {words}" if words else GRABBING
        if words:
            self._note(FaultKind.CHANGED, words, 1)
            return Refused(f"frame {frame.number}", words)
        if not frame.whole:
            self._note(FaultKind.INCOMPLETE, f"frame {frame.number} did not arrive whole.", 1)
        return frame
