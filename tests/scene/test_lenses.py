"""Lenses with errors in the twin: each effect against its formula, on dots and even walls."""

import numpy as np
import pytest

import d3s
from d3s.errors import SceneError
from d3s.rig.lens_maps import LensMaps
from d3s.scene.lens_errors import PERFECT_LENS, LensErrors
from twin_tools import centroid_px, dot_texture, thin_rig

# One lens on 360x360 px, its axis at (539.5, 179.5); the other is 360 px to the left.
RIG = thin_rig(baseline_m=0.72e-3)
LAYOUT = d3s.RawLayout(rows_px=360, cols_px=720, field_radius_px=400.0, partition_px=0.0)
AXIS = (539.5, 179.5)
MOUNTS = (d3s.Mount(), d3s.Mount())
# 12.1 mm x 1 mm / 2 um: blur radius in px per dioptre of defocus.
PX_PER_DPT = 6.05
SIZE_PX = 1.5  # sigma of a dot


def raw(scene, left=PERFECT_LENS, right=PERFECT_LENS, **options):
    options = {"layout": LAYOUT, "mounts": MOUNTS, **options}
    return d3s.simulate_raw(scene, RIG, lenses=(left, right), **options)


def dot(lens, depth_m, at_px=(0.0, 0.0), half=45, **options):
    """Image of a dot seen by the left lens, cut out around its place without errors."""
    texture = dot_texture(RIG, depth_m, size_px=SIZE_PX, window_px=1000, at_px=at_px)
    image = raw(d3s.Plane(depth_m=depth_m, texture=texture), lens, **options).image
    col, row = round(AXIS[0] + at_px[0]), round(AXIS[1] + at_px[1])
    part = image[row - half : row + half + 1, col - half : col + half + 1].astype(float)
    return part, (col - half, row - half)


def dot_centre(*arguments, **options):
    part, origin = dot(*arguments, **options)
    return np.add(centroid_px(part), origin)


def moments(part):
    """Second moments of a dot: along x, mixed, along y, in px²."""
    x, y = centroid_px(part)
    a, b = np.arange(part.shape[1])[None] - x, np.arange(part.shape[0])[:, None] - y
    return np.array([(part * form).sum() / part.sum() for form in (a * a, a * b, b * b)])


def grey(depth_m=1.0):
    image = np.full((16, 16), 0.5)
    image[::2] += 2e-4
    return d3s.Plane(depth_m=depth_m, texture=image)


@pytest.mark.parametrize("depth_m", [0.45, 1.3])
@pytest.mark.parametrize("at_px", [(0.0, 0.0), (96.3, 0.0), (0.0, -88.0), (70.0, 61.2)])
def test_blur_is_that_of_curved_focus(depth_m, at_px):
    lens = LensErrors(
        field_radius_px=200.0,
        focus_sagittal_dpt=0.9,
        focus_tangential_dpt=2.0,
        focus_tilt_x_dpt=0.3,
        focus_tilt_y_dpt=-0.2,
    )
    part, _ = dot(lens, depth_m, at_px)
    # Second moments of an ellipse with half axes r are r² / 4; r = 6.05 px/dpt (u I - K).
    x, y = np.array(at_px) / 200
    radius = np.hypot(x, y)
    out = np.array([x, y]) / (radius or 1.0)
    radial = np.outer(out, out)
    focus = (0.3 * x - 0.2 * y) * np.eye(2) + radius**2 * (
        0.9 * (np.eye(2) - radial) + 2.0 * radial
    )
    optics = RIG.optics.lens(0)
    on_axis = 1 / depth_m - (optics.optical_power_dpt - 1 / optics.sensor_distance_m)
    tensor = PX_PER_DPT * (on_axis * np.eye(2) - focus)
    variance = tensor @ tensor / 4 + (SIZE_PX**2 + 1 / 12) * np.eye(2)
    expected = variance[0, 0], variance[0, 1], variance[1, 1]
    assert moments(part) == pytest.approx(expected, rel=0.02, abs=0.1)


