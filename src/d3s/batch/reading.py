"""One frame of files, of a recording, of a video or of an array, read in this process."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from d3s.batch.ahead import Timed
from d3s.batch.job import DepthJob
from d3s.errors import D3SError
from d3s.frames import FileSource, Frame, FrameFiles, Refused, Source
from d3s.frames.sources import SourceOptions, open_source
from d3s.frames.zarr_frames import ZarrSource, is_zarr
from d3s.rig import Rig


def open_frames(
    path: str,
    *,
    rig: Rig | None = None,
    side_by_side: bool = False,
    linear: bool | None = None,
) -> Source:
    """Open a recording, a video or a Zarr array.

    Parameters
    ----------
    path
        Its path.
    rig
        The camera, which splits or rectifies frames of videos and arrays.
    side_by_side
        Whether frames of videos and arrays have both views side by side.
    linear
        Whether integers of videos are proportional to intensity; None as `load_pair`.

    Raises
    ------
    D3SError
        When it cannot be read.
    """
    if is_zarr(path):
        return ZarrSource(path, rig=rig, side_by_side=side_by_side)
    return open_source(path, rig, SourceOptions(side_by_side=side_by_side, linear=linear))


class Reader:
    """Frames by their descriptions; what holds many frames stays open between them.

    Parameters
    ----------
    job
        Rules for reading: the rig, and how files are taken.
    """

    def __init__(self, job: DepthJob) -> None:
        self._job = job
        self._path = ""
        self._source: Source | None = None
        self._next: Iterator[Frame | Refused] = iter(())
        self._place = 0

    def read(self, frame: Mapping[str, Any]) -> Timed:
        """Read a frame, and measure the time.

        Parameters
        ----------
        frame
            Name of the frame and its files, or its place in a recording, a video or an array.
        """
        started = time.perf_counter()
        outcome = self._of_source(frame) if frame["number"] is not None else self._of_files(frame)
        return Timed(outcome, time.perf_counter() - started)

    def close(self) -> None:
        """Close what is open."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _of_files(self, frame: Mapping[str, Any]) -> Frame | Refused:
        right = None if frame["right"] is None else Path(frame["right"])
        files = FrameFiles(frame["name"], Path(frame["left"]), right)
        job = self._job
        source = FileSource(
            [files],
            rig=job.rig,
            side_by_side=job.side_by_side,
            linear=job.linear,
            max_pixels=job.max_pixels,
            bayer=job.bayer,
            keep_colour=job.needs_colour,
        )
        (outcome,) = source
        return outcome

    def _of_source(self, frame: Mapping[str, Any]) -> Frame | Refused:
        path, place = frame["left"], frame["number"]
        try:
            if self._source is None or path != self._path:
                self._open(path)
            by_place = getattr(self._source, "frame", None)
            if by_place is not None:
                found: Frame = by_place(place)
                return found
            return self._forward(path, place)
        except D3SError as error:
            return Refused(os.fspath(path), str(error))

    def _open(self, path: str) -> None:
        self.close()
        job = self._job
        self._source = open_frames(
            path, rig=job.rig, side_by_side=job.side_by_side, linear=job.linear
        )
        self._path, self._place, self._next = path, 0, iter(self._source)

    def _forward(self, path: str, place: int) -> Frame | Refused:
        """Frame of a source without places: by going on, or from the start if it has passed."""
        if place < self._place:
            self._open(path)
        for outcome in self._next:
            self._place += 1
            if self._place > place:
                return outcome
        return Refused(path, f"ends before frame {place}, though it said to have it.")
