"""The pipeline alone: newest wins, every loss is counted, no old frame is shown as new."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.camera.live import results
from d3s.camera.live.pipeline import STALE_S, Pipeline, Rate
from d3s.camera.live.settings import Filter, Settings
from d3s.camera.live.slot import Newest, Slot, Stagger
from d3s.errors import InputError, OptionsError, OutputError
from d3s.frames import Frame, Refused
from d3s.runtime.parallel import thread_count
from live_pages import DEPTHS_M, RIG, FakeCamera, views


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


# Slots --------------------------------------------------------------------------------------------


def test_slot_keeps_the_newest_and_counts_the_rest():
    slot: Slot[int] = Slot()
    for number in range(5):
        slot.put(number)
    assert slot.take() == 4
    assert slot.replaced == 4
    slot.put(7)
    slot.close()
    assert slot.take() == 7
    assert slot.take() is None
    slot.put(8)
    assert slot.take() is None


def test_slot_can_wait_instead():
    slot: Slot[int] = Slot()
    given = list(range(20))
    thread = threading.Thread(target=lambda: [slot.put_and_wait(one) for one in given])
    thread.start()
    assert [slot.take() for _ in given] == given
    thread.join()
    assert slot.replaced == 0


def test_newest_counts_what_nobody_read():
    newest: Newest[int] = Newest()
    calls = []
    newest.listeners.append(lambda: calls.append(newest.peek()))
    for number in range(4):
        newest.put(number)
    assert newest.read() == newest.read() == 3
    newest.put(4)
    newest.put(5)
    assert newest.unread == 4
    assert calls == [0, 1, 2, 3, 4, 5]


def test_rate_falls_when_events_stop(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rate = Rate(3.0)
    assert rate.per_s() == 0
    for _ in range(20):
        rate.tick()
        now[0] += 0.1
    assert rate.per_s() == pytest.approx(10)
    now[0] += 1.0
    assert rate.per_s() < 8
    now[0] += 10
    assert rate.per_s() == 0


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


def test_frames_of_files_are_computed_one_by_one(monkeypatch, quick):
    under_way, most = [0], [0]

    def counted(*_, **__):
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        under_way[0] -= 1
        return quick

    monkeypatch.setattr(results, "estimate_quietly", counted)
    with Pipeline(FakeCamera(map(frame, range(6))), RIG, drop=False) as pipeline:
        wait_until(lambda: pipeline.counts.computed == 6)
    assert most == [1]


def test_turns_are_numbered_and_apart():
    items = iter(range(3))
    stagger: Stagger[int] = Stagger(lambda: next(items, None), 2)
    first = stagger.begin()
    time.sleep(0.2)
    stagger.end(first)
    second = stagger.begin()  # at once: no other is under way
    third = stagger.begin()  # 0.4 of the 0.2 s that the first one took
    assert [one.item for one in (first, second, third)] == [0, 1, 2]
    assert [one.number for one in (first, second, third)] == [1, 2, 3]
    assert [one.at_once for one in (first, second, third)] == [1, 1, 2]
    assert third.begun_s - second.begun_s >= 0.08
    assert stagger.begin() is None


def test_recording_gets_frames_that_the_display_drops(monkeypatch, quick):
    monkeypatch.setattr(results, "estimate_quietly", lambda *_, **__: time.sleep(0.05) or quick)
    recorder = Recorder()
    pipeline = Pipeline(FakeCamera(map(frame, range(200))), RIG, new_recorder=lambda: recorder)
    pipeline.start_recording()
    assert pipeline.is_recording
    with pipeline:
        wait_until(lambda: pipeline.counts.grabbed == 200)
        assert pipeline.counts.not_computed > 100
        pipeline.stop_recording()
    assert [one.number for one in recorder.frames] == list(range(200))
    assert not pipeline.is_recording
    assert pipeline.counts.recorded == 200


def test_failed_recording_is_told_and_everything_is_closed(quick):
    recorder = Recorder()
    recorder.state = "failed: the disk is full"
    recorder.error = OutputError("the disk is full")
    pipeline = Pipeline(FakeCamera(), RIG, new_recorder=lambda: recorder)
    pipeline.start_recording()
    pipeline.start()
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


def test_depth_is_that_of_the_frame():
    with Pipeline(FakeCamera(), RIG) as pipeline:
        wait_until(lambda: pipeline.counts.computed >= 3)
        result = pipeline.results.read()
        assert pipeline.state == "running"
    depth_m = float(np.nanmedian(result.depth_map.depth_m))
    assert depth_m == pytest.approx(DEPTHS_M[result.number % 2], abs=0.02)
    assert result.light is not None
    assert result.estimate_s > 0
    assert not any(thread.is_alive() for thread in pipeline._threads)


# Light and settings -------------------------------------------------------------------------------


def test_light_of_counts_raw_and_views():
    counts = np.full((40, 60), 1000, np.uint16)
    counts[:10] = 4095
    counts[10:15] = 0
    light = results.measure_light(Frame(number=0, counts=counts, full_scale=4095))
    assert (light.white, light.black) == (0.25, 0.125)
    assert light.histogram[results.BINS * 1000 // 4095] == pytest.approx(0.625)
    raw = np.full((40, 60), 0.5, np.float32)
    raw[0] = np.nan
    light = results.measure_light(Frame(number=0, raw=raw))
    assert light.histogram[results.BINS // 2] == 1
    light = results.measure_light(Frame(number=0, views=(raw, np.ones_like(raw))))
    assert light.white == pytest.approx(40 / 79)
    assert sum(light.histogram) == pytest.approx(1)


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
    other = again.changed({"method": "sgbm"})
    assert other.method == "sgbm"
    assert other.options == type(other.options)()
    for wrong in ({"method": "nope"}, {"shown": 1}, {"carried": 1}, {"max_sigma_m": "x"}):
        with pytest.raises(InputError):
            settings.changed(wrong)
    with pytest.raises(OptionsError):
        settings.changed({"options": {"finest_scale": 9}})


def test_filter_is_applied_once_for_the_same_limits():
    result = results.compute(frame(0), RIG, Settings(), serial=1, grabbed_s=0.0)
    limits = Filter(max_sigma_m=1e-4)
    assert result.shown(Filter()) is result.depth_map
    assert result.shown(limits) is result.shown(limits)
    assert result.shown(limits).density < result.depth_map.density
