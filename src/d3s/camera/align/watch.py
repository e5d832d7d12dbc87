"""Readings averaged over the latest frames, and the best sharpness so far."""

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from d3s.calibrate.fields import Half
from d3s.camera.align.measure import Alignment, measure, sharpness_readings
from d3s.camera.align.quantities import Reading
from d3s.rig import Rig

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
