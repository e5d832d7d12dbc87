"""`Session`: frames of a source measured and averaged, filed on request, calibrated at the end."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from d3s.batch.calibrations import attempt
from d3s.calibrate.fields import Half
from d3s.camera.align.filing import Captured, CaptureFolder, check_frames
from d3s.camera.align.measure import Alignment, measure, sharpness_readings
from d3s.camera.align.quantities import Reading
from d3s.camera.capture import LiveCamera
from d3s.camera.live.slot import Newest, Slot
from d3s.errors import CapturesError, D3SError, InputError
from d3s.files import IMAGE_SUFFIXES, list_images
from d3s.frames import (
    FileSource,
    Frame,
    FrameFiles,
    Refused,
    Source,
    SourceOptions,
    open_source,
)
from d3s.lab.view.calibration import report_page, write_report
from d3s.rig import Rig
from d3s.types import Image, Progress

FRAMES = 6
"""Frames that are averaged: three seconds at 2 frames a second."""
_MOVED_SIGMAS = 4.0  # beyond which somebody has turned a screw, and the average begins anew
_MOVED_LIMITS = 0.25  # and beyond this share of the limit
_PASSED = 0.9  # of the best sharpness: below it the focus has passed its best


class Watch:
    """Alignment from a stream of raw frames.

    Values are means over the latest frames; when a value jumps, its mean begins anew. Standard
    deviations stay those of one frame: the texture of a scene that does not move makes the same
    error in every frame.
    """

    def __init__(
        self,
        rig: Rig,
        *,
        distance_m: float | None = None,
        left_lens: Half = "right",
        bayer: str | None = None,
    ) -> None:
        self.left_lens: Half = left_lens
        self._rig, self._bayer = rig, bayer
        self._distance_m = distance_m
        self.forget()

    @property
    def distance_m(self) -> float | None:
        """Distance of the scene as typed; a new one forgets all earlier frames."""
        return self._distance_m

    @distance_m.setter
    def distance_m(self, distance_m: float | None) -> None:
        if distance_m != self._distance_m:
            self._distance_m = distance_m
            self.forget()

    def forget(self) -> None:
        """Forget earlier frames and the best sharpness: the scene is another one."""
        self._values: dict[str, deque[float]] = {}
        self._best, self._has_passed = [0.0, 0.0], [False, False]

    def add(self, raw: Any) -> Alignment:
        """Measure a frame, and return the alignment averaged over the latest frames."""
        found = measure(
            raw,
            self._rig,
            distance_m=self._distance_m,
            left_lens=self.left_lens,
            bayer=self._bayer,
        )
        for camera in (0, 1):
            value = found.sharpness.of(camera)[0]
            if np.isfinite(value):
                self._best[camera] = max(self._best[camera], value)
                self._has_passed[camera] |= value < _PASSED * self._best[camera]
        best = [
            best if passed else None
            for best, passed in zip(self._best, self._has_passed, strict=True)
        ]
        sharpness = sharpness_readings(found.sharpness, best, found.problem)
        readings = {name: self._mean(one) for name, one in found.readings.items()}
        # The best sharpness changes with every frame: shares of it are not averaged.
        return replace(found, readings=readings | {one.name: one for one in sharpness})

    def _mean(self, reading: Reading) -> Reading:
        if reading.reason or not np.isfinite(reading.value):
            self._values.pop(reading.name, None)
            return reading
        latest = self._values.setdefault(reading.name, deque(maxlen=FRAMES))
        allowed = max(_MOVED_SIGMAS * reading.sigma, _MOVED_LIMITS * reading.limit)
        if latest and abs(reading.value - float(np.mean(latest))) > allowed:
            latest.clear()
        latest.append(reading.value)
        return reading._replace(value=float(np.mean(latest)))


FRESH_FRAMES = 3
"""Frames that are taken for one capture: the first and the last are compared."""
_CAPTURE_S = 20.0  # longest wait for them
_CLOSE_S = 5.0
_NO_FOLDER = "there is no folder for captures. Start with --captures FOLDER."
_PAIRS = (
    "this source gives rectified pairs, and an alignment needs raw frames with both halves of the "
    "sensor. Name a camera, or files of raw frames."
)


def open_raw(text: str, rig: Rig, options: SourceOptions | None = None) -> Source:
    """Source of raw frames that a word of the command line names."""
    path = Path(text)
    linear = None if options is None else options.linear
    if path.is_dir() or (path.is_file() and path.suffix.lower() in IMAGE_SUFFIXES):
        paths = list_images(path) if path.is_dir() else [path]
        # Without the rig: what is being built in has no calibration to split its frames.
        return FileSource([FrameFiles(one.name, one, None) for one in paths], linear=linear)
    if not path.exists() and text.startswith("twin") and not text.startswith("twin:raw"):
        text = "twin:raw" + text.removeprefix("twin")
    return open_source(text, rig, options)


class Shown(NamedTuple):
    """One measured frame."""

    number: int
    name: str
    image: Image  # raw frame, full scale 1
    alignment: Alignment
    seconds: float  # that the measurement took


@dataclass(frozen=True, kw_only=True)
class CalibrationOutcome:
    """Outcome of the calibration."""

    values: dict[str, Any]  # verdict and measures, as `Report.as_json` has them
    page: str  # the report, as HTML
    rig_path: Path | None  # None if nothing usable came out
    page_path: Path
    problem: str  # why there is no rig


Calibrate = Callable[[Path, Progress], CalibrationOutcome]
"""Calibration of a folder of captures: called with the folder and with a progress in per cent."""


class Session:
    """A source that is watched: measured frames, captures, calibration.

    Two threads: one takes frames from the source, the other measures the newest.
    """

    def __init__(
        self,
        source: Source,
        watch: Watch,
        *,
        captures: CaptureFolder | None = None,
        calibrate: Calibrate | None = None,
    ) -> None:
        self.watch = watch
        self.captures = captures
        self.newest: Newest[Shown] = Newest()
        self.problem = ""  # why frames stopped, or the last one that could not be used
        self.has_ended = False
        self.percent: float | None = None  # of a calibration under way
        self.calibrated: CalibrationOutcome | None = None
        self._source = source
        self._calibrate = calibrate
        self._frames: Slot[Frame] = Slot()
        self._watching, self._capturing = threading.Lock(), threading.Lock()
        self._fresh = threading.Condition()
        self._wanted = 0
        self._taken: list[Frame] = []
        self._is_closed = False
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._grab, "d3s-grab"), (self._measure, "d3s-align"))
        ]

    def __enter__(self) -> Self:
        """Start both threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop both threads and close the source."""
        self._is_closed = True
        self._source.close()
        self._frames.close()
        for thread in self._threads:
            thread.join(_CLOSE_S)

    @property
    def state(self) -> str:
        """State of the source, for people."""
        if self.has_ended:
            return "all frames were shown"
        return self._source.state if isinstance(self._source, LiveCamera) else "running"

    @property
    def is_done(self) -> bool:
        """Whether no more frames will be measured."""
        return self.has_ended and not self._threads[1].is_alive()

    # Threads --------------------------------------------------------------------------------------

    def _grab(self) -> None:
        try:
            for outcome in self._source:
                if self._is_closed:
                    break
                if isinstance(outcome, Refused):
                    self._say(f"{outcome.name}: {outcome.reason}")
                elif outcome.views is not None:
                    raise InputError(_PAIRS)
                elif outcome.whole:
                    with self._fresh:  # for a capture that waits for it
                        if self._wanted > 0:
                            self._taken.append(outcome)
                            self._wanted -= 1
                            self._fresh.notify_all()
                    self._frames.put(outcome, wait=self._source.frame_count is not None)
        except D3SError as error:
            self._say(str(error))
        self.has_ended = True
        self._frames.close()
        with self._fresh:
            self._fresh.notify_all()
        self.newest.notify()

    def _say(self, problem: str) -> None:
        self.problem = problem
        self.newest.notify()

    def _measure(self) -> None:
        while (frame := self._frames.take()) is not None:
            start = time.perf_counter()
            try:
                image = frame.light()
                with self._watching:
                    found = self.watch.add(image)
            except D3SError as error:
                self._say(str(error))
                continue
            spent_s = time.perf_counter() - start
            self.newest.put(Shown(frame.number, frame.name, image, found, spent_s))
        self.newest.notify()

    # Requests -------------------------------------------------------------------------------------

    def set_distance(self, distance_m: float | None) -> None:
        """Set the distance of the scene, in metres; None if it is not known."""
        if distance_m is not None and not 0 < distance_m <= 20:
            raise InputError(f"distance_m={distance_m:g} must be above 0 and up to 20 m.")
        with self._watching:
            self.watch.distance_m = distance_m

    def forget(self) -> None:
        """Forget earlier frames and the best sharpness."""
        with self._watching:
            self.watch.forget()

    def capture(self, distance_m: float) -> Captured:
        """Take fresh frames of a board at a distance, check them and file the last one."""
        if self.captures is None:
            raise InputError(_NO_FOLDER)
        with self._capturing:
            self.captures.check_distance(distance_m)
            frames = [frame.light() for frame in self._fresh_frames()]
            checked = check_frames(frames, left_lens=self.watch.left_lens)
            if checked.problems:
                return checked
            return checked._replace(filed=self.captures.add(frames[-1], distance_m))

    def _fresh_frames(self) -> list[Frame]:
        """Frames that arrive after this call."""
        with self._fresh:
            self._taken, self._wanted = [], FRESH_FRAMES
            self._fresh.wait_for(lambda: self._wanted == 0 or self.has_ended, _CAPTURE_S)
            taken, self._wanted = self._taken, 0
        if len(taken) < FRESH_FRAMES:
            words = "all frames of the source were shown" if self.has_ended else "no frames arrive"
            raise InputError(f"{words}: captures need a camera that runs.")
        return taken

    def take_back(self, name: str) -> None:
        """Take a filed frame out of the table; its file stays."""
        if self.captures is None:
            raise InputError(_NO_FOLDER)
        self.captures.take_back(name)

    def run_calibration(self) -> CalibrationOutcome:
        """Calibrate from the captures; `percent` tells how far it is."""
        if self.captures is None or self._calibrate is None:
            raise InputError(_NO_FOLDER)
        if self.captures.missing:
            count = len(self.captures.filed)
            raise CapturesError(
                f"{count} frames are filed, and {self.captures.missing} more are needed.",
                path=self.captures.folder,
            )
        if self.percent is not None:
            raise InputError("a calibration is under way: wait for it.")
        self.percent = 0.0
        try:
            self.calibrated = self._calibrate(self.captures.folder, self._progress)
        finally:
            self.percent = None
            self.newest.notify()
        return self.calibrated

    def _progress(self, done: int, total: int) -> None:
        self.percent = 100.0 * done / max(total, 1)
        self.newest.notify()


def calibration_of(
    design: Rig, *, left_lens: Half = "right", bayer: str | None = None
) -> Calibrate:
    """Calibration of a folder of captures, for `Session`.

    It writes rig.toml, rig.html and rig.json into the folder; with a number if they exist.
    """
    built = Rig(optics=design.optics, name=design.name)

    def run(folder: Path, progress: Progress) -> CalibrationOutcome:
        rig, report, problem = attempt(
            folder,
            design=built,
            left_lens=left_lens,
            bayer=bayer,
            name=folder.resolve().name,
            progress=progress,
        )
        stem = CaptureFolder(folder).free_path("rig", (".toml", ".html", ".json"))
        page_path = stem.with_name(stem.name + ".html")
        rig_path = None if rig is None else stem.with_name(stem.name + ".toml")
        if rig is not None and rig_path is not None:
            rig.save(rig_path)
        write_report(report, page_path)
        return CalibrationOutcome(
            values=report.as_json()["verdict"],
            page=report_page(report),
            rig_path=rig_path,
            page_path=page_path,
            problem=problem,
        )

    return run
