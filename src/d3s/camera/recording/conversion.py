"""Recordings to ROS 2 bags, by `rosbags`, to folders of images, and back; mended; estimated again.

A bag is a folder with `metadata.yaml`. Messages are copied as they are. A bag that d3s has not
made becomes a recording by its images: one topic has raw frames, or two have the left and right
view.
"""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from d3s import atomic
from d3s.camera.recording import mcap
from d3s.camera.recording.mcap import McapFile, McapReader, check_installed
from d3s.camera.recording.reader import ImageMessage, Recording, image_of, rig_of
from d3s.camera.recording.writer import RecordingWriter
from d3s.errors import D3SError, InputError, OutputError
from d3s.estimate import Options
from d3s.estimate.methods import estimate_quietly
from d3s.estimate.saving import as_image
from d3s.files.images import light_of, samples_of, write_image
from d3s.files.raw import path_text
from d3s.files.ros import IMAGE, types
from d3s.frames.frame import Frame, Refused
from d3s.frames.loading import FileSource
from d3s.frames.pairing import find_frames
from d3s.rig import Rig
from d3s.types import Progress

METADATA = "metadata.yaml"
TABLE = "frames.csv"
_FIELDS = ("name", "number", "full_scale", "time_s", "camera_time_s", "lost_before", "whole")

_Item = TypeVar("_Item")


def _told(items: Iterable[_Item], total: int, progress: Progress | None) -> Iterator[_Item]:
    """Items, with word to the progress bar when each is done."""
    for done, item in enumerate(items, 1):
        yield item
        if progress is not None:
            progress(done, total)


# Bags ---------------------------------------------------------------------------------------------


def is_bag(path: Path) -> bool:
    """Whether a folder is a ROS 2 bag."""
    return (path / METADATA).is_file()


