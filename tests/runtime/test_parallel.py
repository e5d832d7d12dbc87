"""Rows shared out among threads: each row once, in any number, from anywhere."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from d3s.errors import InputError
from d3s.runtime.parallel import beside_others, run_over_rows, run_together, thread_count


@pytest.mark.parametrize(("text", "count"), [("1", 1), (" 3 ", 3), ("1024", 1024), ("007", 7)])
def test_as_many_threads_as_told(monkeypatch, text, count):
    monkeypatch.setenv("D3S_THREADS", text)
    assert thread_count() == count


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "two", "1025", "9" * 30, "²"])
def test_number_of_threads_that_is_none(monkeypatch, text):
    monkeypatch.setenv("D3S_THREADS", text)
    with pytest.raises(InputError) as caught:
        thread_count()
    assert str(caught.value) == f"D3S_THREADS={text!r} must be a whole number from 1 to 1024."


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 17, 101])
def test_each_row_is_done_once(monkeypatch, threads, rows):
    monkeypatch.setenv("D3S_THREADS", str(threads))
    times, bands = np.zeros(rows, dtype=int), []

    def kernel(start, stop, out, step):
        bands.append((start, stop))
        out[start:stop] += step

    run_over_rows(kernel, rows, times, 1)
    assert times.tolist() == [1] * rows
    assert len(bands) == min(threads, rows)
    # No band is empty, and none is more than one row longer than another.
    lengths = [stop - start for start, stop in bands]
    assert not bands or (min(lengths) >= 1 and max(lengths) - min(lengths) <= 1)


@pytest.mark.parametrize("threads", ["1", "2", "9"])
def test_results_come_in_the_order_of_the_works(monkeypatch, threads):
    monkeypatch.setenv("D3S_THREADS", threads)
    assert run_together() == []
    assert run_together(lambda: 5) == [5]
    assert run_together(*(lambda n=n: n * n for n in range(20))) == [n * n for n in range(20)]


def test_works_are_done_at_the_same_time(monkeypatch):
    monkeypatch.setenv("D3S_THREADS", "3")
    barrier = threading.Barrier(3, timeout=20)  # one after the other, they would wait for ever
    assert sorted(run_together(*[barrier.wait] * 3)) == [0, 1, 2]


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("wrong", [(0,), (2,), (1, 3), (0, 3), (0, 1, 2, 3)])
def test_first_error_is_the_one_that_is_raised(monkeypatch, threads, wrong):
    monkeypatch.setenv("D3S_THREADS", threads)

    def work(number):
        if number in wrong:
            raise KeyError(number)
        return number

    with pytest.raises(KeyError) as caught:
        run_together(*(lambda n=n: work(n) for n in range(4)))
    assert caught.value.args == (min(wrong),)


def test_no_work_goes_on_after_an_error(monkeypatch):
    # Whoever catches it may throw away the arrays that the others write to.
    monkeypatch.setenv("D3S_THREADS", "2")
    begun, done = threading.Event(), threading.Event()

    def slow():
        begun.set()
        threading.Event().wait(0.05)
        done.set()

    def fail():
        begun.wait(20)
        raise KeyError("first")

    with pytest.raises(KeyError):
        run_together(fail, slow)
    assert done.is_set()


NESTED = """
import threading
from d3s.runtime.parallel import run_together

COUNT = 64
met = threading.Barrier(COUNT)

def outer():
    met.wait()
    return run_together(int, int)

callers = [threading.Thread(target=run_together, args=(int, outer)) for _ in range(COUNT)]
for one in callers:
    one.start()
for one in callers:
    one.join()
print("done")
"""


def test_many_calls_within_calls_do_not_wait_for_each_other():
    result = subprocess.run(
        [sys.executable, "-c", NESTED],
        env={**os.environ, "D3S_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=60,  # of a wait without end; a busy machine takes seconds to start it
        check=True,
    )
    assert result.stdout == "done\n"


def test_callers_share_the_threads(monkeypatch):
    monkeypatch.setenv("D3S_THREADS", "5")
    with beside_others(2):
        assert thread_count() == 2
        out = np.zeros((400, 300))
        run_over_rows(_number_rows, 400, out)
        with beside_others(9):
            assert thread_count() == 1
        assert thread_count() == 2
    assert thread_count() == 5
    assert (out == np.arange(400)[:, np.newaxis]).all()


def _number_rows(start, stop, out):
    out[start:stop] = np.arange(start, stop)[:, np.newaxis]
