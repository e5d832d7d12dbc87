"""Views in colour as arrays, and the colours of depth maps and their point clouds."""

import numpy as np
import pytest
from PIL import Image

import d3s
from d3s.errors import InputError
from d3s.files import read_depth
from d3s.files.images import read_image

RIG = d3s.Rig.paper_prototype()
PAIR = d3s.simulate(
    d3s.Plane(depth_m=0.8, texture="leaves"), RIG, noise=0.005, seed=1, shape=(90, 140)
)
TINT = np.array([0.9, 0.6, 0.3], dtype=np.float32)


def in_colour(view: np.ndarray) -> np.ndarray:
    """View as a photograph: 8 bits by the sRGB curve."""
    linear = np.clip(view[:, :, np.newaxis] * TINT, 0, 1)
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(255 * curved).astype(np.uint8)


LEFT, RIGHT = in_colour(PAIR.left), in_colour(PAIR.right)


def test_arrays_in_colour_give_the_depth_of_the_files(tmp_path):
    for name, view in (("left", LEFT), ("right", RIGHT)):
        Image.fromarray(view).save(tmp_path / f"{name}.png")
    found = d3s.estimate(LEFT, RIGHT, RIG)
    files = d3s.load_pair(tmp_path / "left.png", tmp_path / "right.png")
    expected = d3s.estimate(*files, RIG)
    np.testing.assert_array_equal(found.depth_m, expected.depth_m)
    np.testing.assert_array_equal(found.colour, LEFT)
    assert expected.colour is None
    np.testing.assert_array_equal(found.intensity, read_image(tmp_path / "left.png", linear=False))


def test_floats_in_colour_are_linear():
    found = d3s.estimate(
        PAIR.left[:, :, np.newaxis] * TINT, PAIR.right[:, :, np.newaxis] * TINT, RIG
    )
    grey = d3s.estimate(PAIR.left, PAIR.right, RIG)
    assert np.nanmedian(found.depth_m) == pytest.approx(np.nanmedian(grey.depth_m), abs=1e-3)
    assert found.colour.dtype == np.uint8
    assert found.colour.reshape(-1, 3).mean(axis=0).argmax() == 0


def test_masked_pixels_in_colour_are_missing():
    masked = np.ma.masked_array(LEFT, mask=np.zeros(LEFT.shape, dtype=bool))
    masked[10:20, 30:40] = np.ma.masked
    found = d3s.estimate(masked, RIGHT, RIG)
    assert np.isnan(found.intensity[10:20, 30:40]).all()
    assert np.isfinite(found.intensity).sum() == found.intensity.size - 100


def test_colours_go_to_point_clouds_and_come_back(tmp_path):
    found = d3s.estimate(LEFT, RIGHT, RIG)
    found.save(tmp_path / "a.npz")
    loaded = d3s.DepthMap.load(tmp_path / "a.npz")
    np.testing.assert_array_equal(loaded.colour, LEFT)
    loaded.save(tmp_path / "a.ply")
    points = read_depth(tmp_path / "a.ply")
    np.testing.assert_array_equal(points.colour, LEFT[found.valid])
    image = read_depth(tmp_path / "a.npz")
    np.testing.assert_array_equal(image.colour, LEFT)
    assert "colour" not in image.more


def test_wrong_shapes_are_refused_in_words():
    with pytest.raises(InputError, match=r"left has shape \(90, 140, 2\).*\(rows, cols, 3\)"):
        d3s.estimate(LEFT[:, :, :2], RIGHT[:, :, :2], RIG)