def to_bag(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> int:
    """Write the messages of a recording into a ROS 2 bag, and the rig beside them."""
    check_installed("mcap", "rosbags")
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.rosbag2.errors import WriterError

    target = Path(os.fsdecode(folder))
    written = 0
    with closing(McapReader(path)) as reader:
        try:  # version 9 of the metadata: ROS 2 Jazzy and later
            with Writer(target, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
                connections = {
                    topic: bag.add_connection(topic, schema, typestore=types())
                    for topic, (schema, _) in reader.topics.items()
                }
                for place in _told(reader.chunks, len(reader.chunks), progress):
                    for one in reader.messages(place):
                        bag.write(connections[one.topic], one.time_ns, one.data)
                        written += 1
            rig = reader.attachment(mcap.RIG_NAME)
            if rig is not None:
                Rig.from_text(rig.decode()).save(target / mcap.RIG_NAME)
        except (WriterError, OSError) as error:
            raise OutputError(f"{path_text(target)} cannot be written: {error}") from error
    return written


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
    """Write a ROS 2 bag into a recording; returns the number of frames.

    `images` names the topic of raw frames, or those of the left and the right view; if empty, the
    only topic of images, or the two whose names say left and right. The rig is that of `rig.toml`
    in the bag if None, and the full scale that of the type of the image.
    """
    check_installed("mcap", "rosbags")
    from rosbags.rosbag2 import Reader
    from rosbags.rosbag2.errors import ReaderError

    source = Path(os.fsdecode(folder))
    rig = rig or _rig_beside(source)
    try:
        with Reader(source) as bag:
            messages = (
                (connection.topic, time_ns, bytes(data))
                for connection, time_ns, data in _told(bag.messages(), bag.message_count, progress)
            )
            if mcap.FRAME in {one.topic for one in bag.connections} and not images:
                return _copied(messages, path, rig, overwrite)
            found = sorted({one.topic for one in bag.connections if one.msgtype == IMAGE})
            chosen = _chosen(found, images, source)
            with RecordingWriter(path, rig=rig, overwrite=overwrite) as target:
                return _write_images(messages, chosen, target, full_scale)
    except (ReaderError, FileNotFoundError) as error:
        raise InputError(f"{path_text(source)}: is no ROS 2 bag: {error}") from error


def _rig_beside(folder: Path) -> Rig | None:
    path = folder / mcap.RIG_NAME
    return Rig.load(path) if path.exists() else None


_Messages = Iterable[tuple[str, int, bytes]]


def _copied(
    messages: _Messages, path: str | os.PathLike[str], rig: Rig | None, overwrite: bool
) -> int:
    """Copy the messages of a bag that was made of a recording."""
    frames, last_ns = 0, None
    with McapFile(path, overwrite=overwrite) as target:
        if rig is not None:
            target.attach(mcap.RIG_NAME, "application/toml", rig.to_text().encode())
        for topic, time_ns, data in messages:
            if topic not in mcap.SCHEMAS:
                continue
            if time_ns != last_ns:
                target.flush()
            last_ns = time_ns
            target.log(topic, data, time_ns)
            frames += topic == mcap.FRAME
        target.flush()
    return frames


def _chosen(found: Collection[str], images: tuple[str, ...], source: Path) -> tuple[str, ...]:
    if images:
        missing = [one for one in images if one not in found]
        if missing or len(images) > 2:
            raise InputError(
                f"{path_text(source)}: {', '.join(missing or images)}: name one or two of its "
                f"topics of images: {', '.join(found) or 'it has none'}."
            )
        return images
    if len(found) == 1:
        return tuple(found)
    left = [one for one in found if "left" in one]
    right = [one.replace("left", "right") for one in left]
    if len(left) == 1 and right[0] in found:
        return left[0], right[0]
    raise InputError(
        f"{path_text(source)}: which topics have frames? Name one, or the left and the right one, "
        f"with --topic: {', '.join(found) or 'it has no images'}."
    )


def _write_images(
    messages: _Messages, chosen: tuple[str, ...], target: RecordingWriter, full_scale: int | None
) -> int:
    """Write the images of some topics; views belong together by the time of their headers."""
    waiting: dict[int, dict[str, ImageMessage]] = {}
    for topic, _, data in messages:
        if topic in chosen:
            one = image_of(data)
            both = waiting.setdefault(one.time_ns, {})
            both[topic] = one
            if len(both) == len(chosen):
                del waiting[one.time_ns]
                images = [both[name] for name in chosen]
                target.write(_frame(images, target.frames, full_scale))
    if not target.frames:
        raise InputError(f"no frame of {' and '.join(chosen)} is whole: their times differ.")
    return target.frames


def _frame(images: list[ImageMessage], number: int, full_scale: int | None) -> Frame:
    time_s = images[0].time_ns / 1e9
    pixels = images[0].pixels
    if len(images) == 1 and pixels.ndim == 2 and pixels.dtype.kind == "u":
        native = pixels.astype(pixels.dtype.newbyteorder("="))
        scale = full_scale or int(np.iinfo(native.dtype).max)
        return Frame(number=number, counts=native, full_scale=scale, camera_time_s=time_s)
    left, *right = (_grey(one, full_scale) for one in images)
    if right:
        return Frame(number=number, views=(left, right[0]), camera_time_s=time_s)
    return Frame(number=number, raw=left, camera_time_s=time_s)


def _grey(image: ImageMessage, full_scale: int | None) -> Any:
    pixels = image.pixels
    if pixels.ndim == 3:
        return light_of(samples_of(pixels[..., ::-1] if image.encoding == "bgr8" else pixels)).grey
    if pixels.dtype.kind == "f":
        return pixels.astype(np.float32)
    scale = full_scale or np.iinfo(pixels.dtype).max
    return pixels.astype(np.float32) / np.float32(scale)


# Folders ------------------------------------------------------------------------------------------


def to_folder(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[int, tuple[Refused, ...]]:
    """Write the frames of a recording as images into a folder."""
    target = Path(os.fsdecode(folder))
    with Recording(path) as recording:
        atomic.make_folder(target)
        if not overwrite and (target / TABLE).exists():
            raise OutputError(f"{target / TABLE} exists. Choose another folder, or --force.")
        rig = recording.rig()
        if rig is not None:
            rig.save(target / mcap.RIG_NAME, overwrite=overwrite)
        rows, refused = [], []
        for outcome in _told(recording, recording.frame_count, progress):
            if isinstance(outcome, Refused):
                refused.append(outcome)
            else:
                rows.append(_write(outcome, target, overwrite))
    text = io.StringIO()
    table = csv.DictWriter(text, _FIELDS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    atomic.write_text(target / TABLE, text.getvalue(), overwrite=overwrite)
    return len(rows), tuple(refused)


def _write(frame: Frame, folder: Path, overwrite: bool) -> dict[str, Any]:
    name = f"{frame.number:06d}"
    if frame.views is not None:
        for side, view in zip(("left", "right"), frame.views, strict=True):
            write_image(folder / f"{name}_{side}.npy", view, overwrite=overwrite)
    else:
        suffix = ".npy" if frame.counts is None else ".png"
        write_image(folder / f"{name}{suffix}", frame.light(), overwrite=overwrite)
    values = {field: getattr(frame, field) for field in _FIELDS}
    return {**values, "name": name, "whole": int(frame.whole)}


def from_folder(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    rig: Rig | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[int, tuple[Refused, ...]]:
    """Write the images of a folder into a recording.

    Images of integers stay integers only if `frames.csv` has their full scale; others become
    floats.
    """
    source = Path(os.fsdecode(folder))
    rig = rig or _rig_beside(source)
    known = _table(source)
    refused = []
    try:
        found = find_frames([source])
    except InputError:  # no names with left and right: each file is a frame
        found = find_frames([source], one_file_each=True)
    if not found.frames:
        raise InputError(f"{path_text(source)}: has no images.")
    notes = {"camera": path_text(source)}
    with RecordingWriter(path, rig=rig, notes=notes, overwrite=overwrite) as target:
        for outcome in _told(FileSource(found.frames), len(found.frames), progress):
            if isinstance(outcome, Refused):
                refused.append(outcome)
            else:
                target.write(_with_facts(outcome, known.get(outcome.name)))
    return target.frames, tuple(refused)


def _table(folder: Path) -> dict[str, dict[str, str]]:
    """Rows of `frames.csv`, by the name of the frame."""
    path = folder / TABLE
    if not path.exists():
        return {}
    try:
        rows = list(csv.DictReader(path.read_text().splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path_text(path)}: cannot be read: {error}") from error
    return {row["name"]: row for row in rows if row.get("name")}


def _with_facts(frame: Frame, row: dict[str, str] | None) -> Frame:
    if row is None:
        return frame
    try:
        changes: dict[str, Any] = {
            name: json.loads(row[name] or "null") for name in _FIELDS[1:] if name != "full_scale"
        }
        full_scale = int(row["full_scale"])
        changes["whole"] = bool(changes["whole"])
    except (KeyError, ValueError) as error:
        raise InputError(f"{TABLE}: the row of {row['name']} cannot be read: {error}.") from error
    if full_scale and frame.raw is not None:
        dtype = np.uint8 if full_scale <= np.iinfo(np.uint8).max else np.uint16
        counts = np.rint(frame.raw.astype(np.float64) * full_scale).astype(dtype)
        changes |= {"raw": None, "counts": counts, "full_scale": full_scale}
    return replace(frame, name="", **changes)


# Recovery -----------------------------------------------------------------------------------------


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
    counts, damaged = Counter[str](), 0
    with closing(McapReader(path)) as reader:
        if not reader.chunks:
            raise InputError(f"{path_text(path)}: nothing was recorded before it was cut.")
        with McapFile(output, overwrite=overwrite) as target:
            for name in reader.attachments:
                try:
                    target.attach(name, "application/octet-stream", reader.attachment(name) or b"")
                except InputError:
                    damaged += 1
            for name, values in reader.notes.items():
                target.note(name, values)
            for topic, kind in reader.topics.items():
                target.declare(topic, *kind)
            for place in _told(reader.chunks, len(reader.chunks), progress):
                try:
                    for one in reader.messages(place):
                        target.log(one.topic, one.data, one.time_ns)
                        counts[one.topic] += 1
                except D3SError:
                    damaged += 1
                target.flush()
    return Recovered(counts.total(), counts[mcap.FRAME], damaged, reader.is_cut)


# Replay -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Outcome of a replay."""

    frames: int  # that were estimated
    refused: tuple[Refused, ...]
    same: int  # frames whose depth has the bytes of the recorded one
    different: int  # frames whose depth has others
    median_density: float  # share of the pixels that have a depth; NaN without frames
    is_cut: bool  # whether the end of the recording is missing
    lost: int  # frames that the camera lost, or the recorder dropped


def replay(
    path: str | os.PathLike[str],
    *,
    rig: Rig | None = None,
    method: str = "joint",
    options: Options | Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Replay:
    """Estimate each frame of a recording again, and compare its depth with the recorded one.

    The rig is that of the recording if None; with an output, a recording of the frames and the new
    depth is written.
    """
    refused: list[Refused] = []
    densities: list[float] = []
    verdicts: list[bool] = []
    lost = 0
    with ExitStack() as stack:
        recording = stack.enter_context(Recording(path))
        camera, target = rig_of(recording, rig), None
        if output is not None:
            if Path(output).resolve() == recording.path.resolve():
                words = f"{path_text(path)} is the file that is read. Name another to write."
                raise InputError(words)
            target = RecordingWriter(output, rig=camera, notes=recording.notes, overwrite=overwrite)
            stack.enter_context(target)
        for place, outcome in enumerate(recording):
            try:
                if isinstance(outcome, Refused):
                    raise InputError(outcome.reason)
                lost += outcome.lost_before
                views = outcome.pair(camera)
                found = estimate_quietly(*views, camera, method=method, options=options)
            except D3SError as error:
                refused.append(Refused(f"frame {place}", str(error)))
            else:
                densities.append(float(np.isfinite(found.depth_m).mean()))
                recorded = recording.depth(place)
                if recorded is not None:
                    pairs = zip((found.depth_m, found.sigma_m), recorded, strict=True)
                    same = (two is None or one.tobytes() == two.tobytes() for one, two in pairs)
                    verdicts.append(all(same))
                if target is not None:
                    target.write(outcome)
                    target.write_depth(as_image(found), outcome.number)
            if progress is not None:
                progress(place + 1, recording.frame_count)
        return Replay(
            frames=len(densities),
            refused=tuple(refused),
            same=sum(verdicts),
            different=len(verdicts) - sum(verdicts),
            median_density=float(np.median(densities)) if densities else float("nan"),
            is_cut=recording.is_cut,
            lost=lost,
        )
