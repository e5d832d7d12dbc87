"""`d3s depth` of a folder, killed again and again."""

import os
import random
import time
from pathlib import Path

import pytest

from killable import KillableCli
from pairs import PINHOLE, write_views

FRAMES = 8


def contents(folder: Path) -> dict[str, bytes]:
    """Results in a folder; the table has times, and is another one after each run."""
    paths = folder.iterdir() if folder.exists() else ()
    return {path.name: path.read_bytes() for path in paths if path.name != "frames.csv"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs copies of a process")
def test_killed_again_and_again_and_resumed_it_writes_the_same(tmp_path):
    """Nothing is lost, double, cut or left over.

    Kills so often as D3S_TEST_KILLS says: `D3S_TEST_KILLS=100 pytest -m slow` on this file.
    """
    (tmp_path / "in").mkdir()
    for i in range(FRAMES):
        write_views(tmp_path / f"in/{i}_left.png", tmp_path / f"in/{i}_right.png", seed=i)
    command = ["depth", tmp_path / "in", *PINHOLE, "--quiet", "--output"]
    chance = random.Random(0)
    kills = finished = left_over = 0
    with KillableCli([*command, tmp_path / "first"]) as cli:
        assert cli.first_code == 0
        started = time.perf_counter()
        assert cli.run([*command, tmp_path / "whole"], folder=tmp_path / "whole") == 0
        time_s = time.perf_counter() - started
        whole = contents(tmp_path / "whole")
        assert len(whole) == 4 * FRAMES  # with the file of the camera
        while kills < int(os.environ.get("D3S_TEST_KILLS", "30")):
            out = tmp_path / f"out{finished}"
            # By turns at a step of the writing, and at whatever moment it may be.
            if kills % 2:
                code = cli.run([*command, out], folder=out, step=chance.randrange(1, 40))
            else:
                code = cli.run([*command, out], folder=out, delay_s=chance.uniform(0, time_s / 2))
            found = contents(out)
            if code == 0:  # it came to its end before
                assert found == whole
                finished += 1
                continue
            assert code == -9
            kills += 1
            unfinished = {name for name in found if name.endswith(".tmp")}
            left_over += len(unfinished)
            assert all(found[name] == whole[name] for name in found.keys() - unfinished)
        out = tmp_path / f"out{finished}"
        assert cli.run([*command, out], folder=out) == 0
    assert contents(out) == whole
    assert left_over
