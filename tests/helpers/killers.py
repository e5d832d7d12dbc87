"""Threads that kill workers every so often, for tests and benchmarks of what is left then."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable


class Killer(threading.Thread):
    """Calls a function every so often until it is stopped."""

    def __init__(self, kill: Callable[[int], int], every_s: float) -> None:
        super().__init__(daemon=True)
        self._kill, self._every_s, self._ended = kill, every_s, threading.Event()
        self.kills = 0

    def run(self) -> None:
        while not self._ended.wait(self._every_s):
            self.kills += self._kill(self.kills)

    def begin(self, done: int, total: int) -> None:
        """Begin with the first frame: workers are there then."""
        if done == 1:
            self.start()

    def end(self) -> None:
        self._ended.set()
        if self.is_alive():
            self.join()


def kill_a_process(number: int) -> int:
    told = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    own = [line.split()[0] for line in told.stdout.splitlines() if "multiprocessing.spawn" in line]
    if own:
        os.kill(int(own[number % len(own)]), signal.SIGKILL)
    return bool(own)
