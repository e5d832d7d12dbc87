"""From a source of frames to depth maps, in threads that never wait for each other.

grab thread -> slot -> compute threads -> newest result -> encoding of what is watched

The newest frame wins in every slot, so the page shows the present and nothing queues. A recording
takes frames in the grab thread, before any is dropped.

Two frames of a camera are computed at once, with half of the cores each: one frame alone leaves
cores idle between its stages.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from d3s.camera.capture import FaultKind, LiveCamera
from d3s.camera.live.pictures import PANELS
from d3s.camera.live.results import LiveDepth, Settings, compute
from d3s.camera.live.slot import Newest, Slot, Turns
from d3s.camera.recording import Recorder
from d3s.errors import D3SError, InputError
from d3s.frames import Frame, Refused, Source
from d3s.rig import Rig
from d3s.runtime.parallel import beside_others

STALE_S = 1.0
"""Seconds without a new frame after which a camera is said to be silent."""
_ENDED = "the source has ended"
_CLOSE_S = 5.0  # for threads to end
_AT_ONCE = 2  # frames of a camera that are computed at the same time


@dataclass(kw_only=True)
class Counts:
    """Frames since the start: what came, what was lost and where, what was shown."""

    grabbed: int = 0  # that the source gave
    lost_by_camera: int = 0  # or by the cable, before one that came
    broken: int = 0  # of which parts did not arrive
    refused: int = 0  # that the source could not read
    out_of_order: int = 0  # with a number or a time that is not after that of the frame before
    not_computed: int = 0  # that a newer one replaced while another was being computed
    failed: int = 0  # that could not be split or estimated
    computed: int = 0
    not_shown: int = 0  # depth maps that a newer one replaced before anybody looked
    recorded: int = 0
    not_recorded: int = 0  # that the queue of the recording had to drop


class Rate:
    """Events per second, over the last seconds."""

    def __init__(self, window_s: float = 3.0) -> None:
        self._window_s = window_s
        self._times: deque[float] = deque(maxlen=1000)
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Count one event now."""
        with self._lock:
            self._times.append(time.monotonic())

    def per_s(self) -> float:
        """Events per second; 0 if there were fewer than two of them lately."""
        now = time.monotonic()
        with self._lock:
            while self._times and now - self._times[0] > self._window_s:
                self._times.popleft()
            if len(self._times) < 2:
                return 0.0
            # Up to now, or up to the last event if the next one is not late: steady, and it falls
            # when events stop.
            between = (self._times[-1] - self._times[0]) / (len(self._times) - 1)
            late = now - self._times[-1] > 2 * between
            span_s = (now if late else self._times[-1]) - self._times[0]
            return (len(self._times) - 1) / span_s if span_s > 0 else 0.0


