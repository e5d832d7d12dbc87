"""Recordings of processes that are killed: every frame but the last one comes back."""

import subprocess
import sys
import time

import numpy as np
import pytest

from d3s.camera.recording import Recording
from d3s.camera.recording.conversion import recover

# Writes frames as fast as it can, and prints the number of each that was handed over.
RECORD = """
import sys
import numpy as np
from d3s.frames import Frame
from d3s.camera.recording import RecordingWriter

rng = np.random.default_rng(1)
counts = rng.integers(0, 4096, (400, 600), dtype=np.uint16)
writer = RecordingWriter(sys.argv[1])
number = 0
while True:
    writer.write(Frame(number=number, counts=np.roll(counts, number), full_scale=4095))
    print(number, flush=True)
    number += 1
"""


def killed(path, delay_s):
    """Number of frames that a process had written when it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", RECORD, str(path)], stdout=subprocess.PIPE, text=True
    )
    first = process.stdout.readline()
    time.sleep(delay_s)
    process.kill()
    rest = process.stdout.read()
    process.stdout.close()
    process.wait()
    assert process.returncode == -9
    return len((first + rest).splitlines())


def check(path, folder, written):
    with Recording(path) as recording:
        frames = list(recording)
        assert recording.is_cut
    assert len(frames) in (written, written + 1)
    for number in (0, len(frames) - 1):
        expected = np.roll(frames[0].counts, number)
        np.testing.assert_array_equal(frames[number].counts, expected)
    target = folder / f"whole_{path.name}"
    assert recover(path, target).frames == len(frames)
    target.unlink()


def test_a_killed_process_leaves_every_frame(tmp_path):
    path = tmp_path / "a.mcap"
    check(path, tmp_path, killed(path, 0.1))


def test_a_limit_of_the_system_keeps_every_frame_but_the_last(tmp_path):
    """A file that may not grow any more, as on a full disk, by the limit of the process."""
    path = tmp_path / "a.mcap"
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, 2 * ({1_500_000},))"
    done = subprocess.run(
        [sys.executable, "-c", f"{limited}\n{RECORD}", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cannot be written further: File too large" in done.stderr
    check(path, tmp_path, len(done.stdout.splitlines()))


@pytest.mark.slow
def test_fifty_killed_processes_leave_every_frame(tmp_path):
    for number, delay_s in enumerate(np.random.default_rng(3).uniform(0, 0.4, 50)):
        path = tmp_path / f"{number}.mcap"
        check(path, tmp_path, killed(path, float(delay_s)))
        path.unlink()
