"""benchmarks/damage.py: a changed byte costs what it is part of, and never a traceback."""

import sys

import pytest

from d3s.camera.recording import Recording
from d3s.camera.recording.conversion import recover
from d3s.frames import Refused
from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import damage

RECORDING, DEPTH_MAP, RIG = damage.KINDS


@pytest.mark.parametrize("kind", damage.KINDS, ids=lambda kind: kind.name)
def test_changes_of_one_byte(kind, tmp_path):
    found = damage.counts(kind, 200, 3, tmp_path)
    assert found.total() == 200
    assert not found["traceback"] + found["more lost"]
    # Only the notes of a recording and the digits of a rig have no checksum.
    assert found["other content"] <= {RIG.name: 20, RECORDING.name: 2}.get(kind.name, 0)


def test_each_byte_of_the_tables_of_a_recording(tmp_path):
    """Heads and indexes of frames, the first of which has the schemas, the rig, and the summary."""
    path = tmp_path / RECORDING.name
    RECORDING.make(path)
    expected, good = RECORDING.read(path), path.read_bytes()
    with Recording(path) as recording:
        chunks = [chunk for _, chunk in recording._frames]
        rig, length = recording._reader.attachments["rig.toml"]
    places = [chunks[0] + 69, rig + length - 400, chunks[-1] + 2509]
    places += range(chunks[2] - 200, chunks[2] + 57)
    for place in places:
        changed = bytearray(good)
        changed[place] ^= 1 + place % 255
        path.write_bytes(changed)
        assert damage.outcome(RECORDING, path, expected) in ("whole", "a part lost"), place


@pytest.mark.parametrize(("place", "value"), [(57, 192), (1009, 1)])
def test_the_first_frame_is_lost_alone(tmp_path, place, value):
    """Byte 57 of a chunk is the head of its compressed data: 192 makes it huge."""
    path = tmp_path / RECORDING.name
    RECORDING.make(path)
    with Recording(path) as recording:
        first = recording._frames[0][1]
    content = bytearray(path.read_bytes())
    content[first + place] ^= value
    path.write_bytes(content)
    assert recover(path, tmp_path / "mended.mcap").frames == 5
    with Recording(path) as recording:
        assert [isinstance(one, Refused) for one in recording] == [True] + 5 * [False]
