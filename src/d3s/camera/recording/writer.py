"""Recordings, written: frames without loss, the rig, and depth on request."""

import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from d3s.camera.recording import topics
from d3s.camera.recording.mcap_file import Channels, McapFile
from d3s.errors import D3SError
from d3s.files import ros
from d3s.files.depth_image import DepthImage, check_camera, middle_px
from d3s.files.ros import FRAME_ID, Message
from d3s.frames.frame import Frame, Refused
from d3s.rig import Rig

_SENSOR_ID = "d3s_sensor"


class RecordingWriter:
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
        self._file = McapFile(path, overwrite=overwrite)
        self._rig = rig
        self._start_ns = time.time_ns() - round(1e9 * time.monotonic())  # of time.monotonic
        self._last_ns = 0
        self._times_ns: dict[int, int] = {}  # of frames, by number
        self._is_closed = False
        self.frames = 0
        self.dropped = 0
        if rig is not None:
            content = rig.to_text().encode()
            self._file.attach(topics.RIG_NAME, "application/toml", content, time.time_ns())
        if notes:
            self._file.note(topics.NOTES_NAME, dict(notes))
        self._file.flush()

    def write(self, frame: Frame, *, dropped_before: int = 0) -> None:
        """Write a frame.

        Raises an `OutputError` when it cannot be written. What was written before stays.
        """
        time_ns = self._time_ns(frame.time_s)
        self._times_ns[frame.number] = time_ns
        send(self._file, topics.FRAME, {"data": _facts(frame, dropped_before)}, time_ns)
        send_images(self._file, frame, self._rig, time_ns)
        self._file.flush()
        self.frames += 1
        self.dropped += dropped_before

    def write_depth(self, image: DepthImage, number: int) -> None:
        """Write depth and sigma in metres as 32FC1, and the camera of the left view.

        Raises an `OutputError` when it cannot be written. What was written before stays.
        """
        time_ns = self._times_ns.get(number) or self._time_ns(None)
        send_depth(self._file, image, time_ns)
        self._file.flush()

    def refuse(self, refused: Refused) -> None:
        """Write that a frame was refused, and why."""
        values = {"refused": refused.name, "reason": refused.reason}
        send(self._file, topics.NOTE, {"data": json.dumps(values)}, self._time_ns(None))
        self._file.flush()

    def close(self, *, dropped_after: int = 0) -> None:
        """Write the index, and close the file. Closing twice is fine.

        Raises an `OutputError` when that cannot be written: the file can still be read.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self.dropped += dropped_after
        sums = {"frames": str(self.frames), "dropped": str(self.dropped)}
        self._file.note(topics.END_NAME, sums)
        self._file.close()

    def __enter__(self) -> Self:
        """Return the writer itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def _time_ns(self, time_s: float | None) -> int:
        """Time since 1970 of a time of `time.monotonic`; no two are the same."""
        monotonic_s = time.monotonic() if time_s is None else time_s
        time_ns = self._start_ns + round(1e9 * monotonic_s)
        self._last_ns = max(time_ns, self._last_ns + 1, 1)
        return self._last_ns


def send(to: Channels, topic: str, message: Message, time_ns: int) -> None:
    """Write a message of a topic."""
    to.write(topic, ros.cdr(topics.SCHEMAS[topic], message), time_ns)


def send_images(to: Channels, frame: Frame, rig: Rig | None, time_ns: int) -> None:
    """Write the raw frame, or both views, each with its camera if the rig is known."""
    head = ros.header_ns(time_ns, FRAME_ID)
    if frame.views is not None:
        for topic, view in zip((topics.LEFT, topics.RIGHT), frame.views, strict=True):
            send(to, topic, ros.image_32fc1(view, head), time_ns)
        if rig is not None:
            optics = rig.optics
            x, y = rig.principal_point_px or middle_px(frame.shape)
            other = x - optics.disparity_offset_px, y
            for topic, centre_px, baseline_m in (
                (topics.LEFT_CAMERA, (x, y), 0.0),
                (topics.RIGHT_CAMERA, other, optics.baseline_m),
            ):
                info = ros.pinhole_info(
                    frame.shape, optics.focal_length_px, centre_px, head, baseline_m=baseline_m
                )
                send(to, topic, info, time_ns)
        return
    head = ros.header_ns(time_ns, _SENSOR_ID)
    calibration = None if rig is None else rig.calibration
    if frame.counts is None:
        image = ros.image_32fc1(frame.light(), head)
    else:
        bayer = None if calibration is None else calibration.bayer
        image = ros.image_of_counts(frame.counts, head, bayer)
    send(to, topics.RAW, image, time_ns)
    if rig is not None:  # of the left lens, which sees one half of the sensor
        centre = None if calibration is None else calibration.anchor_left_px
        info = ros.pinhole_info(frame.shape, rig.optics.focal_length_px, centre, head)
        send(to, topics.RAW_CAMERA, info, time_ns)