class Pipeline:
    """Depth maps of a source of frames, as they come; the source is closed at the end.

    With `drop`, a newer frame replaces one that waits, as live pictures need. Without, the source
    waits, and every frame is computed, as for files.

    Examples
    --------
    >>> import d3s
    >>> from d3s.frames import open_source
    >>> rig = d3s.Rig.paper_prototype()
    >>> with Pipeline(open_source("twin:60x100", rig), rig) as pipeline:
    ...     while pipeline.results.peek() is None:
    ...         time.sleep(0.1)
    >>> pipeline.results.read().shape
    (60, 100)
    """

    panels = tuple(PANELS)

    def __init__(
        self,
        source: Source,
        rig: Rig,
        *,
        settings: Settings | None = None,
        drop: bool = True,
        new_recorder: Callable[[], Recorder] | None = None,
    ) -> None:
        self.rig = rig
        self.results: Newest[LiveDepth] = Newest()
        self.settings = settings or Settings()
        self.problem = ""  # why the newest frame has no depth map
        self._rates = {"grabbed": Rate(), "computed": Rate()}
        self._counts = Counts()  # with not_shown as results that a later frame's overtook
        self._source = source
        self._drop = drop
        self._new_recorder = new_recorder
        self._recorder: Recorder | None = None
        self._recorder_lock = threading.Lock()
        self._settings_lock = threading.Lock()
        self._frames: Slot[tuple[Frame, float]] = Slot()  # with the time of the grab
        self._ending = ""
        self._stopping = threading.Event()
        self._last_number = -1  # of the frames in order
        self._last_camera_s: float | None = None
        self._last_s: float | None = None
        self._results_lock = threading.Lock()
        at_once = _AT_ONCE if drop else 1
        self._turns = Turns(self._frames, at_once)
        works = [(self._grab, "d3s-grab"), *[(self._compute, "d3s-compute")] * at_once]
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True) for work, name in works
        ]

    def close(self) -> None:
        """Stop all threads, finish a recording, and close the source. Closing twice is fine."""
        self._stopping.set()
        self._source.close()
        self._frames.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_CLOSE_S)
        self.stop_recording()

    def __enter__(self) -> Self:
        """Start all threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Close the pipeline."""
        self.close()

    # Settings and recording -----------------------------------------------------------------------

    @property
    def camera(self) -> LiveCamera | None:
        """Source, if it is a camera."""
        return self._source if isinstance(self._source, LiveCamera) else None

    def abilities(self) -> dict[str, Any]:
        """Controls that a page offers."""
        settings = {} if self.camera is None else self.camera.settings._asdict()
        return {
            "record": self._new_recorder is not None,
            "positions": None,
            "estimate": True,
            "camera": {name: one._asdict() for name, one in settings.items() if one is not None},
        }

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings while the pipeline runs; the next frame is computed with them."""
        of_camera = {name: changes[name] for name in ("exposure_s", "gain") if name in changes}
        rest = {name: value for name, value in changes.items() if name not in of_camera}
        with self._settings_lock:
            settings = self.settings.changed(rest)
            if of_camera:
                if self.camera is None:
                    raise InputError(f"{next(iter(of_camera))} cannot be set: this is no camera.")
                for name, value in of_camera.items():
                    if isinstance(value, bool) or not isinstance(value, int | float):
                        raise InputError(f"{name}={value!r} must be a number.")
                self.camera.configure(**of_camera)
            self.settings = settings
        self.results.notify()

    def act(self, action: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Start or stop a recording: the action "record", with the value `on`."""
        if action != "record":
            raise InputError(f"{action} is for saved files.")
        if values.get("on"):
            words = f"Recording to {self.start_recording().path.name}."
        else:
            ended = self.stop_recording()
            words = "" if ended is None else f"Saved {ended.path.name}, {ended.written} frames."
        return {"recording": self._recorder is not None, "text": words}

    def start_recording(self) -> Recorder:
        """Begin a recording, unless one is under way, and return it."""
        if self._new_recorder is None:
            raise InputError("there is nowhere to record to. Start with a folder for recordings.")
        with self._recorder_lock:
            if self._recorder is None:
                self._recorder = self._new_recorder()
            return self._recorder

    def stop_recording(self) -> Recorder | None:
        """Finish the recording that is under way, if any, and return it."""
        with self._recorder_lock:
            recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        try:
            recorder.close()
        finally:
            self._counts.recorded += recorder.written
            self._counts.not_recorded += recorder.dropped
        return recorder

    # State ----------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """Counters until now."""
        counts, recorder, camera = self._counts, self._recorder, self.camera
        passed_over = 0 if camera is None else camera.fault_counts.get(FaultKind.OUT_OF_ORDER, 0)
        return replace(
            counts,
            out_of_order=counts.out_of_order + passed_over,
            not_computed=self._frames.replaced,
            not_shown=counts.not_shown + self.results.unread,
            recorded=counts.recorded + (recorder.written if recorder else 0),
            not_recorded=counts.not_recorded + (recorder.dropped if recorder else 0),
        )

    def status(self) -> dict[str, Any]:
        """State, rates and losses."""
        return {
            "state": self.state,
            "stale": self.is_stale,
            "recording": self._recorder is not None,
            "rates": {name: rate.per_s() for name, rate in self._rates.items()},
            "counts": asdict(self.counts),
        }

    @property
    def silent_s(self) -> float | None:
        """Seconds since the last frame that was new and whole; None before the first."""
        return None if self._last_s is None else time.monotonic() - self._last_s

    @property
    def is_stale(self) -> bool:
        """Whether the last result is old, and that is not as it should be: no source has ended."""
        silent_s = self.silent_s
        return silent_s is not None and silent_s > STALE_S and self._ending != _ENDED

    @property
    def state(self) -> str:
        """State in words for people: running, waiting, silent, ended or failed, and why."""
        if self._ending:
            return self._ending
        camera, recorder, silent_s = self.camera, self._recorder, self.silent_s
        if camera is not None and camera.state != "grabbing":
            return camera.state
        if recorder is not None and recorder.state.startswith("failed"):
            return f"the recording has {recorder.state}"
        if silent_s is None:
            name = "the source" if camera is None else camera.name
            return f"waiting for the first frame of {name}. {self.problem}".strip()
        if silent_s > STALE_S:
            return f"no new frame for {silent_s:.0f} s. {self.problem}".strip()
        if self.results.peek() is None:
            compiling = "computing the first depth map: loops may be compiled first"
            return f"no depth map yet: {self.problem}" if self.problem else compiling
        return self.problem or "running"

    # Threads --------------------------------------------------------------------------------------

    def _grab(self) -> None:
        try:
            for outcome in self._source:
                if self._stopping.is_set():
                    break
                self._handle(outcome)
            self._ending = _ENDED
        except D3SError as error:
            self._ending = f"the source has failed: {error}"
        except BaseException as error:
            self._ending = f"stopped by an error: {error!r}"
            raise
        finally:
            self._frames.close()
            self.results.notify()

    def _handle(self, outcome: Frame | Refused) -> None:
        """Record, count and pass on one outcome of the source."""
        counts, grabbed_s = self._counts, time.monotonic()
        with self._recorder_lock:
            if self._recorder is not None:
                if isinstance(outcome, Refused):
                    self._recorder.refuse(outcome)
                else:
                    self._recorder.put(outcome)
        if isinstance(outcome, Refused):
            counts.refused += 1
            self.problem = f"{outcome.name}: {outcome.reason}" if outcome.name else outcome.reason
            return
        counts.grabbed += 1
        counts.lost_by_camera += outcome.lost_before
        self._rates["grabbed"].tick()
        if not outcome.whole:
            counts.broken += 1
        elif self._is_older(outcome):
            counts.out_of_order += 1
        else:
            self._last_number, self._last_s = outcome.number, grabbed_s
            self._frames.put((outcome, grabbed_s), wait=not self._drop)

    def _is_older(self, frame: Frame) -> bool:
        """Whether a frame is not after the last one, by number or by the clock of the camera.

        The clock is compared with that of the frame just before, in order or not: a camera that
        was plugged in again may begin at zero, which is one frame out of order and not all.
        """
        before_s, now_s = self._last_camera_s, frame.camera_time_s
        if now_s is not None:
            self._last_camera_s = now_s
        went_back = before_s is not None and now_s is not None and now_s < before_s
        return went_back or frame.number <= self._last_number

    def _compute(self) -> None:
        try:
            self._turns.run(self._compute_one)
        except BaseException as error:
            self._ending = f"stopped by an error: {error!r}"
            self._frames.close()  # the other compute thread ends too
            self.results.notify()
            raise

    def _compute_one(self, item: tuple[Frame, float], serial: int, at_once: int) -> None:
        if self._stopping.is_set():
            return
        frame, grabbed_s = item
        try:
            with beside_others(at_once):
                result = compute(frame, self.rig, self.settings, serial=serial, grabbed_s=grabbed_s)
        except D3SError as error:
            with self._results_lock:
                self._counts.failed += 1
                self.problem = str(error)
            self.results.notify()
            return
        self._rates["computed"].tick()
        with self._results_lock:
            self.problem = ""
            self._counts.computed += 1
            newest = self.results.peek()
            if newest is not None and newest.serial > result.serial:
                self._counts.not_shown += 1
            else:
                self.results.put(result)
