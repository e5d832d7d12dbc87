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
from dataclasses import dataclass
from typing import Any, Self

from d3s.camera.capture import FaultKind, LiveCamera
from d3s.camera.live.results import LiveDepth, compute
from d3s.camera.live.settings import Settings
from d3s.camera.live.slot import Newest, Slot, Stagger, Started
from d3s.camera.recording import Recorder
from d3s.errors import D3SError, InputError
from d3s.frames import Frame, Refused, Source
from d3s.rig import Rig
from d3s.runtime.parallel import beside_others


@dataclass(frozen=True, kw_only=True)
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
        self._times: deque[float] = deque()
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Count one event now."""
        now = time.monotonic()
        with self._lock:
            self._times.append(now)
            self._forget(now)

    def per_s(self) -> float:
        """Events per second; 0 if there were fewer than two of them lately."""
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            if len(self._times) < 2:
                return 0.0
            # Up to now, or up to the last event if the next one is not late: steady, and it falls
            # when events stop.
            between = (self._times[-1] - self._times[0]) / (len(self._times) - 1)
            late = now - self._times[-1] > 2 * between
            span_s = (now if late else self._times[-1]) - self._times[0]
            return (len(self._times) - 1) / span_s if span_s > 0 else 0.0

    def _forget(self, now: float) -> None:
        while self._times and now - self._times[0] > self._window_s:
            self._times.popleft()


STALE_S = 1.0
"""Seconds without a new frame after which a camera is said to be silent."""

_ENDED = "the source has ended"
_CLOSE_S = 5.0  # for threads to end
_AT_ONCE = 2  # frames of a camera that are computed at the same time


@dataclass
class _Tally:
    """Counters, each written by the grab thread only, or with the lock of the results."""

    grabbed: int = 0
    lost_by_camera: int = 0
    broken: int = 0
    refused: int = 0
    out_of_order: int = 0
    failed: int = 0
    computed: int = 0
    overtaken: int = 0  # results that came after that of a newer frame


@dataclass(frozen=True)
class _Grabbed:
    frame: Frame
    at_s: float  # by `time.monotonic`


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
        self.rates = {"grabbed": Rate(), "computed": Rate()}
        self._source = source
        self._drop = drop
        self._new_recorder = new_recorder
        self._recorder: Recorder | None = None
        self._recorded = (0, 0)  # taken and dropped, by recordings that have ended
        self._recorder_lock = threading.Lock()
        self._settings_lock = threading.Lock()
        self._frames: Slot[_Grabbed] = Slot()
        self._tally = _Tally()
        self._problem = ""
        self._ending = ""
        self._stopping = threading.Event()
        self._last_number = -1  # of the frames in order
        self._last_camera_s: float | None = None
        self._last_s: float | None = None
        self._results_lock = threading.Lock()
        at_once = _AT_ONCE if drop else 1
        self._turns = Stagger(self._frames.take, at_once)
        works = [(self._grab, "d3s-grab"), *[(self._compute, "d3s-compute")] * at_once]
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True) for work, name in works
        ]

    def start(self) -> Self:
        """Start all threads."""
        for thread in self._threads:
            thread.start()
        return self

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
        """Start the pipeline."""
        return self.start()

    def __exit__(self, *error: object) -> None:
        """Close the pipeline."""
        self.close()

    # Settings -------------------------------------------------------------------------------------

    @property
    def camera(self) -> LiveCamera | None:
        """Source, if it is a camera."""
        return self._source if isinstance(self._source, LiveCamera) else None

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings while the pipeline runs; the next frame is computed with them."""
        of_camera = {name: changes[name] for name in ("exposure_s", "gain") if name in changes}
        rest = {name: value for name, value in changes.items() if name not in of_camera}
        with self._settings_lock:
            settings = self.settings.changed(rest)
            if of_camera:
                camera = self.camera
                if camera is None:
                    raise InputError(f"{next(iter(of_camera))} cannot be set: this is no camera.")
                camera.configure(**{name: _number(name, one) for name, one in of_camera.items()})
            self.settings = settings
        self.results.notify()

    # Recording ------------------------------------------------------------------------------------

    @property
    def can_record(self) -> bool:
        """Whether recordings can be made."""
        return self._new_recorder is not None

    @property
    def is_recording(self) -> bool:
        """Whether a recording is under way."""
        return self._recorder is not None

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
            written, dropped = self._recorded
            self._recorded = written + recorder.written, dropped + recorder.dropped
        return recorder

    # State ----------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """Counters until now."""
        recorder = self._recorder
        written, dropped = self._recorded
        tally = dict(vars(self._tally))
        tally["out_of_order"] += self._passed_over()
        overtaken = tally.pop("overtaken")
        return Counts(
            **tally,
            not_computed=self._frames.replaced,
            not_shown=self.results.unread + overtaken,
            recorded=written + (recorder.written if recorder else 0),
            not_recorded=dropped + (recorder.dropped if recorder else 0),
        )

    def _passed_over(self) -> int:
        """Frames out of order that the camera itself did not pass on."""
        camera = self.camera
        return 0 if camera is None else camera.fault_counts.get(FaultKind.OUT_OF_ORDER, 0)

    @property
    def problem(self) -> str:
        """Reason why the newest frame has no depth map; empty if it has one, or none came."""
        return self._problem

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
        camera = self.camera
        if camera is not None and camera.state != "grabbing":
            return camera.state
        recorder = self._recorder
        if recorder is not None and recorder.state.startswith("failed"):
            return f"the recording has {recorder.state}"
        silent_s = self.silent_s
        if silent_s is None:
            name = "the source" if camera is None else camera.name
            return f"waiting for the first frame of {name}. {self._problem}".strip()
        if silent_s > STALE_S:
            return f"no new frame for {silent_s:.0f} s. {self._problem}".strip()
        if self.results.peek() is None:
            compiling = "computing the first depth map: loops may be compiled first"
            return f"no depth map yet: {self._problem}" if self._problem else compiling
        return self._problem or "running"

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
        tally = self._tally
        if isinstance(outcome, Refused):
            tally.refused += 1
            self._problem = f"{outcome.name}: {outcome.reason}" if outcome.name else outcome.reason
            self._record(outcome)
            return
        grabbed_s = time.monotonic()
        self._record(outcome)
        tally.grabbed += 1
        tally.lost_by_camera += outcome.lost_before
        self.rates["grabbed"].tick()
        if not outcome.whole:
            tally.broken += 1
            return
        if self._is_older(outcome):
            tally.out_of_order += 1
            return
        self._last_number, self._last_s = outcome.number, grabbed_s
        put = self._frames.put if self._drop else self._frames.put_and_wait
        put(_Grabbed(outcome, grabbed_s))

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

    def _record(self, outcome: Frame | Refused) -> None:
        with self._recorder_lock:
            if self._recorder is None:
                return
            if isinstance(outcome, Refused):
                self._recorder.refuse(outcome)
            else:
                self._recorder.put(outcome)

    def _compute(self) -> None:
        try:
            while (turn := self._turns.begin()) is not None and not self._stopping.is_set():
                with beside_others(turn.at_once):
                    self._compute_one(turn)
                self._turns.end(turn)
        except BaseException as error:
            self._ending = f"stopped by an error: {error!r}"
            self._frames.close()  # the other compute thread ends too
            self.results.notify()
            raise

    def _compute_one(self, turn: Started[_Grabbed]) -> None:
        try:
            result = compute(
                turn.item.frame,
                self.rig,
                self.settings,
                serial=turn.number,
                grabbed_s=turn.item.at_s,
            )
        except D3SError as error:
            with self._results_lock:
                self._tally.failed += 1
                self._problem = str(error)
            self.results.notify()
            return
        self.rates["computed"].tick()
        with self._results_lock:
            self._problem = ""
            self._tally.computed += 1
            newest = self.results.peek()
            if newest is not None and newest.serial > result.serial:
                self._tally.overtaken += 1
            else:
                self.results.put(result)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={value!r} must be a number.")
    return float(value)
