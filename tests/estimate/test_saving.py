"""Depth maps to files and back."""

import dataclasses

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.errors import InputError, OutputError
from d3s.estimate.methods import METHODS
from d3s.files import ply

RIG = d3s.Rig.paper_prototype()
LAYERS = ("depth_m", "sigma_m", "confidence", "flags", "intensity")


@pytest.fixture(scope="module")
def pair():
    return d3s.simulate(d3s.Plane(depth_m=0.8), RIG, shape=(60, 130), noise=0.01, seed=2)


@pytest.fixture(scope="module")
def made(pair):
    options = d3s.JointOptions(depth_range_m=(0.5, 1.5), windows_px=(9, 23))
    return d3s.estimate(pair.left, pair.right, RIG, options=options)


def assert_same(found: d3s.DepthMap, expected: d3s.DepthMap) -> None:
    for one in dataclasses.fields(d3s.DepthMap):
        value, wanted = getattr(found, one.name), getattr(expected, one.name)
        if isinstance(wanted, np.ndarray):
            assert value.dtype == wanted.dtype
            assert value.tobytes() == wanted.tobytes()
            assert value.shape == wanted.shape
        else:
            assert value == wanted
            assert type(value) is type(wanted)


def test_intensity_is_the_left_view_itself(pair, made):
    assert made.intensity is pair.left
    assert made.filter(min_confidence=0.5).intensity is pair.left


def test_npz_comes_back_to_the_last_bit(tmp_path, made):
    path = tmp_path / "a.npz"
    kept = made.filter(min_confidence=0.6)
    assert 0 < kept.density < 1
    kept.save(path)
    assert_same(d3s.DepthMap.load(path), kept)


def test_npz_of_every_method_and_of_a_calibrated_rig_comes_back(tmp_path, made):
    calibrated_rig = RIG.replace(calibration=calibration(a_cubic_m_px=(0.1, 1 / 3, 0.0, 1e17)))
    for method in METHODS:
        options = METHODS[method].load()[1](depth_range_m=(0.3, 2.0))
        other = dataclasses.replace(
            made,
            method=method,
            options=options,
            rig=calibrated_rig,
            intensity=None,
            warnings=("ä",),
        )
        other.save(tmp_path / f"{method}.npz")
        assert_same(d3s.DepthMap.load(tmp_path / f"{method}.npz"), other)


def test_ply_has_the_points_of_the_depths(tmp_path, made):
    path = tmp_path / "a.ply"
    made.save(path)
    points = ply.read(path.read_bytes())
    rows, cols = np.nonzero(made.valid)
    np.testing.assert_array_equal(points.z_m, made.depth_m[rows, cols])
    # f = 12.1 mm / 2 µm, and the axis meets the middle of 60 x 130 px
    np.testing.assert_allclose(points.x_m, (cols - 64.5) / 6050 * points.z_m, rtol=1e-6)
    np.testing.assert_allclose(points.y_m, (rows - 29.5) / 6050 * points.z_m, rtol=1e-6)
    for name in ("sigma_m", "confidence", "intensity"):
        np.testing.assert_array_equal(getattr(points, name), getattr(made, name)[rows, cols])
    assert points.notes["camera"] == "paper prototype"


def test_unknown_suffix_names_the_known_ones(tmp_path, made):
    with pytest.raises(InputError, match=r"a\.xyz: .*\.npz, .*\.ply.*ends in '\.xyz'"):
        made.save(tmp_path / "a.xyz")
    with pytest.raises(InputError, match="ends in nothing"):
        made.save(tmp_path / "a")


@pytest.mark.parametrize("suffix", [".npz", ".ply"])
def test_a_file_is_replaced_only_when_told_to(tmp_path, made, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text("of mine")
    with pytest.raises(OutputError, match="exists and holds something else"):
        made.save(path)
    assert path.read_text() == "of mine"
    made.save(path, overwrite=True)
    assert path.stat().st_size > 1000
