"""Calls in several processes: results, one thread each, and what ends in between."""

import math
import os
import time

import pytest
from d3s.runtime.processes import WorkerEndedError, call_in_processes

from d3s.errors import D3SError


def test_results_have_the_index_of_their_item():
    assert sorted(call_in_processes(math.sqrt, [1.0, 4.0, 9.0], 2)) == [
        (0, 1.0),
        (1, 2.0),
        (2, 3.0),
    ]


def test_a_worker_has_one_thread():
    names = ["D3S_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
    assert dict(call_in_processes(os.getenv, names, 1)) == {0: "1", 1: "1", 2: "1"}
    assert os.getenv("OPENBLAS_NUM_THREADS") != "1"


def test_an_error_of_ours_keeps_its_words():
    with pytest.raises(D3SError, match="is not there"):
        list(call_in_processes(_refuse, [1], 1))


def _refuse(item):
    raise D3SError(f"{item} is not there")


def test_a_worker_that_ends_is_told_with_its_exit_code():
    with pytest.raises(WorkerEndedError, match="ended with code 3 before its work was done"):
        list(call_in_processes(os._exit, [3, 3], 2))


def test_closing_ends_workers_in_the_middle_of_their_work():
    results = call_in_processes(time.sleep, [0.0, 600.0, 600.0], 2)
    assert next(results) == (0, None)
    started = time.monotonic()
    results.close()
    assert time.monotonic() - started < 60
