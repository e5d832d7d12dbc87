"""`d3s.check` finds what was moved, leaves what was not, and says when it cannot know."""

import cv2
import numpy as np
import pytest

import d3s
from check_frames import small_rig
from d3s.check.mend import mended
from d3s.check.noise_and_spots import find_spots, measure_noise
from d3s.errors import InputError
from d3s.rig.bayer import luminance_noise, on_sites


def before(rig, **drift):
    """Rig as it was before a drift: the frames show the camera after it."""
    return mended(rig, {name: -value for name, value in drift.items()})


@pytest.fixture(scope="module")
def good(rig, frames):
    return d3s.check(rig, frames)


def test_moved_lens_is_found_and_mended(rig, frames, tmp_path):
    drift = {"rows_px": 0.6, "roll_rad": -np.radians(0.2), "scale": 3e-3}
    report = d3s.check(before(rig, **drift), frames)
    assert report.verdict == "drifted"
    for name, value in drift.items():
        found = report[name]
        assert found.state == "drifted"
        assert abs(found.value - value) < max(0.15 * abs(value), 3 * found.sigma)
    assert set(report.drift) == set(drift)
    new = report.mended_rig.calibration
    assert new.rectify_scale == pytest.approx(rig.calibration.rectify_scale, abs=4e-4)
    assert new.rectify_angle_rad == pytest.approx(rig.calibration.rectify_angle_rad, abs=4e-4)
    assert new.anchor_right_px == pytest.approx(rig.calibration.anchor_right_px, abs=0.1)
    # Its history says what was changed, and survives the file.
    path = tmp_path / "new.toml"
    report.mended_rig.save(path)
    loaded = d3s.Rig.load(path)
    assert loaded == report.mended_rig
    (change,) = loaded.calibration.history
    assert change.drift["rows_px"] == report["rows_px"].value
    assert change.frames == 6
    assert "rows" in change.reason
    assert loaded.calibration.drift_sigma_px > 0
    assert loaded.rectification_sigma_px() >= loaded.calibration.drift_sigma_px
    # Years have passed since the calibration, so the drift in a year is known.
    assert 0 < loaded.calibration.drift_px_per_year < 1
    assert d3s.check(loaded, frames).verdict == "steady"


def test_brighter_and_uneven_lens_is_found_and_mended(rig, frames):
    cols = frames[0].shape[1] // 2
    slope = 1.05 + 0.12 * (np.arange(cols) - cols / 2) / (cols / 2)
    uneven = [frame.copy() for frame in frames]
    for frame in uneven:
        frame[:, :cols] *= slope.astype(np.float32)
    report = d3s.check(rig, uneven)
    assert report["gain"].value == pytest.approx(0.05, abs=0.01)
    assert report["shading_x"].value == pytest.approx(0.12 * 280 / 320, abs=0.02)
    assert {"gain", "shading_x"} <= set(report.drift)
    assert d3s.check(report.mended_rig, uneven).verdict == "steady"


def test_other_focus_is_found(rig, frames):
    report = d3s.check(before(rig, focus_dpt=0.2), frames)
    found = report["focus_dpt"]
    assert found.state == "drifted"
    assert found.value == pytest.approx(0.2, abs=max(0.06, 3 * found.sigma))


def test_pairs_of_views_can_be_checked(rig, frames):
    old = before(rig, rows_px=0.7, scale=2e-3)
    pairs = [old.split(frame) for frame in frames]
    report = d3s.check(old, pairs)
    assert report["rows_px"].value == pytest.approx(0.7, abs=0.15)
    assert report["scale"].value == pytest.approx(2e-3, abs=5e-4)
    assert report["noise"].state == "unknown"


def test_rig_without_a_calibration_is_checked_and_cannot_be_mended(rig, frames):
    bare = d3s.Rig.paper_prototype()
    views = [rig.split(frame) for frame in frames]
    moved = [(left, np.roll(right, 1, axis=0)) for left, right in views]
    report = d3s.check(bare, moved)
    assert report["rows_px"].value == pytest.approx(1.0, abs=0.15)
    assert not report.can_mend
    with pytest.raises(InputError, match="rectified elsewhere"):
        _ = report.mended_rig


