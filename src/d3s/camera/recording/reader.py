"""Recordings as sources of frames, also if they were cut by a crash."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.camera.recording import mcap
from d3s.camera.recording.mcap import McapReader, RawMessage
from d3s.errors import D3SError, InputError
from d3s.files import ros
from d3s.files.raw import cut_short, decoded_as, named, path_text
from d3s.frames.frame import Frame, Refused, Source
from d3s.rig import Rig
from d3s.types import Image


class RecordedDepth(NamedTuple):
    """Depth of a frame, as it was recorded."""

    depth_m: Image
    sigma_m: Image | None


class Recording(Source):
    """Frames of a recording: a `Source`, of which each frame can be read by its place too.

    Parameters
    ----------
    path
        The MCAP file; one that was cut is read as far as it goes.

    Raises
    ------
    InputError
        When it cannot be read, or has no frames.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._reader = McapReader(path)
        self.path = Path(os.fsdecode(path))
        self._frames = self._reader.chunks_of(mcap.FRAME)
        if not self._frames:
            names = sorted(self._reader.topics)
            self.close()
            raise InputError(
                f"{path_text(path)}: has no frames that d3s has recorded, but "
                f"{', '.join(names) or 'nothing'}. d3s convert makes a recording of a ROS 2 bag."
            )
        self._depths = dict(self._reader.chunks_of(mcap.DEPTH))

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        return len(self._frames)

    @property
    def is_cut(self) -> bool:
        """Whether the end of the file is missing; `d3s recover` mends it."""
        return self._reader.is_cut

    @property
    def notes(self) -> dict[str, str]:
        """Texts on the whole recording."""
        return self._reader.notes.get(mcap.NOTES_NAME, {})

    @property
    def times_s(self) -> tuple[float, ...]:
        """Times of all frames in seconds, from the first on."""
        first = self._frames[0][0]
        return tuple((time - first) / 1e9 for time, _ in self._frames)

    def rig(self) -> Rig | None:
        """Rig that is attached; None if there is none.

        Raises an `InputError` when it cannot be read.
        """
        content = self._reader.attachment(mcap.RIG_NAME)
        try:
            return None if content is None else Rig.from_text(content.decode())
        except (D3SError, UnicodeDecodeError) as error:
            words = f"{path_text(self.path)}: has a rig that cannot be read: {error}"
            raise InputError(words) from error

    def __iter__(self) -> Iterator[Frame | Refused]:
        """Frames in the order of the file; a damaged one is refused, and the next one follows."""
        for place in range(len(self._frames)):
            outcome: Frame | Refused
            try:
                outcome = self.frame(place)
            except D3SError as error:
                outcome = Refused(f"{path_text(self.path)} frame {place}", str(error))
            yield outcome

    def frame(self, place: int) -> Frame:
        """Frame at a place, from 0.

        Raises an `InputError` when there is none, or it is damaged.
        """
        if not 0 <= place < len(self._frames):
            raise InputError(f"place={place} must be 0 to {len(self._frames) - 1}.")
        time, chunk = self._frames[place]
        found = self._messages(chunk, time, mcap.FRAME)
        with named(self.path):
            return replace(_frame(found), name=f"{place:06d}")

    def depth(self, place: int) -> RecordedDepth | None:
        """Depth that was recorded with the frame at a place; None if there is none.

        Raises an `InputError` when it is damaged.
        """
        time, _ = self._frames[place]
        chunk = self._depths.get(time)
        if chunk is None:
            return None
        found = self._messages(chunk, time, mcap.DEPTH)
        with named(self.path):
            sigma = found.get(mcap.SIGMA)
            return RecordedDepth(
                _floats(found[mcap.DEPTH]), None if sigma is None else _floats(sigma)
            )

    def dropped(self) -> int:
        """Frames that the recorder had to drop; of a file that was cut, as its frames say it.

        Raises an `InputError` when the facts of a frame are damaged.
        """
        sums = self._reader.notes.get(mcap.END_NAME, {})
        if sums.get("dropped", "").isdecimal():
            return int(sums["dropped"])
        facts = [
            _facts(self._messages(chunk, time, mcap.FRAME)[mcap.FRAME])
            for time, chunk in self._frames
        ]
        return sum(int(one.get("dropped_before", 0)) for one in facts)

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        self._reader.close()

    def _messages(self, chunk: int, time: int, topic: str) -> dict[str, RawMessage]:
        """Messages of one time in a chunk, by topic; one of them must be there."""
        messages = self._reader.messages(chunk)
        found = {one.topic: one for one in messages if one.time_ns == time}
        if topic not in found:
            words = f"{path_text(self.path)}: has no message of {topic} where its index says"
            raise cut_short(words)
        return found


