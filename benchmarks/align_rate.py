"""Frames a second that `d3s align` measures, with one page that shows them.

    .venv/bin/python benchmarks/align_rate.py [--seconds 15]

The twin is the camera, with raw frames of 3840 x 2160 pixels at 30 Hz. A client in a process of its
own asks for each measured frame and decodes its picture, as a page does. Asked: at least 2 frames a
second.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time

import aiohttp
import cv2
import numpy as np

from d3s.camera.align.feed import align_pages
from d3s.camera.align.session import Session
from d3s.camera.align.watch import Watch
from d3s.camera.capture import LiveCamera
from d3s.camera.capture.twin import TwinDevice, twin_raw
from d3s.camera.live.channel import unpacked
from d3s.camera.live.server import Server
from d3s.rig import Rig
from live import busy_s

RATE_HZ = 30.0
ASKED_HZ = 2.0
DISTANCE_M = 1.4  # of the wall of the twin


async def watch(address: str, seconds: float) -> None:
    """Ask for frames and decode their pictures."""
    origin = "/".join(address.split("/")[:3])
    end = time.monotonic() + seconds
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{address}align/socket", origin=origin, max_msg_size=0) as socket,
    ):
        while time.monotonic() < end:
            await socket.send_json({"ask": "next"})
            message = await socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                for one in unpacked(message.data)[1]:
                    cv2.imdecode(np.frombuffer(one, np.uint8), cv2.IMREAD_COLOR)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--watch", metavar="ADDRESS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.watch:
        asyncio.run(watch(given.watch, given.seconds))
        return
    rig = Rig.paper_prototype()
    camera = LiveCamera(TwinDevice(twin_raw(rig, steps=2), rate_hz=RATE_HZ))
    took_s: list[float] = []
    with Session(camera, Watch(rig, distance_m=DISTANCE_M)) as session:
        session.newest.listeners.append(lambda: took_s.append(session.newest.peek().seconds))
        with Server(align_pages(session)).running() as address:
            words = [sys.executable, __file__, "--watch", address]
            watcher = subprocess.Popen([*words, "--seconds", str(given.seconds + 60)])
            while len(took_s) < 3:  # loops are compiled first
                time.sleep(0.1)
            took_s.clear()
            begun, cpu, busy = time.monotonic(), time.process_time(), busy_s()
            watched = busy_s(watcher.pid)
            time.sleep(given.seconds)
            spent_s, cpu = time.monotonic() - begun, time.process_time() - cpu
            watched = busy_s(watcher.pid) - watched
            others = (busy_s() - busy - cpu - watched) / (spent_s * os.cpu_count())
            count, median_s = len(took_s), statistics.median(took_s)
            watcher.terminate()
            watcher.wait()
    rate_hz = count / spent_s
    print(
        f"{rate_hz:.1f} frames a second (asked >= {ASKED_HZ:g}: "
        f"{'yes' if rate_hz >= ASKED_HZ else 'no'}); a measurement takes {median_s:.2f} s, a frame "
        f"{cpu / count:.2f} s of processor time; other programs took {max(others, 0):.0%} of the "
        "cores"
    )


if __name__ == "__main__":
    main()