def test_plain_walls_tell_nothing(rig):
    rng = np.random.default_rng(0)
    plain = [0.5 + 0.005 * rng.standard_normal((240, 640)).astype(np.float32) for _ in range(6)]
    report = d3s.check(rig, plain)
    assert report.verdict == "unknown"
    assert report.drift == {}
    assert "texture" in " ".join(report.remarks)


@pytest.mark.parametrize(("sigma", "state"), [(0.005, "steady"), (0.01, "drifted")])
def test_noise_is_compared_with_the_calibration(rig, sigma, state):
    rng = np.random.default_rng(5)
    slope = np.linspace(0.3, 0.7, 640, dtype=np.float32)
    raws = [slope + sigma * rng.standard_normal((240, 640), np.float32) for _ in range(2)]
    found = measure_noise(raws, rig.calibration)
    assert found.state == state
    assert found.value == pytest.approx(sigma / 0.005 - 1, abs=0.05)


@pytest.mark.parametrize(("factor", "state"), [(1.0, "steady"), (2.0, "drifted")])
@pytest.mark.parametrize("order", ["RGGB", "GRBG"])
def test_noise_of_a_colour_sensor_is_that_of_its_green_pixels(order, factor, state):
    gains = (2.0, 1.0, 1.5)
    noise = np.sqrt(luminance_noise(gains).read) * 0.005  # as a calibration has it
    calibration = small_rig(bayer=order, channel_gains=gains, noise_read=noise).calibration
    rng = np.random.default_rng(6)
    filters = on_sites([1 / one for one in gains], order, (240, 640))
    grey = np.linspace(0.3, 0.7, 640, dtype=np.float32) * filters
    raws = [grey + factor * 0.005 * rng.standard_normal((240, 640), np.float32) for _ in range(2)]
    found = measure_noise(raws, calibration)
    assert found.state == state
    assert found.value == pytest.approx(factor - 1, abs=0.1)


def test_notes_name_unsaid_colours_and_what_was_not_checked(rig, frames):
    shares = on_sites((0.5, 1.0, 0.6), "RGGB", frames[0].shape)
    coloured = d3s.check(rig, [frame * shares for frame in frames[:2]])
    assert "frame 0 looks like the raw frame of a colour sensor" in coloured.notes[0]
    said = small_rig(bayer="RGGB", channel_gains=(2.0, 1.0, 1 / 0.6))
    (note,) = d3s.check(said, [frame * shares for frame in frames[:2]]).notes
    assert "Disparity was not checked" in note


def test_a_board_that_only_comes_nearer_is_one_scene():
    noise = np.random.default_rng(3).standard_normal((480, 640)).astype(np.float32)
    marks = 0.5 + 0.8 * cv2.GaussianBlur(noise, (0, 0), 3)
    raws = []
    for share in np.geomspace(1, 0.5, 6):  # of the board that is seen
        rows, cols = round(480 * share), round(640 * share)
        top, start = (480 - rows) // 2, (640 - cols) // 2
        view = cv2.resize(marks[top : top + rows, start : start + cols], (320, 240))
        raws.append(np.hstack([view, view]))
    found = find_spots(raws, small_rig().calibration)
    assert found.reason == "the frames show one scene. Take frames of others."


def test_dirt_is_counted(good, rig, frames):
    assert good["spots"].value == 0
    dirty = [frame.copy() for frame in frames]
    for frame in dirty:
        frame[100:116, 100:116] *= 0.3
    report = d3s.check(rig, dirty)
    assert report["spots"].value >= 1
    assert "Clean" in " ".join(report.remarks)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([], "no frames"),
        ([np.zeros((240, 640, 3))], "Turn colour into grey"),
        ([np.zeros((100, 100), np.float32)], "calibrated for"),
        ([(np.zeros((9, 9), np.float32), np.zeros((9, 8), np.float32))], "one size"),
    ],
)
def test_wrong_frames_are_refused(rig, frames, words):
    with pytest.raises(InputError, match=words):
        d3s.check(rig, frames)
