"""Recorder: frames go to a file in a thread of their own, and nobody waits for the disk."""

import os
import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from d3s.camera.recording.writer import RecordingWriter
from d3s.errors import D3SError
from d3s.files.depth_image import DepthImage
from d3s.frames.frame import Frame, Refused
from d3s.rig import Rig

_QUEUE_BYTES = 256_000_000
_LEAST_FRAMES = 2
_QUEUE_ITEMS = 4096


class _Depth(NamedTuple):
    image: DepthImage
    number: int


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
        self._queue: queue.Queue[_Numbered | _Depth | Refused | None] = queue.Queue(_QUEUE_ITEMS)
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
        """Hand over a frame, whose pixels must not change any more; False if it was dropped.

        Parameters
        ----------
        frame
            The frame.
        wait
            Whether to wait for room instead of dropping the frame, as files can.
        """
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

    def put_depth(self, image: DepthImage, number: int) -> bool:
        """Hand over the depth of the frame of a number; False if it was dropped."""
        with self._lock:
            if self._is_closed or self._error is not None or not self._has_room(0):
                return False
            self._queue.put(_Depth(image, number))
        return True

    def refuse(self, refused: Refused) -> None:
        """Record that a frame was refused, and why."""
        with self._lock:
            if not self._is_closed and self._error is None and self._has_room(0):
                self._queue.put(refused)

    def close(self) -> None:
        """Write what waits, and end the file. Closing twice is fine.

        Raises
        ------
        OutputError
            When the recording has failed: what was written before stays in the file.
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

    def _write(self, item: _Numbered | _Depth | Refused) -> None:
        if isinstance(item, _Numbered):
            self._writer.write(item.frame, dropped_before=item.dropped_before)
        elif isinstance(item, _Depth):
            self._writer.write_depth(item.image, item.number)
        else:
            self._writer.refuse(item)


def _size(frame: Frame) -> int:
    images = frame.views or (frame.raw, frame.counts)
    return sum(one.nbytes for one in images if one is not None)
