"""`DepthMap.save` and `DepthMap.load`."""

import dataclasses
import errno
import json

import numpy as np
import pytest

import d3s
from calibrations import calibration
from d3s.errors import InputError, OutputError
from d3s.estimate.methods import methods
from d3s.files import points as point_files
from d3s.files import read_npz, write_npz
from d3s.files.depth_files import read_depth

RIG = d3s.Rig.paper_prototype()


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


def test_npz_round_trip_is_exact(tmp_path, made):
    path = tmp_path / "a.npz"
    kept = made.filter(min_confidence=0.6)
    assert 0 < kept.density < 1
    kept.save(path)
    assert_same(d3s.DepthMap.load(path), kept)


def test_npz_round_trip_of_every_method_and_of_a_calibrated_rig(tmp_path, made):
    calibrated_rig = RIG.replace(calibration=calibration(a_cubic_m_px=(0.1, 1 / 3, 0.0, 1e17)))
    for method in methods():
        options = methods()[method].load()[1](depth_range_m=(0.3, 2.0))
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


def test_ply_has_a_point_for_each_depth(tmp_path, made):
    path = tmp_path / "a.ply"
    made.save(path)
    points = point_files.read_ply(path.read_bytes())
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
def test_a_file_is_replaced_only_with_overwrite(tmp_path, made, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text("of mine")
    with pytest.raises(OutputError, match="exists and holds something else"):
        made.save(path)
    assert path.read_text() == "of mine"
    made.save(path, overwrite=True)
    assert path.stat().st_size > 1000


def test_every_format_holds_the_depths(tmp_path, made):
    for suffix in (".png", ".tiff", ".tif", ".pfm", ".npy", ".exr"):
        path = tmp_path / f"a{suffix}"
        made.save(path)
        found = read_depth(path)
        np.testing.assert_allclose(
            found.depth_m, made.depth_m, atol=0.000501 if suffix == ".png" else 0
        )
        assert found.focal_length_px == 6050
    made.save(tmp_path / "b.png", unit_m=0.0001)
    np.testing.assert_allclose(read_depth(tmp_path / "b.png").depth_m, made.depth_m, atol=0.0000501)


def test_npz_is_readable_as_a_depth_file_and_by_numpy(tmp_path, made):
    path = tmp_path / "a.npz"
    made.save(path)
    found = read_depth(path)
    for name in ("depth_m", "sigma_m", "confidence", "intensity"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name))
    assert found.focal_length_px == 6050
    assert found.notes == {
        "camera": "paper prototype",
        "method": "joint",
        "d3s_version": d3s.__version__,
    }
    with np.load(path, allow_pickle=False) as arrays:  # as other programs read it
        np.testing.assert_array_equal(arrays["flags"], made.flags)
        np.testing.assert_array_equal(arrays["K"], [[6050, 0, 64.5], [0, 6050, 29.5], [0, 0, 1]])
        facts = json.loads(str(arrays["note"]))
    assert facts["rig"]["optics"]["baseline_m"] == 3.84e-3
    assert facts["options"]["depth_range_m"] == [0.5, 1.5]


def changed(path, **changes) -> None:
    """Write the file again with arrays replaced, or removed where the change is None."""
    arrays = {**read_npz(path), **changes}
    kept = {name: array for name, array in arrays.items() if array is not None}
    write_npz(path, overwrite=True, **kept)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"note": None}, "is not a depth map that D3S has saved: it holds depth_m, .*and no note"),
        ({"note": np.array("{")}, "has a note of D3S that cannot be read"),
        ({"note": np.array(3.0)}, "is not a depth map that D3S has saved"),
        ({"flags": None}, "lacks flags"),
        ({"sigma_m": np.zeros((60, 130))}, "has sigma_m of shape .* and type float64, and float32"),
        ({"confidence": np.zeros((60, 129), "f4")}, r"has confidence of shape \(60, 129\)"),
        ({"depth_m": np.zeros(3, "f4")}, r"has depth_m of shape \(3,\)"),
    ],
)
def test_npz_with_wrong_arrays_is_rejected(tmp_path, made, changes, words):
    path = tmp_path / "a.npz"
    made.save(path)
    changed(path, **changes)
    with pytest.raises(InputError, match=rf"a\.npz: .*{words}"):
        d3s.DepthMap.load(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema_version": 2}, "has schema_version=2: this D3S reads version 1"),
        ({"method": "by hand"}, "made by method='by hand', which is none of joint, consensus"),
        ({"method": None}, "whose method cannot be read"),
        ({"options": {"window": 3}}, "options that cannot be: window is unknown"),
        ({"options": []}, "whose options cannot be read"),
        ({"rig": {"name": "a"}}, "rig or options that cannot be: optics is missing"),
        ({"timings_s": {"all": "long"}}, "whose timings_s cannot be read"),
    ],
)
def test_npz_with_a_wrong_note_is_rejected(tmp_path, made, changes, words):
    path = tmp_path / "a.npz"
    made.save(path)
    facts = json.loads(str(read_npz(path)["note"])) | changes
    changed(path, note=np.array(json.dumps(facts)))
    with pytest.raises(InputError, match=rf"a\.npz: .*{words}"):
        d3s.DepthMap.load(path)


def test_nothing_in_a_file_is_executed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, note=np.array([print], dtype=object))
    with pytest.raises(InputError, match=r"values of type '\|O', and numbers are read"):
        d3s.DepthMap.load(path)


def test_failed_write_leaves_existing_files_unchanged(tmp_path, made, monkeypatch):
    path = tmp_path / "a.npz"
    path.write_text("before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("d3s.atomic.os.fsync", full)
    for suffix in (".npz", ".png", ".ply"):
        with pytest.raises(OutputError, match=r"No space left.*Free some space"):
            made.save(path.with_suffix(suffix), overwrite=True)
    assert [one.name for one in tmp_path.iterdir()] == ["a.npz"]
    assert path.read_text() == "before"
    with pytest.raises(OutputError, match="Make its folder first"):
        made.save(tmp_path / "none" / "a.ply")
