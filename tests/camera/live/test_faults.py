"""Faults of a camera as the page tells them: seen soon, back soon, no old frame shown as new."""

import time
from itertools import pairwise

import numpy as np
import pytest

import d3s
from d3s.camera.capture import LiveCamera
from d3s.camera.live import pipeline as module
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.results import LiveDepth
from fake_camera import FakeDevice, FakeFault, FakeScript
from live_pages import RIG, views

FAULTS = (
    FakeFault(kind="drop", at=10, count=3),
    FakeFault(kind="incomplete", at=20, count=2),
    FakeFault(kind="repeat", at=25, count=2),
    FakeFault(kind="size", at=30, count=2),
    FakeFault(kind="number", at=35, count=1),
    FakeFault(kind="freeze", at=40, seconds=4.0),
    FakeFault(kind="unplug", at=150, seconds=3.0),
)


@pytest.mark.slow
def test_faults_are_told_and_the_picture_comes_back(monkeypatch):
    est = d3s.estimate(*views(0), RIG)

    def quick(frame, rig, settings, *, serial, grabbed_s):
        """Result without an estimate, whose light identifies the image."""
        return LiveDepth(
            serial=serial,
            number=frame.number,
            name=str(np.sum(frame.counts, dtype=np.int64)),
            left=None,
            right=None,
            depth_map=est,
            light=None,
            grabbed_s=grabbed_s,
        )

    monkeypatch.setattr(module, "compute", quick)
    camera = LiveCamera(FakeDevice(FakeScript(rate_hz=20.0, faults=FAULTS)))
    shown: list[tuple[float, int]] = []
    last_serial = 0
    told: list[tuple[float, str, bool]] = []

    def note():
        nonlocal last_serial
        result = pipeline.results.read()
        if result is not None and result.serial > last_serial:  # and not the end of the source
            last_serial = result.serial
            shown.append((time.monotonic(), result.number))

    pipeline = Pipeline(camera, RIG)
    pipeline.results.listeners.append(note)
    with pipeline:
        end = time.monotonic() + 30
        while time.monotonic() < end and len(shown) < 110:
            status = pipeline.status()
            told.append((time.monotonic(), status["state"], status["stale"]))
            time.sleep(0.05)
        counts = pipeline.counts
    numbers = [number for _, number in shown]
    assert numbers == sorted(set(numbers))
    assert counts.lost_by_camera >= 3
    assert counts.broken == 2
    assert counts.refused == 2
    assert counts.out_of_order >= 2
    # Two outages: each is told within 2 s of its last frame, and over within 10 s.
    times = [at for at, _ in shown]
    gaps = [(before, after) for before, after in pairwise(times) if after - before > 2]
    assert len(gaps) == 2
    for before, after in gaps:
        assert after - before < 10
        seen = min(at for at, state, stale in told if at > before and (stale or "lost" in state))
        assert seen - before < 2
    assert told[-1][1] == "running"
