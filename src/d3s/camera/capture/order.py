"""Order and format of the frames of a camera: which are new, and like the others."""

from typing import Any, NamedTuple

from d3s.frames.frame import Frame
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


class FrameFormat(NamedTuple):
    """Size and full scale of frames; None where anything is right."""

    shape: tuple[int, int] | None = None
    full_scale: int | None = None
    is_of_rig: bool = False

    @classmethod
    def of_rig(cls, rig: Any) -> "FrameFormat":
        """Format of the raw frames of a rig, as far as it is known."""
        calibration = rig.calibration if isinstance(rig, Rig) else None
        if calibration is None or calibration.frame_rows_px is None:
            return cls()
        rows, cols = calibration.frame_rows_px, calibration.frame_cols_px
        return cls((rows, cols or 0), is_of_rig=True)

    def completed_by(self, frame: Frame) -> "FrameFormat":
        """Format with what was open taken from the first frame."""
        shape, full_scale = self.shape, self.full_scale
        if frame.views is not None and self.is_of_rig:
            shape = None  # the calibrated size is that of raw frames
        return self._replace(
            shape=frame.shape if shape is None else shape,
            full_scale=frame.full_scale if full_scale is None else full_scale,
            is_of_rig=self.is_of_rig and shape is not None,
        )

    def mismatch(self, frame: Frame) -> str:
        """Sentence on what a frame has another of, with the remedy; empty if it is alike."""
        if self.shape is not None and frame.shape != self.shape:
            rows, cols = self.shape
            known = "the rig was calibrated for" if self.is_of_rig else "the first one has"
            return (
                f"a frame has {frame.shape[0]} x {frame.shape[1]} px (rows x columns), and {known} "
                f"{rows} x {cols} px. Set the camera to whole frames, without binning."
            )
        if self.full_scale is not None and frame.full_scale != self.full_scale:
            return (
                f"a frame has the full scale {frame.full_scale}, and the first one has "
                f"{self.full_scale}: the camera has changed its pixel format. Set it back."
            )
        return ""
