"""Captures for the calibration: frames are checked, and filed with distances.csv.

The table is kept from near to far, as `d3s calibrate` reads it. Frames and tables that are there
already stay: a folder is continued, a distance is filed once, and a frame that is taken back keeps
its file.
"""

import math
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from d3s.atomic import make_folder, write_text
from d3s.calibrate.captures import rejection_of
from d3s.calibrate.distance_table import FEWEST_FRAMES, TABLE_NAME, check_distances, read_rows
from d3s.calibrate.fields import Half
from d3s.camera.align.light import CLIPPED_LIMIT, measure_light
from d3s.errors import InputError
from d3s.files import write_image
from d3s.types import Image

MOTION_PX = 0.5
"""Largest shift between frames at one distance, in pixels."""
BRIGHTNESS_SHARE = 0.03
"""Largest change of the brightness between frames at one distance."""
_SHIFT_ROWS_PX = 540  # height of the pictures whose shift is measured
_LEAST_RESPONSE = 0.05  # of the phase correlation: below, frames show different things


class Filed(NamedTuple):
    """A frame that was filed."""

    name: str
    distance_m: float


class Captured(NamedTuple):
    """Result of the check of frames at one distance; not filed if there are problems."""

    problems: tuple[str, ...]  # reasons not to file it, as sentences
    motion_px: float  # shift between first and last frame; NaN with one frame
    filed: Filed | None = None


def check_frames(frames: Sequence[Image], *, left_lens: Half = "right") -> Captured:
    """Check frames of a board at one distance: texture, clipping, both fields, and motion."""
    if not frames:
        raise InputError("frames is empty: there is nothing to check.")
    last = frames[-1]
    problems = []
    light = measure_light(last, left_lens)
    for name, half in zip(("left", "right"), light.halves, strict=True):
        if half.clipped > CLIPPED_LIMIT:
            problems.append(
                f"{100 * half.clipped:.1f} % of the half of the {name} lens is clipped. "
                "Expose less."
            )
    rejection = rejection_of(last)
    if rejection and not problems:
        problems.append(f"The frame {rejection}")
    elif light.problem and not problems:
        problems.append(f"{light.problem[0].upper()}{light.problem[1:]}")
    motion = math.nan
    if len(frames) > 1 and not rejection:
        motion, problem = _motion(frames[0], last)
        if problem:
            problems.append(problem)
    return Captured(tuple(problems), motion)


def _motion(first: Image, last: Image) -> tuple[float, str]:
    """Shift between two frames in pixels, and what is wrong with it."""
    import cv2

    if first.shape != last.shape:
        return math.nan, "The size of the frames has changed. Take it again."
    step = max(1, round(first.shape[0] / _SHIFT_ROWS_PX))
    size = first.shape[1] // step, first.shape[0] // step
    small = [cv2.resize(one, size, interpolation=cv2.INTER_AREA) for one in (first, last)]
    window = cv2.createHanningWindow(size, cv2.CV_32F)
    bare = [one - cv2.GaussianBlur(one, (0, 0), 20) for one in small]
    (x, y), response = cv2.phaseCorrelate(bare[0], bare[1], window)
    shift = math.hypot(x, y) * step
    if response < _LEAST_RESPONSE:
        return shift, "The frames show different things. Wait until nothing moves."
    if shift > MOTION_PX:
        return shift, f"The picture moves by {shift:.1f} px. Wait until nothing moves."
    means = [float(frame[::8, ::8].mean()) for frame in (first, last)]
    change = abs(means[1] / max(means[0], 1e-9) - 1)
    if change > BRIGHTNESS_SHARE:
        return shift, (
            f"The brightness changes by {100 * change:.0f} % from frame to frame. Does the light "
            "flicker, or is the exposure automatic?"
        )
    return shift, ""


class CaptureFolder:
    """Folder of captures for the calibration."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder
        self._filed: list[Filed] = []
        if (folder / TABLE_NAME).exists():
            self._filed = [Filed(row.name, row.distance_m) for row in read_rows(folder)]

    @property
    def filed(self) -> tuple[Filed, ...]:
        """Filed frames, from near to far."""
        return tuple(sorted(self._filed, key=lambda one: one.distance_m))

    @property
    def missing(self) -> int:
        """Number of frames that a calibration still needs."""
        return max(FEWEST_FRAMES - len(self._filed), 0)

    def check_distance(self, distance_m: float) -> None:
        """Refuse a distance that is filed already, or is none."""
        wrong = check_distances([distance_m], ["this frame"])
        if wrong:
            raise InputError(wrong[0])
        for one in self._filed:
            if one.distance_m == distance_m:
                raise InputError(
                    f"distance_m={distance_m:g} is filed as {one.name}. Take that back first."
                )

    def add(self, frame: Image, distance_m: float) -> Filed:
        """File a frame: write the image, then the table."""
        self.check_distance(distance_m)
        name = self.free_path(f"{distance_m:.4f}m", (".png",)).name + ".png"
        one = Filed(name, distance_m)
        write_image(self.folder / one.name, frame)
        self._filed.append(one)
        self._write()
        return one

    def take_back(self, name: str) -> None:
        """Take a frame out of the table; its file stays."""
        kept = [one for one in self._filed if one.name != name]
        if len(kept) == len(self._filed):
            raise InputError(f"name={name!r} is not in {TABLE_NAME} of {self.folder}.")
        self._filed = kept
        self._write()

    def free_path(self, stem: str, suffixes: Sequence[str]) -> Path:
        """Path in the folder, without a suffix, at which none of the suffixes is taken."""
        for number in count(1):
            path = self.folder / (stem if number == 1 else f"{stem}_{number}")
            if not any(path.with_name(path.name + suffix).exists() for suffix in suffixes):
                break
        return path

    def _write(self) -> None:
        lines = ["file,distance_m", *(f"{one.name},{one.distance_m:.6g}" for one in self.filed)]
        write_text(self.folder / TABLE_NAME, "\n".join(lines) + "\n", overwrite=True)


def parsed_distances(text: str) -> tuple[float, ...]:
    """Distances in metres from a list such as "0.25, 0.3 0.35", or a range "0.25:1.2:25".

    A range has the nearest and the farthest distance and the number of them; their steps are even
    in 1/Z, in which blur and disparity change evenly.
    """
    words = [word for word in re.split(r"[\s,;]+", text.strip()) if word]
    found: list[float] = []
    for word in words:
        parts = word.split(":")
        try:
            numbers = [float(part) for part in parts]
        except ValueError as error:
            raise InputError(
                f"{word!r} is no distance in metres. Write 0.5, or 0.25:1.2:25 for 25 distances."
            ) from error
        if len(numbers) == 1:
            found += numbers
        elif len(numbers) == 3 and 0 < numbers[0] < numbers[1] and 2 <= numbers[2] <= 400:
            steps = np.linspace(1 / numbers[0], 1 / numbers[1], round(numbers[2]))
            found += [round(1 / float(one), 3) for one in steps]
        else:
            raise InputError(
                f"{word!r} must be the nearest distance, a farther one, and how many: 0.25:1.2:25."
            )
    wrong = [one for one in found if not (math.isfinite(one) and 0 < one <= 20)]
    if wrong or not found:
        shown = f"{wrong[0]:g}" if wrong else "nothing"
        raise InputError(f"distances are in metres, above 0 and up to 20, not {shown}.")
    return tuple(sorted(set(found)))
