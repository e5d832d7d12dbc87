"""Views in colour as arrays, and the colours of depth maps and their point clouds."""

import numpy as np
from PIL import Image

import d3s
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
    found.save(tmp_path / "b.npz", colour=RIGHT)
    np.testing.assert_array_equal(d3s.DepthMap.load(tmp_path / "b.npz").colour, RIGHT)
