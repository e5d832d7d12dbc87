"""Memory that is kept: arrays apart from each other, given back whole, never lent twice."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3s.runtime.scratch import Scratch, borrow_scratch, release_scratch

_arrays = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 40), st.integers(0, 50)),
        st.sampled_from(["f4", "f8", "u1", "i2", "u2", "?"]),
    ),
    max_size=12,
)


@pytest.fixture(autouse=True)
def _nothing_kept():
    release_scratch()
    yield
    release_scratch()


def _ends(array: np.ndarray) -> tuple[int, int]:
    start = array.ctypes.data
    return start, start + array.nbytes


@given(wanted=_arrays)
def test_arrays_lie_apart_from_each_other(wanted):
    memory = Scratch()
    arrays = [memory.empty(shape, dtype) for shape, dtype in wanted]
    for array, (shape, dtype) in zip(arrays, wanted, strict=True):
        assert array.shape == shape
        assert array.dtype == dtype
        assert array.flags.carray
        assert array.ctypes.data % 64 == 0
    ends = sorted(_ends(array) for array in arrays if array.size)
    assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_part_gives_back():
    memory = Scratch()
    before = memory.empty((5,))
    with memory.part():
        inner = memory.empty((1000, 30))
        with memory.part():
            innermost = memory.empty((7,))
        again = memory.empty((7,))
        assert _ends(again) == _ends(innermost)
    after = memory.empty((1000, 30))
    assert _ends(after) == _ends(inner)
    assert not np.shares_memory(before, after)


def test_threads_never_share():
    wrong = []

    def caller(name: int) -> None:
        for _ in range(200):
            with borrow_scratch() as memory:
                array = memory.empty((64,), np.int64)
                array[:] = name
                if (array != name).any():
                    wrong.append(name)

    callers = [threading.Thread(target=caller, args=(name,), daemon=True) for name in range(6)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(timeout=60)
    assert not any(one.is_alive() for one in callers)
    assert not wrong


def test_memory_of_a_failed_call_is_not_used_again():
    # A thread that nobody waited for may still write to it.
    borrowed = []

    def fail() -> None:
        with borrow_scratch() as memory:
            borrowed.append(memory)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    with borrow_scratch() as again:
        assert again is not borrowed[0]