def test_blur_agrees_with_the_maps_of_a_calibration():
    lens = LensErrors(
        field_radius_px=200.0,
        focus_sagittal_dpt=0.9,
        focus_tangential_dpt=2.0,
        focus_tilt_x_dpt=0.3,
    )
    maps = LensMaps(field_radius_px=200.0, focus_left_dpt=(0.3, 0.0, 0.9, 2.0))
    expected = maps.blur_px2(0, 0.4, 0.25, 1 / 0.6, RIG.optics)
    part, _ = dot(lens, 0.6, (80.0, 50.0))
    own = SIZE_PX**2 + 1 / 12
    assert moments(part) - [own, 0, own] == pytest.approx(expected, rel=0.03, abs=0.1)


@pytest.mark.parametrize("at_px", [(120.0, 0.0), (-60.0, 110.0), (3.0, -120.0)])
def test_dots_are_where_distortion_draws_them(at_px):
    lens = LensErrors(
        field_radius_px=100.0,
        distortion_third=-0.02,
        distortion_fifth=0.004,
        decentring_x=0.003,
        decentring_y=-0.002,
    )
    x, y = np.array(at_px) / 100
    square = x * x + y * y
    factor = 1 - 0.02 * square + 0.004 * square**2 + 2 * (0.003 * x - 0.002 * y)
    expected = np.add(
        AXIS, 100 * np.array([x * factor + 0.003 * square, y * factor - 0.002 * square])
    )
    assert dot_centre(lens, 0.8, at_px) == pytest.approx(expected, abs=0.01)
    maps = LensMaps(field_radius_px=100.0, distortion_left=(-0.02, 0.004, 0.003, -0.002))
    assert np.add(AXIS, 100 * maps.distorted(0, x, y)) == pytest.approx(expected, abs=1e-9)


def test_centre_of_distortion_is_moved():
    lens = LensErrors(field_radius_px=100.0, distortion_third=0.02, centre_x_px=10.0)
    # 110 px from the centre along x: 0.02 x 1.1³ x 100 = 2.662 px further out.
    assert dot_centre(lens, 0.8, (120.0, 0.0))[0] == pytest.approx(AXIS[0] + 122.662, abs=0.01)


def test_distortion_moves_the_depth_too():
    scene = d3s.TiltedPlane(depth_m=0.8, tilt_x_rad=0.6, texture="gravel")
    perfect, bent = raw(scene), raw(scene, LensErrors(field_radius_px=100.0, distortion_third=0.02))
    row, col = 180, 640
    # Place 100.5 px from the axis is drawn where r (1 + 0.02 (r / 100)²) = 100.5: r = 98.5675 px.
    x = AXIS[0] + 98.5675
    a, b = 1 / perfect.depth_m[row, int(x)], 1 / perfect.depth_m[row, int(x) + 1]
    assert 1 / bent.depth_m[row, col] == pytest.approx(a + (x % 1) * (b - a), rel=1e-5)


def test_light_falls_off_around_its_own_centre():
    lens = LensErrors(
        field_radius_px=100.0,
        transmission=0.9,
        falloff=0.05,
        falloff_fourth=0.01,
        falloff_centre_x_px=12.0,
        falloff_centre_y_px=-7.0,
    )
    ratio = raw(grey(), lens).image / raw(grey()).image
    for dx, dy in ((12.5, -6.5), (100.5, 0.5), (-80.5, 60.5)):
        square = ((dx - 12) ** 2 + (dy + 7) ** 2) / 1e4
        expected = 0.9 * (1 - 0.05 * square - 0.01 * square**2)
        assert ratio[int(AXIS[1] + dy), int(AXIS[0] + dx)] == pytest.approx(expected, rel=1e-4)


def test_lens_without_effect_on_blur_renders_as_a_perfect_one():
    scene = d3s.Plane(depth_m=0.45, texture="gravel")
    perfect = raw(scene).image
    # Errors too small to see choose the other renderer: ellipses, rays, distortion.
    for lens in (
        LensErrors(focus_tilt_x_dpt=1e-9),
        LensErrors(spherical_waves=1e-9),
        LensErrors(distortion_third=1e-12),
    ):
        difference = raw(scene, lens, lens).image - perfect
        assert np.abs(difference).max() < 1e-3
        assert difference.std() < 1e-3 * perfect.std()


def test_lenses_that_are_none_are_refused():
    with pytest.raises(SceneError, match="two of LensErrors"):
        d3s.simulate_raw(grey(), RIG, layout=LAYOUT, lenses=(PERFECT_LENS,))
    with pytest.raises(SceneError, match="focus_sagittal_dpt"):
        LensErrors(focus_sagittal_dpt=100.0)
