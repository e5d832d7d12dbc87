"""Recordings to ROS 2 bags, and back, by `rosbags`.

A bag is a folder with `metadata.yaml`. Messages are copied as they are. A bag that d3s has not
made becomes a recording by its images: one topic has raw frames, or two have the left and right
view.
"""

import importlib.util
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from d3s.camera.recording import topics
from d3s.camera.recording.cdr import IMAGE, ImageMessage, decode_image
from d3s.camera.recording.index import McapReader
from d3s.camera.recording.mcap_file import McapFile
from d3s.camera.recording.topics import RIG_NAME
from d3s.camera.recording.writer import RecordingWriter
from d3s.errors import InputError, OutputError
from d3s.files.light import light_of, samples_of
from d3s.files.raw import path_text
from d3s.frames.frame import Frame
from d3s.rig import Rig
from d3s.types import Progress

METADATA = "metadata.yaml"
_VERSION: Literal[9] = 9  # of the metadata: ROS 2 Jazzy and later


def check_installed() -> None:
    """Raise an `InputError` if the package that reads and writes bags is not installed."""
    if importlib.util.find_spec("rosbags") is None:
        raise InputError("ROS 2 bags need the package rosbags: pip install 'd3s[record]'.")


def is_bag(path: Path) -> bool:
    """Whether a folder is a ROS 2 bag."""
    return (path / METADATA).is_file()


