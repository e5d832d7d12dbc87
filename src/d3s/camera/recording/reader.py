"""Recordings as sources of frames, also if they were cut by a crash."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from d3s.camera.recording import topics
from d3s.camera.recording.mcap_reader import McapReader, RawMessage, image_of, text_of
from d3s.errors import D3SError, InputError
from d3s.files.raw import cut_short, named, path_text
from d3s.frames.frame import Frame, Refused
from d3s.rig import Rig
from d3s.types import Image


class RecordedDepth(NamedTuple):
    """Depth of a frame, as it was recorded."""

    depth_m: Image
    sigma_m: Image | None


class Recording:
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
        self._frames = self._reader.chunks_of(topics.FRAME)
        if not self._frames:
            names = sorted(self._reader.topics)
            self.close()
            raise InputError(
                f"{path_text(path)}: has no frames that d3s has recorded, but "
                f"{', '.join(names) or 'nothing'}. d3s convert makes a recording of a ROS 2 bag."
            )
        self._depths = dict(self._reader.chunks_of(topics.DEPTH))

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
        return self._reader.notes.get(topics.NOTES_NAME, {})

    @property
    def times_s(self) -> tuple[float, ...]:
        """Times of all frames in seconds, from the first on."""
        first = self._frames[0][0]
        return tuple((time - first) / 1e9 for time, _ in self._frames)

    def rig(self) -> Rig | None:
        """Rig that is attached; None if there is none.

        Raises an `InputError` when it cannot be read.
        """
        with named(self.path):
            content = self._reader.attachment(topics.RIG_NAME)
            try:
                return None if content is None else Rig.from_text(content.decode())
            except (D3SError, UnicodeDecodeError) as error:
                raise InputError(f"has a rig that cannot be read: {error}") from error

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
        with named(self.path):
            found = self._messages(chunk, time, topics.FRAME)
            return replace(_frame(found), name=f"{place:06d}")

    def depth(self, place: int) -> RecordedDepth | None:
        """Depth that was recorded with the frame at a place; None if there is none.

        Raises an `InputError` when it is damaged.
        """
        time, _ = self._frames[place]
        chunk = self._depths.get(time)
        if chunk is None:
            return None
        with named(self.path):
            found = self._messages(chunk, time, topics.DEPTH)
            sigma = found.get(topics.SIGMA)
            return RecordedDepth(
                _floats(found[topics.DEPTH]), None if sigma is None else _floats(sigma)
            )

    def dropped(self) -> int:
        """Frames that the recorder had to drop; of a file that was cut, as its frames say it.

        Raises an `InputError` when the facts of a frame are damaged.
        """
        sums = self._reader.notes.get(topics.END_NAME, {})
        if sums.get("dropped", "").isdecimal():
            return int(sums["dropped"])
        facts = [
            _json(self._messages(chunk, time, topics.FRAME)[topics.FRAME])
            for time, chunk in self._frames
        ]
        return sum(int(one.get("dropped_before", 0)) for one in facts)

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        self._reader.close()

    def __enter__(self) -> Self:
        """Return the recording itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def _messages(self, chunk: int, time: int, topic: str) -> dict[str, RawMessage]:
        """Messages of one time in a chunk, by topic; one of them must be there."""
        messages = self._reader.messages(chunk)
        found = {one.topic: one for one in messages if one.time_ns == time}
        if topic not in found:
            raise cut_short(f"has no message of {topic} where its index says")
        return found


def _frame(messages: dict[str, RawMessage]) -> Frame:
    facts = _json(messages[topics.FRAME])
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
    if topics.RAW in messages:
        image = image_of(messages[topics.RAW].data).pixels
        if image.dtype.kind == "f":
            return Frame(raw=image.astype(np.float32), **known)
        native = image.astype(image.dtype.newbyteorder("="))
        return Frame(counts=native, full_scale=int(facts.get("full_scale", 0)), **known)
    if topics.LEFT in messages and topics.RIGHT in messages:
        views = _floats(messages[topics.LEFT]), _floats(messages[topics.RIGHT])
        return Frame(views=views, **known)
    raise InputError(f"frame {known['number']} has no image.")


def _floats(message: RawMessage) -> Image:
    return image_of(message.data).pixels.astype(np.float32)  # a copy: writable, aligned


def _json(message: RawMessage) -> dict[str, Any]:
    try:
        found = json.loads(text_of(message.data))
    except ValueError as error:
        raise InputError(f"the facts of a frame cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise InputError("the facts of a frame are no table.")
    return found


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Facts of an MCAP file; more if d3s has recorded it."""
    reader = McapReader(path)
    reader.close()
    times = [time for _, time, _ in reader.places]
    facts: dict[str, Any] = {
        "format": "MCAP",
        "is_cut": reader.is_cut,
        "seconds": (max(times) - min(times)) / 1e9 if times else 0.0,
        "topics": {
            topic: f"{reader.counts[topic]} of {schema or 'no type'}"
            for topic, (schema, _) in sorted(reader.topics.items())
        },
        "attachments": sorted(reader.attachments),
    }
    if topics.FRAME not in reader.counts:
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
