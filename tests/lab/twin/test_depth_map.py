"""Depth maps: compared with planes and layers, and the areas hidden in the image."""

import numpy as np
import pytest

import d3s
from d3s.errors import SceneError
from d3s.files.images import write_image
from twin_tools import PROTOTYPE, thin_rig

SHAPE = (120, 160)
PINHOLE = thin_rig(aperture_radius_m=0.0)


def of(pair_or_image, depth_m, rig=PROTOTYPE, **options):
    image = getattr(pair_or_image, "all_in_focus", pair_or_image)
    return d3s.simulate(d3s.DepthMapScene(image=image, depth_m=depth_m), rig, **options)


def rms(values):
    return float(np.sqrt(np.mean(np.square(values, dtype=float))))


@pytest.mark.parametrize(
    ("tilts", "depth_m", "right_rms"),
    [
        # Measured: 1e-5 and 4.6e-3, 7e-4 and 3.1e-3, 5e-4 and 6e-4 of full scale. The left view
        # has only the error of the slices. The right view is interpolated along rows, which softens
        # detail finer than 3 px; this is largest in focus, without blur.
        ((0.9, -0.6), 0.8, 6e-3),
        ((1.2, 0.0), 0.6, 4e-3),
        ((0.0, 1.2), 1.5, 1e-3),
    ],
)
def test_tilted_plane_is_a_tilted_plane(tilts, depth_m, right_rms):
    scene = d3s.TiltedPlane(
        depth_m=depth_m, tilt_x_rad=tilts[0], tilt_y_rad=tilts[1], texture="noise"
    )
    plane = d3s.simulate(scene, PROTOTYPE, shape=(200, 300))
    pair = of(plane, plane.depth_m)
    beyond = int(plane.disparity_px.max()) + 20
    inner = np.s_[24:-24, 24 : -24 - beyond]
    assert rms((pair.left - plane.left)[inner]) < 1e-3
    assert rms((pair.right - plane.right)[inner]) < right_rms
    np.testing.assert_allclose(pair.depth_m, plane.depth_m, rtol=1e-6)
    np.testing.assert_array_equal(pair.occluded, plane.occluded)


def box(rows=(40, 80), cols=(60, 100)):
    mask = np.zeros(SHAPE, dtype=np.float32)
    mask[slice(*rows), slice(*cols)] = 1
    return mask


def steps(near_px, far_px):
    """An object of 40x40 px in front of a wall, as layers; depths given by disparities."""
    return d3s.Layered(
        layers=[
            d3s.Layer(depth_m=23.232 / near_px, mask=box(), texture="leaves"),
            d3s.Layer(depth_m=23.232 / far_px, texture="noise"),
        ]
    )


@pytest.mark.parametrize("rig", [PINHOLE, PROTOTYPE], ids=["pinhole", "prototype"])
def test_step_is_that_of_the_layers(rig):
    layered = d3s.simulate(steps(40, 24), rig, shape=SHAPE)
    pair = of(layered, layered.depth_m, rig)
    # Pixels near an edge, or visible only to the right camera, are invented; others are not.
    blur = 0 if rig is PINHOLE else 4
    left, right = np.ones(SHAPE, dtype=bool), np.ones(SHAPE, dtype=bool)
    left[40 - blur : 80 + blur, 60 - blur : 100 + blur] = False
    left[40 + blur : 80 - blur, 60 + blur : 100 - blur] = True
    # In the right view the object is at 20 to 59; the wall from 60 to 75 was behind it.
    right[40 - blur : 80 + blur, 20 - blur : 76 + blur] = False
    right[40 + blur : 80 - blur, 20 + blur : 60 - blur] = True
    inner = np.s_[12:-12, 12:-12]
    seen = np.s_[12:-12, 12:-40]
    assert np.abs(pair.left - layered.left)[inner][left[inner]].max() < 2e-3
    assert np.abs(pair.right - layered.right)[seen][right[seen]].max() < 5e-3
    np.testing.assert_allclose(pair.depth_m, layered.depth_m, rtol=1e-6)
    np.testing.assert_array_equal(pair.occluded, layered.occluded)


def test_wall_that_comes_into_sight_is_of_its_own_colour():
    # No colour of the foreground gets into the filled background.
    image = np.where(box() == 1, 1.0, 0.2).astype(np.float32)
    depth = np.where(box() == 1, 23.232 / 40, 23.232 / 24)
    right = of(image, depth, PINHOLE).right
    expected = np.full(SHAPE, 0.2, dtype=np.float32)
    expected[40:80, 20:60] = 1
    np.testing.assert_allclose(right, expected, atol=1e-3)


