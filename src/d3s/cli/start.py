"""Time since the command began, before the slow imports."""

import time

_STARTED = time.perf_counter()


def seconds_since_start() -> float:
    """Seconds since this module was imported, which `d3s.cli` does first."""
    return time.perf_counter() - _STARTED