def to_bag(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> int:
    """Write the messages of a recording into a ROS 2 bag, and the rig beside them.

    Parameters
    ----------
    path
        The recording.
    folder
        The bag, a folder that is not there yet.
    progress
        Called with (messages done, messages in all).

    Returns
    -------
    int
        Number of messages.

    Raises
    ------
    InputError
        When the recording cannot be read, or a package is missing.
    OutputError
        When the bag cannot be written, or is there already.
    """
    check_installed()
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.rosbag2.errors import WriterError

    reader = McapReader(path)
    target = Path(os.fsdecode(folder))
    written = 0
    try:
        with Writer(target, version=_VERSION, storage_plugin=StoragePlugin.MCAP) as bag:
            connections = _connections(reader, bag)
            total = len(reader.index.places)
            for chunk in reader.index.chunks:
                for one in reader.messages(chunk):
                    if one.topic in connections:
                        bag.write(connections[one.topic], one.time_ns, one.data)
                        written += 1
                if progress is not None:
                    progress(written, total)
        rig = reader.index.attachments.get(RIG_NAME)
        if rig is not None:
            Rig.from_text(rig.decode()).save(target / RIG_NAME)
    except (WriterError, OSError) as error:
        raise OutputError(f"{path_text(target)} cannot be written: {error}") from error
    finally:
        reader.close()
    return written


def _connections(reader: McapReader, bag: Any) -> dict[str, Any]:
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    return {
        topic.name: bag.add_connection(topic.name, topic.schema, typestore=store)
        for topic in reader.index.topics.values()
    }


def from_bag(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    images: tuple[str, ...] = (),
    rig: Rig | None = None,
    full_scale: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write a ROS 2 bag into a recording.

    Parameters
    ----------
    folder
        The bag.
    path
        The recording to write.
    images
        Topic of raw frames, or topics of the left and the right view. If empty, the only topic of
        images, or the two whose names say left and right.
    rig
        The camera; that of `rig.toml` in the bag if None.
    full_scale
        Largest value of the sensor, such as 4095; that of the type of the image if None.
    overwrite
        Whether a file may be replaced.
    progress
        Called with (messages done, messages in all).

    Returns
    -------
    int
        Number of frames.

    Raises
    ------
    InputError
        When the bag cannot be read, or does not say which topics have frames.
    OutputError
        When the recording cannot be written, or is there already.
    """
    check_installed()
    from rosbags.rosbag2 import Reader
    from rosbags.rosbag2.errors import ReaderError

    source = Path(os.fsdecode(folder))
    if rig is None and (source / RIG_NAME).exists():
        rig = Rig.load(source / RIG_NAME)
    try:
        with Reader(source) as bag:
            names = {one.topic for one in bag.connections}
            if topics.FRAME in names and not images:
                return _copied(bag, path, rig, overwrite, progress)
            chosen = _chosen(bag, images, source)
            with RecordingWriter(path, rig=rig, overwrite=overwrite) as target:
                return _frames_of(bag, chosen, target, full_scale, progress)
    except (ReaderError, FileNotFoundError) as error:
        raise InputError(f"{path_text(source)}: is no ROS 2 bag: {error}") from error


def _copied(
    bag: Any,
    path: str | os.PathLike[str],
    rig: Rig | None,
    overwrite: bool,
    progress: Progress | None,
) -> int:
    """Copy the messages of a bag that was made of a recording."""
    frames = 0
    with McapFile(path, overwrite=overwrite) as target:
        if rig is not None:
            target.attach(RIG_NAME, "application/toml", rig.to_text().encode())
        last_ns = None
        for done, (connection, time_ns, data) in enumerate(bag.messages()):
            if connection.topic not in topics.SCHEMAS:
                continue
            if not target.has_topic(connection.topic):
                schema = topics.SCHEMAS[connection.topic]
                target.add_topic(connection.topic, schema, topics.definition(schema))
            if time_ns != last_ns:
                target.flush()
            last_ns = time_ns
            target.write(connection.topic, bytes(data), time_ns)
            frames += connection.topic == topics.FRAME
            if progress is not None:
                progress(done + 1, bag.message_count)
        target.flush()
    return frames


def _chosen(bag: Any, images: tuple[str, ...], source: Path) -> tuple[str, ...]:
    found = sorted({one.topic for one in bag.connections if one.msgtype == IMAGE})
    if images:
        missing = [one for one in images if one not in found]
        if missing or len(images) > 2:
            raise InputError(
                f"{path_text(source)}: {', '.join(missing or images)}: name one or two of its "
                f"topics of images: {', '.join(found) or 'it has none'}."
            )
        return images
    if len(found) == 1:
        return (found[0],)
    left = [one for one in found if "left" in one]
    right = [one.replace("left", "right") for one in left]
    if len(left) == 1 and right[0] in found:
        return left[0], right[0]
    raise InputError(
        f"{path_text(source)}: which topics have frames? Name one, or the left and the right one, "
        f"with --topic: {', '.join(found) or 'it has no images'}."
    )


def _frames_of(
    bag: Any,
    chosen: tuple[str, ...],
    target: RecordingWriter,
    full_scale: int | None,
    progress: Progress | None,
) -> int:
    """Write the images of some topics; views belong together by the time of their headers."""
    waiting: dict[int, dict[str, ImageMessage]] = {}
    frames = 0
    for done, (connection, _, data) in enumerate(bag.messages()):
        if connection.topic in chosen:
            one = decode_image(bytes(data))
            both = waiting.setdefault(one.time_ns, {})
            both[connection.topic] = one
            if len(both) == len(chosen):
                del waiting[one.time_ns]
                images = tuple(both[name] for name in chosen)
                target.write(_frame(images, frames, full_scale))
                frames += 1
        if progress is not None:
            progress(done + 1, bag.message_count)
    if not frames:
        raise InputError(f"no frame of {' and '.join(chosen)} is whole: their times differ.")
    return frames


def _frame(images: tuple[ImageMessage, ...], number: int, full_scale: int | None) -> Frame:
    time_s = images[0].time_ns / 1e9
    if len(images) == 2:
        left, right = (_grey(one, full_scale) for one in images)
        return Frame(number=number, views=(left, right), camera_time_s=time_s)
    pixels = images[0].pixels
    if pixels.ndim == 2 and pixels.dtype.kind == "u":
        native = pixels.astype(pixels.dtype.newbyteorder("="))
        scale = full_scale or int(np.iinfo(native.dtype).max)
        return Frame(number=number, counts=native, full_scale=scale, camera_time_s=time_s)
    return Frame(number=number, raw=_grey(images[0], full_scale), camera_time_s=time_s)


def _grey(image: ImageMessage, full_scale: int | None) -> Any:
    pixels = image.pixels
    if pixels.ndim == 3:
        return light_of(samples_of(pixels[..., ::-1] if image.encoding == "bgr8" else pixels)).grey
    if pixels.dtype.kind == "f":
        return pixels.astype(np.float32)
    scale = full_scale or np.iinfo(pixels.dtype).max
    return pixels.astype(np.float32) / np.float32(scale)