def rig_of(recording: Recording, rig: Rig | None = None) -> Rig:
    """Rig that was given, or that of the recording."""
    found = rig or recording.rig()
    if found is None:
        raise InputError(
            f"{path_text(recording.path)}: has no rig attached. Give the camera with --rig, or "
            "rig in Python."
        )
    return found


def _frame(messages: dict[str, RawMessage]) -> Frame:
    facts = _facts(messages[mcap.FRAME])
    try:
        known: dict[str, Any] = {
            "number": int(facts["number"]),
            "time_s": facts.get("time_s"),
            "camera_time_s": facts.get("camera_time_s"),
            "lost_before": int(facts.get("lost_before", 0)) + int(facts.get("dropped_before", 0)),
            "whole": bool(facts.get("whole", True)),
            "remarks": tuple(facts.get("remarks", ())),
            "warnings": tuple(facts.get("warnings", ())),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a frame has no usable number or times: {error}.") from error
    if mcap.RAW in messages:
        image = image_of(messages[mcap.RAW].data).pixels
        if image.dtype.kind == "f":
            return Frame(raw=image.astype(np.float32), **known)
        native = image.astype(image.dtype.newbyteorder("="))
        return Frame(counts=native, full_scale=int(facts.get("full_scale", 0)), **known)
    if mcap.LEFT in messages and mcap.RIGHT in messages:
        views = _floats(messages[mcap.LEFT]), _floats(messages[mcap.RIGHT])
        return Frame(views=views, **known)
    raise InputError(f"frame {known['number']} has no image.")


class ImageMessage(NamedTuple):
    """Content of a `sensor_msgs/Image`."""

    pixels: NDArray[Any]  # (rows, cols), or (rows, cols, 3) in the order of the encoding
    encoding: str
    time_ns: int


def image_of(data: bytes) -> ImageMessage:
    """Content of a `sensor_msgs/Image`; the pixels are a view into `data`."""
    with decoded_as("an image of ROS 2"):
        found = ros.types().deserialize_cdr(data, ros.IMAGE)
    stamp = found.header.stamp
    return ImageMessage(ros.pixels_of(found), found.encoding, 10**9 * stamp.sec + stamp.nanosec)


def _floats(message: RawMessage) -> Image:
    return image_of(message.data).pixels.astype(np.float32)  # a copy: writable, aligned


def _facts(message: RawMessage) -> dict[str, Any]:
    with decoded_as("the facts of a frame"):
        return dict(json.loads(ros.types().deserialize_cdr(message.data, mcap.STRING).data))


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts of an MCAP file; more if d3s has recorded it."""
    reader = McapReader(path)
    reader.close()
    times = [time for found in reader.chunks.values() for _, time in found]
    counts = reader.counts
    facts: dict[str, Any] = {
        "format": "MCAP",
        "is_cut": reader.is_cut,
        "seconds": (max(times) - min(times)) / 1e9 if times else 0.0,
        "topics": {
            topic: f"{counts[topic]} of {schema or 'no type'}"
            for topic, (schema, _) in sorted(reader.topics.items())
        },
        "attachments": sorted(reader.attachments),
    }
    if mcap.FRAME not in counts:
        return facts
    with Recording(path) as recording:
        facts |= {"frames": recording.frame_count, **recording.notes}
        try:
            first = recording.frame(0)
            facts |= {
                "rows": first.shape[0],
                "cols": first.shape[1],
                "dropped": recording.dropped(),
            }
            if first.counts is not None:
                facts["full_scale"] = first.full_scale
            rig = recording.rig()
            facts["rig"] = None if rig is None else rig.name
        except D3SError as error:
            facts["damaged"] = str(error)
    return facts
