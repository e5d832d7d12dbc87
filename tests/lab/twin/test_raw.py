"""Raw frames: position of points, field of each lens, and the truth."""

import numpy as np
import pytest

import d3s
from d3s.errors import SceneError
from twin_tools import centroid_px, dot_texture, thin_rig

# Two lenses 0.3 mm, or 150 px, apart on a sensor of 200x320, centred at (159.5, 99.5).
RIG = thin_rig(baseline_m=0.3e-3)
LAYOUT = d3s.RawLayout(rows_px=200, cols_px=320, field_radius_px=100.0)
PERFECT = (d3s.Mount(), d3s.Mount())
CROOKED = (
    d3s.Mount(scale=1.02, roll_rad=0.1, shift_x_px=6.3, shift_y_px=-4.1),
    d3s.Mount(scale=0.97, roll_rad=-0.05, shift_x_px=-8.7, shift_y_px=5.2),
)
# Fully lit: more than 35 px from the partition, less than 85 px from the axis.
LIT_LEFT, LIT_RIGHT = np.s_[60:140, 195:275], np.s_[60:140, 45:125]


def raw(scene, **options):
    return d3s.simulate_raw(scene, RIG, **{"layout": LAYOUT, "mounts": PERFECT, **options})


def grey_wall(depth_m=1.0):
    """Nearly uniform texture of 0.5, with just enough contrast to be accepted."""
    image = np.full((16, 16), 0.5)
    image[::2] += 2e-4
    return d3s.Plane(depth_m=depth_m, texture=image)


def dot_px(image, near_px, half=25):
    """Centroid (x, y) of the light near a pixel."""
    col, row = round(near_px[0]), round(near_px[1])
    part = image[row - half : row + half + 1, col - half : col + half + 1]
    x, y = centroid_px(part)
    return x + col - half, y + row - half


@pytest.mark.parametrize("depth_m", [0.5, 2.5])
def test_dot_on_the_axis_is_at_the_anchors(depth_m):
    frame = raw(d3s.Plane(depth_m=depth_m, texture=dot_texture(RIG, depth_m)), mounts=CROOKED)
    assert frame.anchor_left_px == pytest.approx((240.8, 95.4))
    assert frame.anchor_right_px == pytest.approx((75.8, 104.7))
    assert dot_px(frame.image, frame.anchor_left_px) == pytest.approx((240.8, 95.4), abs=0.02)
    # Disparity 12.1 mm x 0.3 mm / 2 um = 1.815 px m to the left, in a view that is scaled and
    # rotated by -0.05 (0.97 cos = 0.968788, 0.97 sin = -0.048480).
    expected = 75.8 - 1.815 / depth_m * 0.968788, 104.7 + 1.815 / depth_m * 0.048480
    assert dot_px(frame.image, frame.anchor_right_px) == pytest.approx(expected, abs=0.02)


def test_left_lens_is_on_the_right_half_unless_told():
    assert LAYOUT.left_lens == "right"
    scene = d3s.Plane(depth_m=0.5, texture=dot_texture(RIG, 0.5))
    exchanged = raw(scene, layout=LAYOUT.replace(left_lens="left"))
    assert raw(scene).anchor_left_px == exchanged.anchor_right_px == (234.5, 99.5)
    assert raw(scene).anchor_right_px == exchanged.anchor_left_px == (84.5, 99.5)
    # A dot on the axis of the left lens is on its anchor, and 3.63 px left of the right anchor.
    assert dot_px(exchanged.image, (84.5, 99.5)) == pytest.approx((84.5, 99.5), abs=0.02)
    assert dot_px(exchanged.image, (234.5, 99.5)) == pytest.approx((230.87, 99.5), abs=0.02)
    assert np.isfinite(exchanged.depth_m[:, :120]).any()
    assert np.isnan(exchanged.depth_m[:, 200:]).all()


def test_mask_of_half_the_sensor_is_about_the_axis_of_the_left_lens():
    mask = np.zeros((200, 160), dtype=np.float32)
    mask[90:120, 70:110] = 1  # the axis is at (79.5, 99.5) of the mask, (234.5, 99.5) of the frame
    scene = d3s.Layered(
        layers=[d3s.Layer(depth_m=0.5, mask=mask, texture="noise"), d3s.Layer(depth_m=1.0)]
    )
    depth = raw(scene).depth_m[LIT_LEFT]
    near = np.zeros((80, 80), dtype=bool)
    near[30:60, 30:70] = True  # cropped by 60 rows and 195 columns, shifted by 155 columns
    np.testing.assert_allclose(depth, np.where(near, 0.5, 1.0), rtol=1e-6)


def test_field_fades_out_as_it_should():
    image = raw(grey_wall(), layout=LAYOUT.replace(partition_px=0.0, partition_edge_px=1.0)).image
    # Row 99 is half a pixel above the axis, which is at (234.5, 99.5).
    assert image[99, 235] == pytest.approx(0.5, abs=1e-3)
    assert image[99, 234 + 85] == pytest.approx(0.5, abs=1e-3)
    # Half of the light at 100 px from the axis: at (60, 80), between four pixels.
    around = image[99 - 80 : 99 - 78, 234 + 60 : 234 + 62].mean(dtype=float)
    assert around == pytest.approx(0.25, abs=5e-3)
    for row, col in ((0, 0), (0, -1), (-1, 0), (-1, -1)):
        assert image[row, col] == 0


