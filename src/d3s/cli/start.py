"""Time since the command began, before the slow imports; Ctrl-C during them ends it in silence."""

import os
import signal
import time
from contextlib import suppress

_STARTED = time.perf_counter()


def interruptible() -> None:
    """Let Ctrl-C raise a `KeyboardInterrupt` again: the imports are done."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os._exit(130)  # `d3s.cli.output.INTERRUPTED`, which is not imported yet


with suppress(ValueError):  # not in the main thread
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def seconds_since_start() -> float:
    """Seconds since this module was imported, which `d3s.cli` does first."""
    return time.perf_counter() - _STARTED
