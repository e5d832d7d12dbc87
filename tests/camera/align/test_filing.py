"""Captures: checks, files, and nothing replaced."""

import numpy as np
import pytest

from align_frames import plain, wall
from d3s.calibrate.distance_table import TABLE_NAME, read_table
from d3s.camera.align.filing import CaptureFolder, check_frames, parsed_distances
from d3s.errors import CapturesError, InputError
from d3s.files import read_image


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: np.roll(frame, 3, axis=1), "moves by 3"),
        (lambda frame: 1.08 * frame, "brightness changes by 8 %"),
        (lambda frame: np.clip(frame * 2, 0, 1), "clipped"),
        (lambda _: wall(texture="stone"), "different things"),
        (lambda _: plain(), "no texture"),
        (lambda frame: frame[:-8], "size of the frames has changed"),
    ],
)
def test_bad_frames_are_refused(change, words):
    checked = check_frames([wall(), change(wall())])
    assert any(words in problem for problem in checked.problems), checked


def test_table_is_what_the_calibration_reads(tmp_path):
    folder = CaptureFolder(tmp_path / "new" / "captures")
    for distance in (0.5, 0.25, 0.8, 0.3, 1.2):
        assert folder.missing > 0
        folder.add(wall(), distance)
    assert folder.missing == 0
    rows = read_table(folder.folder)
    assert [row.distance_m for row in rows] == [0.25, 0.3, 0.5, 0.8, 1.2]
    image = read_image(folder.folder / rows[0].name)
    np.testing.assert_allclose(image, wall(), atol=1 / 65535)


def test_folder_is_continued_and_nothing_replaced(tmp_path):
    first = CaptureFolder(tmp_path)
    filed = first.add(wall(), 0.5)
    before = (tmp_path / filed.name).read_bytes()
    second = CaptureFolder(tmp_path)
    assert second.filed == (filed,)
    with pytest.raises(InputError, match=r"is filed as 0\.5000m\.png"):
        second.add(wall(seed=9), 0.5)
    second.take_back(filed.name)
    again = second.add(wall(seed=9), 0.5)
    assert again.name != filed.name
    assert (tmp_path / filed.name).read_bytes() == before
    assert filed.name not in (tmp_path / TABLE_NAME).read_text()


def test_damaged_table_is_refused(tmp_path):
    (tmp_path / TABLE_NAME).write_text("frame.png,near\n")
    with pytest.raises(CapturesError, match="no number"):
        CaptureFolder(tmp_path)


@pytest.mark.parametrize("distance", [0.0, -1.0, float("nan"), 400.0])
def test_impossible_distance_is_refused(tmp_path, distance):
    with pytest.raises(InputError):
        CaptureFolder(tmp_path).add(wall(), distance)
    assert not list(tmp_path.iterdir())


def test_distances_from_text():
    assert parsed_distances("0.3, 0.25 0.3;1") == (0.25, 0.3, 1.0)
    ten = parsed_distances("0.25:1.25:5")
    assert ten[0] == 0.25
    assert ten[-1] == 1.25
    np.testing.assert_allclose(np.diff(1 / np.array(ten)), -0.8, atol=0.01)


@pytest.mark.parametrize("text", ["", "near", "0.5:0.2:3", "0.2:0.5", "250", "0.2:0.5:1", "-1"])
def test_wrong_distances_are_named(text):
    with pytest.raises(InputError, match=r"metres|must be"):
        parsed_distances(text)
