"""Readings averaged over the latest frames, and the best sharpness so far."""

from collections import deque
from collections.abc import Mapping
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
_SHARPNESS = ("sharpness_left", "sharpness_right")


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
        self._rig = rig
        self.left_lens: Half = left_lens
        self._bayer = bayer
        self._distance_m = distance_m
        self._values: dict[str, deque[float]] = {}
        self._best: list[float] = [0.0, 0.0]
        self._has_passed = [False, False]

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
        self._values.clear()
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
        readings = {**found.readings, **self._sharpness(found)}
        return replace(found, readings=self._averaged(readings))

    def _sharpness(self, found: Alignment) -> dict[str, Reading]:
        values = [found.sharpness.of(camera)[0] for camera in (0, 1)]
        for camera, value in enumerate(values):
            if np.isfinite(value):
                self._best[camera] = max(self._best[camera], value)
                if value < _PASSED * self._best[camera]:
                    self._has_passed[camera] = True
        best = (self._best[0], self._best[1])
        known = sharpness_readings(found.sharpness, best, found.problem)
        rising = sharpness_readings(found.sharpness, None, found.problem)
        return {
            name: known[camera] if self._has_passed[camera] else rising[camera]
            for camera, name in enumerate(_SHARPNESS)
        }

    def _averaged(self, readings: Mapping[str, Reading]) -> dict[str, Reading]:
        return {name: self._mean(reading) for name, reading in readings.items()}

    def _mean(self, reading: Reading) -> Reading:
        # The best sharpness changes with every frame: shares of it are not averaged.
        if reading.reason or not np.isfinite(reading.value) or reading.name in _SHARPNESS:
            self._values.pop(reading.name, None)
            return reading
        latest = self._values.setdefault(reading.name, deque(maxlen=FRAMES))
        allowed = max(_MOVED_SIGMAS * reading.sigma, _MOVED_LIMITS * reading.limit)
        if latest and abs(reading.value - float(np.mean(latest))) > allowed:
            latest.clear()
        latest.append(reading.value)
        return reading._replace(value=float(np.mean(latest)))
