"""Time since the command began, before the slow imports; Ctrl-C during them ends it in silence."""

import os
import signal
import threading
import time

_STARTED = time.perf_counter()


_INTERRUPTED = 130


def interruptible() -> None:
    """Let Ctrl-C raise a `KeyboardInterrupt` again: the imports are done."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os._exit(_INTERRUPTED)


if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _end)


def seconds_since_start() -> float:
    """Seconds since this module was imported, which `d3s.cli` does first."""
    return time.perf_counter() - _STARTED
