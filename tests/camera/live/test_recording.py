"""Recording from the live page: what is recorded gives the same depth again, to the last bit."""

import time

import numpy as np
import pytest

from d3s.camera.capture import LiveCamera
from d3s.camera.capture.twin import TwinDevice, twin_pairs
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.results import LiveDepth, Settings, compute
from live_pages import RIG, SHAPE, answer_to, running_live, talk

pytest.importorskip("foxglove")

from d3s.camera.recording import Recorder, Recording


def test_replay_has_the_bytes_of_live_depth(tmp_path):
    path = tmp_path / "twin.mcap"
    camera = LiveCamera(TwinDevice(list(twin_pairs(RIG, shape=SHAPE, steps=3)), rate_hz=20.0))
    live: dict[int, LiveDepth] = {}
    pipeline = Pipeline(camera, RIG, new_recorder=lambda: Recorder(path, rig=RIG))
    pipeline.start_recording()

    def keep():
        result = pipeline.results.read()
        if result is not None:
            live[result.number] = result

    pipeline.results.listeners.append(keep)
    with pipeline:
        while len(live) < 4:
            time.sleep(0.01)
    with Recording(path) as recording:
        frames = {one.number: one for one in recording}
    assert len(frames) == pipeline.counts.recorded == pipeline.counts.grabbed
    assert set(live) <= set(frames)
    for number, result in live.items():
        again = compute(frames[number], RIG, Settings(), serial=1, grabbed_s=0.0).depth_map
        for name in ("depth_m", "sigma_m", "confidence", "flags"):
            before, after = getattr(result.depth_map, name), getattr(again, name)
            assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f")


def test_record_button(tmp_path):
    paths = (tmp_path / f"{number}.mcap" for number in range(9))

    def press(live, on):
        answer = talk(live.address, lambda socket: answer_to(socket, ask="record", on=on))
        assert ".mcap" in answer["text"]
        return answer["recording"]

    with running_live(new_recorder=lambda: Recorder(next(paths), rig=RIG)) as live:
        for _ in range(2):  # a file each
            assert press(live, True) is True
            before = live.pipeline.counts.recorded
            while live.pipeline.counts.recorded < before + 3:
                time.sleep(0.01)
            assert press(live, False) is False
        total = live.pipeline.counts.recorded
    sizes = []
    for path in sorted(tmp_path.glob("*.mcap")):
        with Recording(path) as recording:
            assert not recording.is_cut
            sizes.append(recording.frame_count)
    assert len(sizes) == 2
    assert sum(sizes) == total
