"""Photos and patterns on a surface: size, place and rotation, measured in the image."""

import numpy as np
import pytest

import d3s
from d3s.errors import SceneError
from d3s.files.images import write_image
from d3s.lab.twin.textures import as_texture
from twin_tools import centroid_px, thin_rig

SHAPE = (120, 160)  # its middle is at (79.5, 59.5)
PINHOLE = thin_rig(aperture_radius_m=0.0)  # 6050 px of focal length


def dots(places, shape=(400, 400), sigma=6.0):
    """Photo with bright dots on black, at (col, row)."""
    row, col = np.mgrid[: shape[0], : shape[1]]
    image = np.zeros(shape)
    for x, y in places:
        image += np.exp(-0.5 * ((col - x) ** 2 + (row - y) ** 2) / sigma**2)
    return image


def view(texture, depth_m=1.0, rig=PINHOLE, shape=SHAPE):
    return d3s.simulate(d3s.Plane(depth_m=depth_m, texture=texture), rig, shape=shape).left


def dot_px(image, near, half=14):
    """Centroid (x, y) of the light around a place; both relative to the frame centre."""
    col, row = round(79.5 + near[0]), round(59.5 + near[1])
    part = image[row - half : row + half + 1, col - half : col + half + 1]
    x, y = centroid_px(part)
    return x + col - half - 79.5, y + row - half - 59.5


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("b.png", "a.png", "c.png"):
        write_image(tmp_path / name, rng.random((30, 40), dtype=np.float32))
    return tmp_path


def test_width_is_that_on_the_object():
    # 40 mm on 400 texels. 60 texels are 6 mm, 36.3 px at 1 m and 18.15 px at 2 m.
    photo = d3s.Photo(image=dots([(140, 200), (260, 200), (200, 150)]), width_m=0.04)
    for depth_m, size in ((1.0, 36.3), (2.0, 18.15)):
        image = view(photo, depth_m)
        for near in ((-size, 0.0), (size, 0.0), (0.0, -size * 50 / 60)):
            assert dot_px(image, near, half=10) == pytest.approx(near, abs=0.02)


@pytest.mark.parametrize("shape", [(600, 801), (601, 800), (1025, 513)])
@pytest.mark.parametrize("depth_m", [0.5, 6.0, 16.0])
def test_dot_stays_where_it_is_at_any_resolution(shape, depth_m):
    # One texel per pixel at 1 m, so that 16 texels are one pixel far away. The origin is the middle
    # texel, size // 2.
    middle = shape[1] // 2, shape[0] // 2
    image = dots([(middle[0] + 20, middle[1] - 16)], shape, sigma=1.5 * max(depth_m, 1.0))
    photo = d3s.Photo(image=image, width_m=shape[1] / 6050)
    near = 20 / depth_m, -16 / depth_m
    assert dot_px(view(photo, depth_m), near, half=10) == pytest.approx(near, abs=0.02)


@pytest.mark.parametrize("angle", [np.pi / 6, np.pi / 2])
def test_angle_turns_clockwise(angle):
    # A dot 36.3 px right of the centre. A clockwise rotation moves it down.
    photo = d3s.Photo(image=dots([(260, 200)]), width_m=0.04, angle_rad=angle)
    near = 36.3 * np.cos(angle), 36.3 * np.sin(angle)
    assert dot_px(view(photo), near) == pytest.approx(near, abs=0.03)


def test_contrast_is_a_factor_about_mid_grey():
    contrast = 0.25
    image = np.random.default_rng(0).random((50, 60))
    for texture in (d3s.Photo(image=image), d3s.Texture(pattern="leaves")):
        full, changed = view(texture), view(texture.replace(contrast=contrast, grey=0.6))
        np.testing.assert_allclose(changed, 0.6 + contrast * (full - 0.5), atol=1e-5)


