"""Outcomes of a batch: a summary of each depth map, and what was refused and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from d3s.estimate.drift_watch import Drift
from d3s.frames import Refused


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """Summary of one depth map that was written; NaN where no pixel has a depth."""

    name: str
    folder: Path
    file_names: tuple[str, ...]  # in the folder
    density: float  # share of the pixels that have a depth, 0 to 1
    nearest_m: float  # first percentile of the depths
    farthest_m: float  # 99th percentile of the depths
    median_sigma_m: float
    read_s: float  # time of reading, splitting and rectifying
    time_s: float  # time of the estimate, without reading and writing
    write_s: float
    png_unit_m: float | None  # unit of the PNG, if one was written
    left_out: dict[str, str]  # files that could not hold the depths: the reason, by name
    remarks: tuple[str, ...]  # on what was done to the images, and on the files
    warnings: tuple[str, ...]  # of the estimate: likely causes of a poor depth map

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that were written."""
        return tuple(self.folder / name for name in self.file_names)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], folder: Path) -> "Done":
        """Summary of the record that `d3s.batch.frame` makes of a frame.

        Parameters
        ----------
        record
            Figures and names of files.
        folder
            Folder of the files.
        """
        figures = {name: record[name] for name in FIGURES}
        return cls(
            name=record["name"],
            folder=folder,
            file_names=tuple(record["files"]),
            **figures,
            png_unit_m=record["png_unit_m"],
            left_out=dict(record["left_out"]),
            remarks=tuple(record["remarks"]),
            warnings=tuple(record["warnings"]),
        )


FIGURES = (
    "density",
    "nearest_m",
    "farthest_m",
    "median_sigma_m",
    "read_s",
    "time_s",
    "write_s",
)
"""Numbers of a frame, in the order of tables."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Outcomes of all frames."""

    done: Sequence[Done]  # of many frames, each is read from the manifest when it is asked for
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()  # names of frames whose results were there
    drift: Drift | None = None  # of the camera, if all frames together show one
    remarks: tuple[str, ...] = ()  # on the run as a whole
    manifest: Path | None = None  # record of all frames, if one was written

    @cached_property
    def empty(self) -> tuple[Done, ...]:
        """Depth maps in which no pixel has a depth."""
        return tuple(one for one in self.done if one.density == 0)

    @cached_property
    def incomplete(self) -> tuple[Done, ...]:
        """Depth maps of which a file is left out, since its format cannot hold them."""
        return tuple(one for one in self.done if one.left_out)
