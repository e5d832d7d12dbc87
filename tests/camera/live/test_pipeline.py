"""The pipeline alone: newest wins, every loss is counted, no old frame is shown as new."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.camera.live import results
from d3s.camera.live.pipeline import STALE_S, Pipeline
from d3s.camera.live.results import Filter, Settings
from d3s.errors import InputError, OptionsError, OutputError
from d3s.frames import Frame, Refused
from d3s.runtime.parallel import thread_count
from live_pages import RIG, FakeCamera, views


def frame(number: int, **values) -> Frame:
    return Frame(number=number, views=views(number % 2), **values)


def wait_until(condition, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


@pytest.fixture
def quick(monkeypatch):
    """Estimates that take no time and give frames back unchanged."""
    est = d3s.estimate(*views(0), RIG)
    monkeypatch.setattr(results, "estimate_quietly", lambda *_, **__: est)
    return est


class Recorder:
    """Recorder in memory."""

    state = "recording"
    path = Path("memory.mcap")

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.refused: list[Refused] = []
        self.dropped = 0
        self.is_closed = False
        self.error: OutputError | None = None

    @property
    def written(self) -> int:
        return len(self.frames)

    def put(self, one: Frame) -> None:
        self.frames.append(one)

    def refuse(self, one: Refused) -> None:
        self.refused.append(one)

    def close(self) -> None:
        self.is_closed = True
        if self.error is not None:
            raise self.error


# Losses -------------------------------------------------------------------------------------------


def test_every_loss_is_counted_where_it_happened(quick):
    outcomes = [
        frame(0),
        frame(3, lost_before=2),
        frame(4, whole=False),
        Refused("frame 5", "of another size"),
        frame(6, camera_time_s=10.0),
        frame(2),  # late
        frame(7, camera_time_s=9.0),  # the clock went back
        frame(8, camera_time_s=9.1),  # and goes on from there
    ]
    recorder = Recorder()
    source = FakeCamera(outcomes)
    pipeline = Pipeline(source, RIG, drop=False, new_recorder=lambda: recorder)
    pipeline.start_recording()
    seen = []
    pipeline.results.listeners.append(lambda: seen.append(pipeline.results.read()))
    with pipeline:
        wait_until(lambda: pipeline.counts.computed == 4)
        counts = pipeline.counts
    numbers = [one.number for one in dict.fromkeys(filter(None, seen))]
    assert numbers == [0, 3, 6, 8]
    assert (counts.grabbed, counts.lost_by_camera, counts.broken) == (7, 2, 1)
    assert (counts.refused, counts.out_of_order, counts.failed) == (1, 2, 0)
    assert (counts.not_computed, counts.not_shown) == (0, 0)
    assert [one.number for one in recorder.frames] == [0, 3, 4, 6, 2, 7, 8]
    assert recorder.refused == [Refused("frame 5", "of another size")]
    assert recorder.is_closed
    assert counts.recorded == 7


def test_newest_frame_is_computed_while_others_are_dropped(monkeypatch, quick):
    free = threading.Event()

    def slow(*_, **__):
        free.wait(30)
        return quick

    monkeypatch.setattr(results, "estimate_quietly", slow)
    recorder = Recorder()
    with Pipeline(FakeCamera(map(frame, range(50))), RIG, new_recorder=lambda: recorder) as line:
        wait_until(lambda: line.counts.grabbed == 50)
        free.set()
        wait_until(lambda: line.counts.computed == 2 or line.counts.computed == 1)
        wait_until(lambda: line.results.peek() is not None and line.results.peek().number == 49)
        counts = line.counts
    assert counts.computed + counts.not_computed == 50
    assert counts.not_computed >= 48


def test_two_frames_are_computed_at_once_and_an_older_result_is_dropped(monkeypatch, quick):
    begun, ended, shares = [], {0: threading.Event(), 1: threading.Event()}, []

    def slow(left, *_, **__):
        number = 1 if begun else 0
        begun.append(number)
        shares.append(thread_count())
        ended[number].wait(30)
        return quick

    monkeypatch.setenv("D3S_THREADS", "4")
    monkeypatch.setattr(results, "estimate_quietly", slow)

    def outcomes():
        yield frame(0)
        wait_until(lambda: begun)
        yield frame(1)

    with Pipeline(FakeCamera(outcomes()), RIG) as pipeline:
        wait_until(lambda: len(begun) == 2)
        ended[1].set()
        wait_until(lambda: pipeline.counts.computed == 1)
        pipeline.results.read()
        ended[0].set()
        wait_until(lambda: pipeline.counts.computed == 2)
        newest = pipeline.results.peek()
        counts = pipeline.counts
    assert newest.number == 1
    assert counts.not_shown == 1
    assert shares == [4, 2]  # the first frame began alone


def test_failed_recording_is_told_and_everything_is_closed(quick):
    recorder = Recorder()
    recorder.state = "failed: the disk is full"
    recorder.error = OutputError("the disk is full")
    pipeline = Pipeline(FakeCamera(), RIG, new_recorder=lambda: recorder)
    pipeline.start_recording()
    pipeline.__enter__()
    wait_until(lambda: pipeline.counts.computed > 0)
    assert "disk is full" in pipeline.state
    with pytest.raises(OutputError, match="full"):
        pipeline.close()
    assert recorder.is_closed
    assert not any(thread.is_alive() for thread in pipeline._threads)


def test_frames_that_do_not_fit_are_counted_and_told():
    raw = Frame(number=0, raw=np.zeros((20, 40), np.float32))
    with Pipeline(FakeCamera([raw]), RIG) as pipeline:
        wait_until(lambda: pipeline.counts.failed == 1)
        assert "calibrat" in pipeline.state
        assert pipeline.results.peek() is None


def test_source_that_fails_or_ends_is_told():
    class Failing(FakeCamera):
        def __iter__(self):
            raise InputError("the cable is cut")
            yield

    with Pipeline(Failing(), RIG) as pipeline:
        wait_until(lambda: "cable is cut" in pipeline.state)

    class Short(FakeCamera):
        def __iter__(self):
            yield frame(0)

    with Pipeline(Short(), RIG) as pipeline:
        wait_until(lambda: "ended" in pipeline.state)
        wait_until(lambda: pipeline.silent_s > STALE_S)
        assert not pipeline.is_stale


# Light and settings -------------------------------------------------------------------------------


def test_settings_change_by_name_and_are_checked():
    settings = Settings().changed({"options": {"finest_scale": 2}, "min_confidence": 0.7})
    assert settings.options.finest_scale == 2
    assert settings.shown == Filter(min_confidence=0.7)
    again = settings.changed({"options": {"rounds": 1}})
    assert (again.options.finest_scale, again.options.rounds) == (2, 1)
    assert again.version == 2
    back = again.changed({"options": {"finest_scale": None}, "min_confidence": None})
    assert back.options.finest_scale == 1
    assert back.shown == Filter()
    for wrong in (
        {"method": "bm"},
        {"shown": 1},
        {"options": 3},
        {"carried": 1},
        {"max_sigma_m": "x"},
    ):
        with pytest.raises(InputError):
            settings.changed(wrong)
    with pytest.raises(OptionsError):
        settings.changed({"options": {"finest_scale": 9}})
