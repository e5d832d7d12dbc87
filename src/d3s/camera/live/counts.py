"""Counters of the pipeline: frames that came, and every loss where it happened."""

import threading
import time
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Frames since the start: what came, what was lost and where, what was shown.

    Parameters
    ----------
    grabbed
        Frames that the source gave.
    lost_by_camera
        Frames that the camera or the cable lost before one that came.
    broken
        Frames of which parts did not arrive.
    refused
        Frames that the source could not read.
    out_of_order
        Frames with a number or a time that is not after that of the frame before.
    not_computed
        Frames that a newer one replaced while another was being computed.
    failed
        Frames that could not be split or estimated.
    computed
        Depth maps.
    not_shown
        Depth maps that a newer one replaced before anybody looked.
    recorded, not_recorded
        Frames that the recording took, and those that its queue had to drop.
    """

    grabbed: int = 0
    lost_by_camera: int = 0
    broken: int = 0
    refused: int = 0
    out_of_order: int = 0
    not_computed: int = 0
    failed: int = 0
    computed: int = 0
    not_shown: int = 0
    recorded: int = 0
    not_recorded: int = 0


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
