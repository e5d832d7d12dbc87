"""Work on every frame, on all cores."""

import threading

import pytest

from d3s.calibrate.frames import on_each_frame


def test_what_is_found_comes_in_the_order_of_the_frames():
    assert on_each_frame(lambda number: number**2, 7) == [0, 1, 4, 9, 16, 25, 36]


def test_frames_are_worked_on_at_the_same_time(monkeypatch):
    monkeypatch.setenv("D3S_THREADS", "2")
    both = threading.Barrier(2, timeout=20)
    on_each_frame(lambda _: both.wait(), 4)  # each waits for another


@pytest.mark.parametrize("threads", ["1", "3"])
def test_progress_ends_at_all_frames(monkeypatch, threads):
    monkeypatch.setenv("D3S_THREADS", threads)
    told = []
    on_each_frame(lambda _: None, 4, lambda *done: told.append(done))
    assert told == sorted(told)
    assert told[-1] == (4, 4)


def test_no_frames_are_no_work():
    assert on_each_frame(lambda number: 1 / 0, 0) == []


def test_an_error_is_raised():
    with pytest.raises(ZeroDivisionError):
        on_each_frame(lambda number: 1 / (number - 3), 4)
