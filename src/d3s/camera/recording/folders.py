"""Recordings to folders of images, and back.

A folder has one file a raw frame, or two files a pair; `frames.csv` with the number, the times and
the losses of each; and `rig.toml`. Integers become PNG files of 16 bits, scaled to their full
scale as `d3s depth` reads them, and floats become NPY files; both ways, no bit is lost.
"""

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from d3s import atomic
from d3s.camera.recording.reader import Recording
from d3s.camera.recording.topics import RIG_NAME
from d3s.camera.recording.writer import RecordingWriter
from d3s.errors import InputError, OutputError
from d3s.files.images import write_image
from d3s.files.raw import path_text
from d3s.frames.frame import Frame, Refused
from d3s.frames.loading import FileSource
from d3s.frames.pairing import find_frames
from d3s.rig import Rig
from d3s.types import Progress

TABLE = "frames.csv"
_FIELDS = ("name", "number", "full_scale", "time_s", "camera_time_s", "lost_before", "whole")


def to_folder(
    path: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> tuple[int, tuple[Refused, ...]]:
    """Write the frames of a recording as images into a folder.

    Parameters
    ----------
    path
        The recording.
    folder
        The folder, made if it is not there.
    overwrite
        Whether files may be replaced.
    progress
        Called with (frames done, frames in all).

    Returns
    -------
    tuple
        Number of frames, and those that could not be read.

    Raises
    ------
    InputError
        When the recording cannot be read.
    OutputError
        When a file cannot be written, or is there already.
    """
    target = Path(os.fsdecode(folder))
    with Recording(path) as recording:
        atomic.make_folder(target)
        if not overwrite and (target / TABLE).exists():
            raise OutputError(f"{target / TABLE} exists. Choose another folder, or --force.")
        rig = recording.rig()
        if rig is not None:
            rig.save(target / RIG_NAME, overwrite=overwrite)
        rows, refused = [], []
        for done, outcome in enumerate(recording):
            if isinstance(outcome, Refused):
                refused.append(outcome)
            else:
                rows.append(_write(outcome, target, overwrite))
            if progress is not None:
                progress(done + 1, recording.frame_count)
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

    Parameters
    ----------
    folder
        Images, by the names that `d3s.camera.capture.find_frames` knows: pairs, or raw frames.
    path
        The recording to write.
    rig
        The camera; that of `rig.toml` in the folder if None.
    overwrite
        Whether a file may be replaced.
    progress
        Called with (frames done, frames in all).

    Returns
    -------
    tuple
        Number of frames, and those that could not be read.

    Raises
    ------
    InputError
        When the folder has no images.
    OutputError
        When the recording cannot be written, or is there already.
    """
    source = Path(os.fsdecode(folder))
    if rig is None and (source / RIG_NAME).exists():
        rig = Rig.load(source / RIG_NAME)
    known = _table(source)
    written, refused = 0, []
    frames, count = _frames(source)
    with RecordingWriter(
        path, rig=rig, notes={"camera": path_text(source)}, overwrite=overwrite
    ) as target:
        for done, outcome in enumerate(frames):
            if isinstance(outcome, Refused):
                refused.append(outcome)
            else:
                target.write(_with_facts(outcome, known.get(outcome.name)))
                written += 1
            if progress is not None:
                progress(done + 1, count)
    return written, tuple(refused)


def _frames(folder: Path) -> tuple[Iterator[Frame | Refused], int]:
    try:
        found = find_frames([folder])
    except InputError:  # no names with left and right: each file is a frame
        found = find_frames([folder], one_file_each=True)
    if not found.frames:
        raise InputError(f"{path_text(folder)}: has no images.")
    return iter(FileSource(found.frames)), len(found.frames)


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
            "number": int(row["number"]),
            "time_s": float(row["time_s"]) if row["time_s"] else None,
            "camera_time_s": float(row["camera_time_s"]) if row["camera_time_s"] else None,
            "lost_before": int(row["lost_before"]),
            "whole": row["whole"] != "0",
        }
        full_scale = int(row["full_scale"])
    except (KeyError, ValueError) as error:
        raise InputError(f"{TABLE}: the row of {row['name']} cannot be read: {error}.") from error
    if full_scale and frame.raw is not None:
        dtype = np.uint8 if full_scale <= np.iinfo(np.uint8).max else np.uint16
        counts = np.rint(frame.raw.astype(np.float64) * full_scale).astype(dtype)
        changes |= {"raw": None, "counts": counts, "full_scale": full_scale}
    return replace(frame, name="", **changes)