def test_partition_keeps_the_fields_apart():
    image = raw(grey_wall(), layout=LAYOUT.replace(partition_px=60.0, partition_edge_px=20.0)).image
    # A shadow of 60 px with an edge of 10 px on each side: dark from -20 to 20 px.
    assert not image[:, 140:180].any()
    assert image[99, 138] > 0
    assert image[99, 181] > 0
    assert image[99, 119] == pytest.approx(0.5, abs=1e-3)
    assert image[99, 200] == pytest.approx(0.5, abs=1e-3)
    # Half of the light at the edge of the shadow, between columns 129 and 130.
    assert image[99, 129:131].mean() == pytest.approx(0.25, abs=1e-3)


def test_depth_is_that_of_the_left_lens_within_its_field():
    depth = raw(grey_wall(0.8)).depth_m
    assert np.isnan(depth[:, :160]).all()
    np.testing.assert_allclose(depth[LIT_LEFT], 0.8, rtol=1e-6)
    assert np.isnan(depth[[0, -1], [-1, -1]]).all()
    # Half of the light: 15 px from the middle, 100 px from the axis.
    assert np.isnan(depth[99, 174])
    assert np.isfinite(depth[99, 175])
    assert np.isfinite(depth[99 - 78, 234 + 60])
    assert np.isnan(depth[99 - 81, 234 + 61])


def test_truth_is_all_that_a_calibration_should_find():
    truth = raw(grey_wall(), mounts=CROOKED).truth()
    expected = {
        "anchor_left_px": (240.8, 95.4),
        "anchor_right_px": (75.8, 104.7),
        "rectify_scale": 1.02 / 0.97,
        "rectify_angle_rad": 0.15,
        "rectify_shift_y_px": 0.0,
        "scale_left": 1.02,
        "roll_rad_left": 0.1,
        "shift_x_px_left": 6.3,
        "shift_y_px_left": -4.1,
        "scale_right": 0.97,
        "roll_rad_right": -0.05,
        "shift_x_px_right": -8.7,
        "shift_y_px_right": 5.2,
    }
    assert set(truth) == {*expected, "depth_m"}
    for name, value in expected.items():
        np.testing.assert_allclose(truth[name], value, atol=1e-12, err_msg=name)
    assert truth["depth_m"].shape == (200, 320)


def test_rectification_of_the_truth_lays_one_view_on_the_other():
    # A dot 20 px right of the axis and 10 px below it, far away, about the anchor of each lens.
    scene = d3s.Plane(depth_m=500.0, texture=dot_texture(RIG, 500.0, at_px=(20.0, 10.0)))
    frame = raw(scene, mounts=CROOKED)
    truth = frame.truth()
    turn, scale = float(truth["rectify_angle_rad"]), float(truth["rectify_scale"])
    places = []
    for mount, anchor in zip(CROOKED, (frame.anchor_left_px, frame.anchor_right_px), strict=True):
        near = np.add(anchor, mount.matrix @ (20.0, 10.0))
        places.append(np.subtract(dot_px(frame.image, near), anchor))
    cos, sin = np.cos(turn), np.sin(turn)
    fitted = scale * np.array([[cos, -sin], [sin, cos]]) @ places[1]
    np.testing.assert_allclose(fitted, places[0], atol=0.03)


def test_gains_and_offsets_are_those_of_the_lenses():
    plain = raw(d3s.Plane(depth_m=0.8, texture="noise")).image
    sensor = d3s.Sensor(gain=(0.5, 1.5), offset=(0.1, -0.05))
    image = raw(d3s.Plane(depth_m=0.8, texture="noise"), noise=sensor).image
    np.testing.assert_allclose(image[LIT_LEFT], 0.5 * plain[LIT_LEFT] + 0.1, atol=1e-6)
    np.testing.assert_allclose(image[LIT_RIGHT], 1.5 * plain[LIT_RIGHT] - 0.05, atol=1e-6)
    assert image[0, 0] == 0


def test_vignetting_is_about_the_axis_of_each_lens():
    image = raw(grey_wall(), noise=d3s.Sensor(vignetting=0.5)).image
    # 50.0025 px above the axis, nearly half the radius of the field: 1 - 0.5 x 0.25 of the light.
    for axis in (84, 234):
        assert image[49:51, axis : axis + 2].mean() == pytest.approx(0.5 * 0.875, rel=2e-3)
        assert image[99, axis] == pytest.approx(0.5, rel=1e-3)


def test_depth_map_is_refused():
    scene = d3s.DepthMapScene(image=np.zeros((200, 160)), depth_m=np.ones((200, 160)))
    with pytest.raises(SceneError, match="a depth map belongs to a rectified pair"):
        raw(scene)
    with pytest.raises(SceneError, match=r"^scene must be a Plane, TiltedPlane, BentPlane, "):
        raw("leaves")


def test_rig_whose_lenses_do_not_fit_is_refused():
    with pytest.raises(SceneError) as caught:
        d3s.simulate_raw(grey_wall(), d3s.Rig.paper_prototype(), layout=LAYOUT)
    assert str(caught.value) == (
        "cols_px=320 is too small for the rig: its lenses are 1920 px apart. Only lenses that "
        "share a sensor have a raw frame."
    )
