"""Recordings, written: frames without loss, the rig, and depth on request."""

import json
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self

from d3s.camera.recording import mcap
from d3s.camera.recording.mcap import Channels, McapFile
from d3s.errors import D3SError, OutputError
from d3s.files import ros
from d3s.files.depth_image import DepthImage, check_camera, middle_px
from d3s.frames.frame import Frame, Refused
from d3s.rig import Rig

_SENSOR_ID = "d3s_sensor"
_FACTS = (
    *("number", "full_scale", "time_s", "camera_time_s", "lost_before", "whole"),
    *("remarks", "warnings"),
)


class RecordingWriter(McapFile):
    """Recording that is written, frame after frame; each is on its way to the disk at once.

    Raw frames become `sensor_msgs/Image` on `/camera/image_raw`, pairs on `/left/image_rect` and
    `/right/image_rect`, bit for bit. `Recorder` does the same in a thread of its own.

    Parameters
    ----------
    path
        The file to write.
    rig
        The camera, which becomes an attachment.
    notes
        Texts on the whole recording, such as the name of the camera.
    overwrite
        Whether a file may be replaced.

    Raises
    ------
    InputError
        When a package is missing.
    OutputError
        When the file cannot be written, or is there already.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rig: Rig | None = None,
        notes: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        super().__init__(path, overwrite=overwrite)
        self._rig = rig
        self._start_ns = time.time_ns() - round(1e9 * time.monotonic())  # of time.monotonic
        self._last_ns = 0
        self._last = -1, 0  # number and time of the last frame
        self.frames = 0
        self.dropped = 0
        if rig is not None:
            content = rig.to_text().encode()
            self.attach(mcap.RIG_NAME, "application/toml", content, time.time_ns())
        if notes:
            self.note(mcap.NOTES_NAME, dict(notes))
        self.flush()

    def write(self, frame: Frame, *, dropped_before: int = 0) -> None:
        """Write a frame.

        Raises an `OutputError` when it cannot be written. What was written before stays.
        """
        time_ns = self._time_ns(frame.time_s)
        self._last = frame.number, time_ns
        facts = {name: getattr(frame, name) for name in _FACTS}
        facts["dropped_before"] = dropped_before
        self.send(mcap.FRAME, {"data": json.dumps(facts)}, time_ns)
        send_images(self, frame, self._rig, time_ns)
        self.flush()
        self.frames += 1
        self.dropped += dropped_before

    def write_depth(self, image: DepthImage, number: int) -> None:
        """Write depth and sigma of the last frame in metres as 32FC1, and the left camera.

        Raises an `OutputError` when it cannot be written. What was written before stays.
        """
        last, time_ns = self._last
        send_depth(self, image, time_ns if last == number else self._time_ns(None))
        self.flush()

    def refuse(self, refused: Refused) -> None:
        """Write that a frame was refused, and why."""
        values = {"refused": refused.name, "reason": refused.reason}
        self.send(mcap.NOTE, {"data": json.dumps(values)}, self._time_ns(None))
        self.flush()

    def close(self, *, dropped_after: int = 0) -> None:
        """Write the index, and close the file. Closing twice is fine.

        Raises an `OutputError` when that cannot be written: the file can still be read.
        """
        if self.is_closed:
            return
        self.dropped += dropped_after
        sums = {"frames": str(self.frames), "dropped": str(self.dropped)}
        self.note(mcap.END_NAME, sums)
        super().close()

    def _time_ns(self, time_s: float | None) -> int:
        """Time since 1970 of a time of `time.monotonic`; no two are the same."""
        monotonic_s = time.monotonic() if time_s is None else time_s
        time_ns = self._start_ns + round(1e9 * monotonic_s)
        self._last_ns = max(time_ns, self._last_ns + 1, 1)
        return self._last_ns


def send_images(to: Channels, frame: Frame, rig: Rig | None, time_ns: int) -> None:
    """Write the raw frame, or both views, each with its camera if the rig is known."""
    head = ros.header_ns(time_ns, ros.FRAME_ID if frame.views is not None else _SENSOR_ID)
    calibration = None if rig is None else rig.calibration
    if frame.views is not None:
        for topic, view in zip((mcap.LEFT, mcap.RIGHT), frame.views, strict=True):
            to.send(topic, ros.image_32fc1(view, head), time_ns)
    elif frame.counts is None:
        to.send(mcap.RAW, ros.image_32fc1(frame.light(), head), time_ns)
    else:
        bayer = None if calibration is None else calibration.bayer
        to.send(mcap.RAW, ros.image_of_counts(frame.counts, head, bayer), time_ns)
    if rig is None:
        return
    optics = rig.optics
    cameras: tuple[tuple[str, tuple[float, float] | None, float], ...]
    if frame.views is None:  # of the left lens, which sees one half of the sensor
        centre = None if calibration is None else calibration.anchor_left_px
        cameras = ((mcap.RAW_CAMERA, centre, 0.0),)
    else:
        x, y = rig.principal_point_px or middle_px(frame.shape)
        right = x - optics.disparity_offset_px, y
        cameras = (mcap.LEFT_CAMERA, (x, y), 0.0), (mcap.RIGHT_CAMERA, right, optics.baseline_m)
    for topic, centre, baseline_m in cameras:
        info = ros.pinhole_info(
            frame.shape, optics.focal_length_px, centre, head, baseline_m=baseline_m
        )
        to.send(topic, info, time_ns)


def send_depth(to: Channels, image: DepthImage, time_ns: int) -> None:
    """Write depth, sigma, disparity if the baseline is known, and the camera of the left view."""
    head = ros.header_ns(time_ns, ros.FRAME_ID)
    to.send(mcap.DEPTH, ros.image_32fc1(image.depth_m, head), time_ns)
    if image.sigma_m is not None:
        to.send(mcap.SIGMA, ros.image_32fc1(image.sigma_m, head), time_ns)
    if image.baseline_m is not None:
        found = ros.disparity_image(image.depth_m, check_camera(image), image.baseline_m, head)
        to.send(mcap.DISPARITIES, found, time_ns)
    to.send(mcap.DEPTH_CAMERA, ros.camera_info(image, head), time_ns)


_QUEUE_BYTES = 256_000_000
_LEAST_FRAMES, _MOST_ITEMS = 2, 4096


class Recorder:
    """Recording of live frames, which drops frames rather than delay the camera, and counts them.

    Parameters
    ----------
    path, rig, notes, overwrite
        As of `RecordingWriter`, with its errors.
    queue_bytes
        Size of the images that may wait to be written; two frames always may.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rig: Rig | None = None,
        notes: Mapping[str, str] | None = None,
        overwrite: bool = False,
        queue_bytes: int = _QUEUE_BYTES,
    ) -> None:
        self.path = Path(path)
        self.dropped = 0  # frames not recorded, since the disk was too slow, or has failed
        self.error: D3SError | None = None  # that ended the recording, such as a full disk
        self._writer = RecordingWriter(path, rig=rig, notes=notes, overwrite=overwrite)
        self._most_bytes = queue_bytes
        self._lock = threading.Condition()
        self._waiting_bytes = self._waiting = self._dropped_since = 0
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, "d3s recorder")

    @property
    def written(self) -> int:
        """Frames in the file."""
        return self._writer.frames

    @property
    def state(self) -> str:
        """State for people: "recording", "closed", or "failed: " and the reason."""
        if self.error is not None:
            return f"failed: {self.error}"
        return "closed" if self._is_closed else "recording"

    def put(self, frame: Frame, *, wait: bool = False) -> bool:
        """Hand over a frame, whose pixels must not change any more; False if it was dropped."""
        images = frame.views or (frame.raw, frame.counts)
        size = sum(one.nbytes for one in images if one is not None)
        with self._lock:
            if wait:
                self._lock.wait_for(lambda: self.error is not None or self._has_room(size))
            if self._is_closed or self.error is not None or not self._has_room(size):
                self.dropped += 1
                self._dropped_since += 1
                return False
            self._submit(frame, size, self._dropped_since)
            self._dropped_since = 0
        return True

    def refuse(self, refused: Refused) -> None:
        """Record that a frame was refused, and why."""
        with self._lock:
            if not self._is_closed and self.error is None and self._has_room(0):
                self._submit(refused, 0, 0)

    def close(self) -> None:
        """Write what waits, and end the file. Closing twice is fine.

        Raises an `OutputError` when the recording has failed: what was written before stays in the
        file.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._thread.shutdown()
        try:
            self._writer.close(dropped_after=self._dropped_since)
        except D3SError as error:
            self.error = self.error or error
        if self.error is not None:
            raise self.error

    def __enter__(self) -> Self:
        """Return the recorder itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the recording."""
        self.close()

    def _has_room(self, size: int) -> bool:
        if self._waiting < _LEAST_FRAMES:
            return True
        return self._waiting < _MOST_ITEMS and self._waiting_bytes + size <= self._most_bytes

    def _submit(self, item: Frame | Refused, size: int, dropped: int) -> None:
        self._waiting += 1
        self._waiting_bytes += size
        work = self._thread.submit(self._write, item, dropped)
        work.add_done_callback(partial(self._end, isinstance(item, Frame), size))

    def _write(self, item: Frame | Refused, dropped: int) -> None:
        """Write an item in the thread; after a failure, those that wait are dropped."""
        if self.error is not None:
            raise self.error
        if isinstance(item, Refused):
            self._writer.refuse(item)
        else:
            self._writer.write(item, dropped_before=dropped)

    def _end(self, is_frame: bool, size: int, work: Future[None]) -> None:
        error = work.exception()
        with self._lock:
            if error is not None:
                words = f"{self.path} cannot be written further: {error!r}. Start another."
                self.error = error if isinstance(error, D3SError) else OutputError(words)
                self.dropped += is_frame
            self._waiting -= 1
            self._waiting_bytes -= size
            self._lock.notify_all()
