"""Memory that is freed: kept in the process, or given back, by the C library's allocator."""

import ctypes
import sys

# Parameters of mallopt in <malloc.h> of the GNU C library.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_LARGEST_ON_HEAP_BYTES = 32 << 20  # the most that the library allows
_KEPT_BYTES = 256 << 20
_STEP_BYTES = 64 << 20


def keep_freed_memory() -> bool:
    """Keep up to 256 MB of freed memory for later arrays; returns whether the library does.

    A frame needs the same arrays as the frame before. Without this, their memory may go back to the
    system after every array, and every page of the next array is cleared again. That takes much of
    the time of a frame where `MALLOC_TRIM_THRESHOLD_` is small, as Dask sets it for its workers.
    Other C libraries than that of GNU are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return False
    settings = (
        (_MMAP_THRESHOLD, _LARGEST_ON_HEAP_BYTES),
        (_TRIM_THRESHOLD, _KEPT_BYTES),
        (_TOP_PAD, _STEP_BYTES),
    )
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    accepted = [mallopt(name, value) == 1 for name, value in settings]
    return all(accepted)


def give_back_freed_memory() -> bool:
    """Give freed memory back to the system; returns whether the library gave any.

    Threads free their arrays between arrays that stay: the next step, with arrays of other sizes,
    cannot use these gaps. Other C libraries than that of GNU are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return False
    return bool(trim(ctypes.c_size_t(0)))