@pytest.mark.parametrize("offset_px", [0.0, -6.0])
def test_step_of_any_stereo_rig(offset_px):
    rig = d3s.Rig.from_pinhole(
        focal_length_px=500.0, baseline_m=0.04, disparity_offset_px=offset_px
    )
    image = d3s.simulate(d3s.Plane(depth_m=2.0, texture="noise"), rig, shape=SHAPE).all_in_focus
    depth = np.where(box() == 1, 1.0, 2.0)  # 20 and 10 px, plus the offset
    pair = of(image, depth, rig)
    near, far = int(20 + offset_px), int(10 + offset_px)
    covered = np.s_[40:80, 60 - near : 100 - near]
    np.testing.assert_allclose(pair.right[covered], image[40:80, 60:100], atol=1e-5)
    np.testing.assert_allclose(pair.right[:38, :-far], image[:38, far:], atol=1e-5)
    np.testing.assert_allclose(pair.right[:, 102 - far : -far], image[:, 102:], atol=1e-5)
    assert np.flatnonzero(pair.occluded[60]).tolist() == [*range(far), *range(50, 60)]


def test_pixels_of_a_file(tmp_path):
    image = d3s.simulate(d3s.Plane(depth_m=1.0), PROTOTYPE, shape=SHAPE).all_in_focus
    image = np.clip(image, 0, 1)
    depth = np.where(box() == 1, 0.5, 1.0).astype(np.float32)
    expected = of(image, depth)
    for name in ("depth.pfm", "depth.tif"):
        write_image(tmp_path / name, depth)
    write_image(tmp_path / "image.png", image)
    write_image(tmp_path / "image.tif", image)
    exact = of(str(tmp_path / "image.tif"), str(tmp_path / "depth.pfm"))
    assert exact.left.tobytes() == expected.left.tobytes()
    assert exact.right.tobytes() == expected.right.tobytes()
    # A PNG has 16 bits: half a grey level is 7.6e-6.
    scene = d3s.DepthMapScene(
        image=tmp_path / "image.png", encoding="linear", depth_m=tmp_path / "depth.tif"
    )
    rounded = d3s.simulate(scene, PROTOTYPE)
    np.testing.assert_allclose(rounded.left, expected.left, atol=3e-5)
    np.testing.assert_allclose(rounded.depth_m, expected.depth_m)


def wrong(value):
    depth = np.ones(SHAPE)
    depth[3, 4] = value
    return depth


@pytest.mark.parametrize(
    ("depth", "image", "words"),
    [
        (wrong(-2.0), box(), "depth_m has 1 values that are no depth, such as -2: "),
        (wrong(np.nan), box(), "depth_m has 1 values that are no depth, such as nan: "),
        (wrong(2e4), box(), "such as 20000: each must be above 0 and at most 10000, in metres."),
        (np.ones((120, 161)), box(), "depth_m has shape (120, 161) and image has (120, 160)."),
        (np.ones(SHAPE), np.zeros((*SHAPE, 3)), "image has shape (120, 160, 3), and a grey image"),
        (np.ones(SHAPE), np.zeros(SHAPE, np.uint8), "image has uint8 values, and floats from 0"),
    ],
)
def test_depth_or_image_that_is_none(depth, image, words):
    with pytest.raises(SceneError) as caught:
        of(image, depth)
    assert words in str(caught.value)


def test_layer_does_not_reach_across_a_gap():
    # A disk at 0.5 m, a wall at 1.2 m, and a bright board at 0.8 m that ends 8 px above the disk:
    # the board must not continue beneath the disk, since the wall lies between them.
    y, x = np.mgrid[:200, :200]
    depth, image = np.full((200, 200), 1.2), np.full((200, 200), 0.1, dtype=np.float32)
    depth[:42], image[:42] = 0.8, 0.9
    disk = np.hypot(x - 100, y - 100) < 50
    depth[disk], image[disk] = 0.5, 0.5
    pair = d3s.simulate(d3s.DepthMapScene(image=image, depth_m=depth), PROTOTYPE)
    down = pair.left[46:62, 100]
    assert (np.diff(down) > -0.01).all()
    assert down.max() < 0.51


@pytest.mark.parametrize("mount", [d3s.Mount(shift_x_px=5, shift_y_px=3), d3s.Mount(scale=1.05)])
def test_plane_of_a_mount_is_where_the_mount_puts_it(mount):
    rig, shape = PROTOTYPE, (160, 220)
    plane = d3s.Plane(depth_m=1.0, texture="noise")
    image = d3s.simulate(plane, rig, shape=shape).all_in_focus
    scene = d3s.DepthMapScene(image=image, depth_m=np.full(shape, 1.0))
    seen = d3s.simulate(scene, rig, mounts=(mount, mount))
    expected = d3s.simulate(plane, rig, shape=shape, mounts=(mount, mount))
    inner = np.s_[30:-30, 30:-60]
    assert rms((seen.left - expected.left)[inner]) < 0.05 * expected.left.std()
    assert rms((seen.right - expected.right)[inner]) < 0.05 * expected.right.std()


def test_millimetres_are_not_metres(tmp_path):
    millimetres = np.full((64, 64), 1000, dtype=np.uint16)
    image = np.random.default_rng(0).random((64, 64))
    with pytest.raises(SceneError, match=r"uint16 values.* Did you pass millimetres"):
        d3s.simulate(d3s.DepthMapScene(image=image, depth_m=millimetres), PROTOTYPE)
    with pytest.raises(SceneError, match=r"depth16.png' must be .pfm.* with floats in metres"):
        d3s.simulate(
            d3s.DepthMapScene(image=image, depth_m=str(tmp_path / "depth16.png")), PROTOTYPE
        )
