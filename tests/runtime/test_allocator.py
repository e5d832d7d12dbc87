"""Freed memory: kept in the process, without clearing its pages again, or given back."""

import os
import platform
import subprocess
import sys

import pytest

RESIDENT = """
import numpy as np
from d3s.runtime.allocator import give_back_freed_memory

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1])

arrays = [np.ones(1 << 13) for _ in range(1600)]
before = resident()
del arrays[:-1]  # the last one stays behind the others
kept = resident()
assert give_back_freed_memory()
print(before - kept, before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs the GNU C library")
def test_memory_before_an_array_that_stays_is_given_back():
    command = [sys.executable, "-c", RESIDENT]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    kept, given = (int(word) for word in told.stdout.split())
    whole = 1599 * (1 << 16) // os.sysconf("SC_PAGE_SIZE")
    assert kept < 0.05 * whole
    assert given > 0.9 * whole