def send_depth(to: Channels, image: DepthImage, time_ns: int) -> None:
    """Write depth, sigma, disparity if the baseline is known, and the camera of the left view."""
    head = ros.header_ns(time_ns, FRAME_ID)
    send(to, topics.DEPTH, ros.image_32fc1(image.depth_m, head), time_ns)
    if image.sigma_m is not None:
        send(to, topics.SIGMA, ros.image_32fc1(image.sigma_m, head), time_ns)
    if image.baseline_m is not None:
        found = ros.disparity_image(image.depth_m, check_camera(image), image.baseline_m, head)
        send(to, topics.DISPARITIES, found, time_ns)
    send(to, topics.DEPTH_CAMERA, ros.camera_info(image, head), time_ns)


def _facts(frame: Frame, dropped_before: int) -> str:
    values: dict[str, Any] = {
        "number": frame.number,
        "full_scale": frame.full_scale,
        "time_s": frame.time_s,
        "camera_time_s": frame.camera_time_s,
        "lost_before": frame.lost_before,
        "dropped_before": dropped_before,
        "whole": frame.whole,
        "remarks": frame.remarks,
        "warnings": frame.warnings,
    }
    return json.dumps(values)


_QUEUE_BYTES = 256_000_000
_LEAST_FRAMES = 2
_QUEUE_ITEMS = 4096


class _Numbered(NamedTuple):
    frame: Frame
    dropped_before: int


class Recorder:
    """Recording of live frames, which drops frames rather than delay the camera, and counts them.

    Parameters
    ----------
    path
        The file to write.
    rig
        The camera, which becomes an attachment.
    notes
        Texts on the whole recording.
    overwrite
        Whether a file may be replaced.
    queue_bytes
        Size of the images that may wait to be written; two frames always may.

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
        queue_bytes: int = _QUEUE_BYTES,
    ) -> None:
        self.path = Path(path)
        self._writer = RecordingWriter(path, rig=rig, notes=notes, overwrite=overwrite)
        self._queue: queue.Queue[_Numbered | Refused | None] = queue.Queue(_QUEUE_ITEMS)
        self._most_bytes = queue_bytes
        self._lock = threading.Condition()
        self._waiting_bytes = self._waiting = 0
        self._dropped = self._dropped_since = 0
        self._error: D3SError | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="d3s recorder", daemon=True)
        self._thread.start()

    @property
    def written(self) -> int:
        """Frames in the file."""
        return self._writer.frames

    @property
    def dropped(self) -> int:
        """Frames that were not recorded, since the disk was too slow, or has failed."""
        return self._dropped

    @property
    def error(self) -> D3SError | None:
        """Error that ended the recording, such as a full disk."""
        return self._error

    @property
    def state(self) -> str:
        """State for people: "recording", "closed", or "failed: " and the reason."""
        if self._error is not None:
            return f"failed: {self._error}"
        return "closed" if self._is_closed else "recording"

    def put(self, frame: Frame, *, wait: bool = False) -> bool:
        """Hand over a frame, whose pixels must not change any more; False if it was dropped."""
        size = _size(frame)
        with self._lock:
            while wait and self._error is None and not self._has_room(size):
                self._lock.wait(0.1)
            if self._is_closed or self._error is not None or not self._has_room(size):
                self._dropped += 1
                self._dropped_since += 1
                return False
            self._queue.put(_Numbered(frame, self._dropped_since))
            self._dropped_since = 0
            self._waiting += 1
            self._waiting_bytes += size
        return True

    def refuse(self, refused: Refused) -> None:
        """Record that a frame was refused, and why."""
        with self._lock:
            if not self._is_closed and self._error is None and self._has_room(0):
                self._queue.put(refused)

    def close(self) -> None:
        """Write what waits, and end the file. Closing twice is fine.

        Raises an `OutputError` when the recording has failed: what was written before stays in the
        file.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        """Return the recorder itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the recording."""
        self.close()

    def _has_room(self, size: int) -> bool:
        if self._queue.qsize() >= _QUEUE_ITEMS - 1:
            return False
        return self._waiting < _LEAST_FRAMES or self._waiting_bytes + size <= self._most_bytes

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if self._error is None:
                    self._write(item)
                elif isinstance(item, _Numbered):
                    self._dropped += 1
            except D3SError as error:
                self._error = error
                self._dropped += isinstance(item, _Numbered)
            if isinstance(item, _Numbered):
                with self._lock:
                    self._waiting -= 1
                    self._waiting_bytes -= _size(item.frame)
                    self._lock.notify_all()
        try:
            self._writer.close(dropped_after=self._dropped_since)
        except D3SError as error:
            self._error = self._error or error

    def _write(self, item: _Numbered | Refused) -> None:
        if isinstance(item, _Numbered):
            self._writer.write(item.frame, dropped_before=item.dropped_before)
        else:
            self._writer.refuse(item)


def _size(frame: Frame) -> int:
    images = frame.views or (frame.raw, frame.counts)
    return sum(one.nbytes for one in images if one is not None)
