"""Whole recordings of recordings that were cut by a crash or a full disk."""

import os
from typing import NamedTuple

from d3s.camera.recording import topics
from d3s.camera.recording.index import McapReader
from d3s.camera.recording.mcap_file import McapFile
from d3s.errors import D3SError, InputError
from d3s.files.raw import path_text
from d3s.types import Progress


class Recovered(NamedTuple):
    """Result of a recovery."""

    messages: int
    frames: int
    damaged: int  # pieces of the file that could not be read
    was_cut: bool  # whether the end of the file was missing


def recover(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Recovered:
    """Write all that can be read of an MCAP file into a new one, with an index."""
    if os.path.realpath(path) == os.path.realpath(output):
        raise InputError(f"{path_text(path)} is the file that is read. Name another to write.")
    reader = McapReader(path)
    index = reader.index
    if not index.chunks:
        reader.close()
        raise InputError(f"{path_text(path)}: nothing was recorded before it was cut.")
    messages = frames = damaged = 0
    try:
        with McapFile(output, overwrite=overwrite) as target:
            for name in index.attachments:
                try:
                    content = reader.attachment(name) or b""
                except D3SError:
                    damaged += 1
                else:
                    target.attach(name, "application/octet-stream", content)
            for name, values in index.notes.items():
                target.note(name, values)
            for topic in index.topics.values():
                target.add_topic(topic.name, topic.schema, topic.definition)
            for number, chunk in enumerate(index.chunks):
                try:
                    found = reader.messages(chunk)
                except D3SError:
                    damaged += 1
                    found = []
                for one in found:
                    target.write(one.topic, one.data, one.time_ns)
                target.flush()
                messages += len(found)
                frames += sum(one.topic == topics.FRAME for one in found)
                if progress is not None:
                    progress(number + 1, len(index.chunks))
    finally:
        reader.close()
    return Recovered(messages, frames, damaged, index.is_cut)