def test_shading_is_slow_and_lies_on_the_surface():
    wall = d3s.Texture(contrast=0.0, shading=0.1, seed=5)
    near, far = view(wall, 0.7), view(wall, 1.4)
    assert np.abs(far - 0.5).max() <= 0.1
    assert np.ptp(far) > 0.002
    assert np.abs(np.diff(far, axis=1)).max() < 0.005
    # From twice the distance the whole view is the middle half: each pixel is twice as large.
    small = near.reshape(60, 2, 80, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(far[30:90, 40:120], small, atol=1e-4)
    assert np.abs(view(wall.replace(seed=6), 1.4) - far).max() > 0.01


def test_curve_of_srgb_is_undone(tmp_path):
    import cv2

    levels = np.array([[0, 188], [255, 10]], dtype=np.uint8)
    path = tmp_path / "photo.png"
    cv2.imwrite(str(path), levels)
    # ((188/255 + 0.055) / 1.055)^2.4, and 10/255/12.92 in the linear part of the curve.
    np.testing.assert_allclose(
        d3s.Photo(image=path).pixels(), [[0, 0.502886], [1, 0.00303527]], rtol=1e-5
    )
    np.testing.assert_allclose(
        d3s.Photo(image=path, encoding="linear").pixels(), levels / 255, rtol=1e-6
    )
    array = (levels / 255).astype(np.float32)
    np.testing.assert_array_equal(d3s.Photo(image=array).pixels(), array)


def test_folder_is_counted_around_by_name(folder):
    names = [d3s.Photo(image=folder, number=n).file.rpartition("/")[2] for n in range(5)]
    assert names == ["a.png", "b.png", "c.png", "a.png", "b.png"]
    second = d3s.Photo(image=folder, number=4)
    np.testing.assert_array_equal(second.pixels(), d3s.Photo(image=folder / "b.png").pixels())
    assert view(second).tobytes() == view(str(folder / "b.png")).tobytes()
    assert view(str(folder)).tobytes() == view(str(folder / "a.png")).tobytes()


def test_whatever_people_call_a_texture(folder):
    array = np.eye(4)
    texture, photo = d3s.Texture(pattern="wood", seed=3), d3s.Photo(image=array, width_m=0.1)
    assert as_texture("wood") == d3s.Texture(pattern="wood")
    assert as_texture(texture) is texture
    assert as_texture(photo) is photo
    assert as_texture({"pattern": "wood", "seed": 3}) == texture
    assert as_texture(str(folder)) == d3s.Photo(image=str(folder))
    assert as_texture(folder / "a.png") == d3s.Photo(image=str(folder / "a.png"))
    assert as_texture({"image": str(folder), "number": 2}) == d3s.Photo(image=folder, number=2)
    np.testing.assert_array_equal(as_texture(array).pixels(), array)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (d3s.Photo, {"image": 5}, "image=5 must be an image file, a folder of images, or an arr"),
        (d3s.Photo, {"image": "x.png", "width_m": 0.0}, "width_m=0.0 must be above 0.0001: it is"),
        (d3s.Texture, {"pattern": "leafs"}, "pattern='leafs' must be one of leaves, stone, wood"),
        (
            d3s.Texture,
            {"angle_rad": 45.0},
            "angle_rad=45.0 must be at most 4: it is in radians. Did you pass degrees?",
        ),
        (d3s.Texture, {"contrast": -0.1}, "contrast=-0.1 must be at least 0."),
        (d3s.Texture, {"size": 2.0}, "size is unknown."),
    ],
)
def test_wrong_texture_says_what_is_wrong(kind, values, words):
    with pytest.raises(SceneError) as caught:
        kind(**values)
    assert str(caught.value).startswith(words)


def test_array_is_linear_and_of_full_scale_one():
    image = np.random.default_rng(0).random((8, 8))
    with pytest.raises(SceneError, match="encoding='srgb' is for files: an array is linear"):
        d3s.Photo(image=image, encoding="srgb")
    with pytest.raises(SceneError, match=r"goes up to 25.*, and full scale is 1"):
        d3s.Plane(depth_m=1.0, texture=255 * image)
