"""Many clients: 20 at once, 5 of them stalled, and 100 that vanish. The capture goes on."""

import gc
import json
import os
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path

import pytest

from d3s.camera.capture.live_camera import LiveCamera
from d3s.camera.capture.twin import TwinDevice, twin_pairs
from d3s.camera.live.feed import Feed
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.server import Server
from live_pages import RIG, SHAPE

MOST_GROWTH_BYTES = 30e6  # of pictures in buffers of sockets; one frame that leaks is 0.5 MB


def memory_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def crowd(address, origin, seconds) -> list[int]:
    """Frames that each watcher got, in a process of its own."""
    program = Path(__file__).parents[2] / "helpers" / "crowd.py"
    found = subprocess.run(
        [sys.executable, program, address, origin, str(seconds)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=seconds + 60,
    )
    return json.loads(found.stdout)


# Slowly in the quick test: on a busy machine, any thread may wait for a tenth of a second.
@pytest.mark.parametrize(
    ("seconds", "rate_hz"), [(4.0, 5.0), pytest.param(40.0, 20.0, marks=pytest.mark.slow)]
)
def test_crowd_costs_the_capture_nothing(seconds, rate_hz):
    device = TwinDevice(list(twin_pairs(RIG, shape=SHAPE, steps=2)), rate_hz=rate_hz)
    with Pipeline(LiveCamera(device), RIG) as pipeline:
        feed = Feed(pipeline, title="crowd")
        server = Server([feed.page()])
        with server.running() as address:
            origin = f"http://127.0.0.1:{server.gate.port}"
            socket = f"{address}live/socket"
            crowd(socket, origin, 1.0)  # loops are compiled, buffers filled
            memory_before, before = memory_bytes(), pipeline.counts
            threads = threading.active_count()
            frames = crowd(socket, origin, seconds)
            after, memory = pipeline.counts, memory_bytes()
            _wait(lambda: server.clients == 0)
            assert threading.active_count() <= threads + 2
        feed.close()
    grabbed = after.grabbed - before.grabbed
    lost = after.lost_by_camera - before.lost_by_camera
    assert grabbed > 0.5 * rate_hz * seconds
    assert lost < 0.05 * (grabbed + lost)
    assert min(frames) > 0.25 * (after.computed - before.computed)
    assert memory - memory_before < MOST_GROWTH_BYTES
    assert len(feed._kept) <= 4


def _wait(condition, timeout_s: float = 20.0) -> None:
    for _ in count():
        if condition():
            return
        timeout_s -= 0.05
        assert timeout_s > 0
        time.sleep(0.05)
