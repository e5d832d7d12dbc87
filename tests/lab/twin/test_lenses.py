"""Lenses with errors in the twin: each effect against its formula, on dots and even walls."""

import numpy as np
import pytest

import d3s
from d3s.errors import D3SError, SceneError
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors, LensFile, typical_lenses
from d3s.rig.lens_maps import LensMaps
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


@pytest.mark.parametrize(
    ("at_px", "depth_m"), [((0.0, 0.0), 0.45), ((0.0, -88.0), 0.45), ((70.0, 61.2), 1.3)]
)
def test_blur_is_that_of_curved_focus(at_px, depth_m):
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


@pytest.mark.parametrize("at_px", [(120.0, 0.0), (-60.0, 110.0)])
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


# 12.1 mm x 550 nm / (1 mm x 2 um): shift in px per wave of slope over the pupil.
PX_PER_WAVE = 3.3275


def defocus_px(depth_m, camera=0):
    lens = RIG.optics.lens(camera)
    return PX_PER_DPT * (1 / depth_m - lens.optical_power_dpt + 1 / lens.sensor_distance_m)


@pytest.mark.parametrize(
    ("psf", "depth_m"), [("disk", 0.45), ("disk", 0.8), ("gaussian", 2.0), ("diffraction", 0.45)]
)
def test_coma_moves_the_centroid_at_every_depth(psf, depth_m):
    # The mean of the gradient of |u|² c·u over the pupil is c, whatever the defocus.
    lens = LensErrors(coma_x_waves=0.6, coma_y_waves=-0.3)
    expected = np.add(AXIS, (-0.6 * PX_PER_WAVE, 0.3 * PX_PER_WAVE))
    # Of a diffracted spot, the window cuts some light off.
    assert dot_centre(lens, depth_m, psf=psf) == pytest.approx(expected, abs=0.06)


def test_spherical_aberration_widens_the_spot():
    # Rays at rho meet the sensor at -(r rho + 4 S rho³): mean square r²/2 + 8 r S/3 + 4 S².
    lens = LensErrors(spherical_waves=0.5)
    r, s = defocus_px(0.5), 0.5 * PX_PER_WAVE
    per_axis = (r**2 / 2 + 8 * r * s / 3 + 4 * s**2) / 2 + SIZE_PX**2 + 1 / 12
    part, _ = dot(lens, 0.5)
    assert moments(part) == pytest.approx((per_axis, 0.0, per_axis), rel=0.01, abs=0.05)


@pytest.mark.parametrize("psf", ["disk", "gaussian", "diffraction"])
def test_aperture_off_its_place_moves_blurred_points(psf):
    # A tenth of the aperture radius to the right: light meets the sensor a tenth of r to the left.
    lens = LensErrors(aperture_shift_x_m=1e-4, aperture_shift_y_m=-5e-5)
    for depth_m in (0.45, 2.0):
        r = defocus_px(depth_m)
        expected = AXIS[0] - 0.1 * r, AXIS[1] + 0.05 * r
        assert dot_centre(lens, depth_m, psf=psf) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("psf", ["disk", "diffraction"])
def test_clipped_pupil_loses_light_and_moves_the_centroid(psf):
    # Two circles d apart: 2 acos(d/2) - d sqrt(1 - d²/4) in common, pi each, centred at d/2.
    lens = LensErrors(field_radius_px=100.0, clipping=0.2)
    distance = 0.3156  # solved for 80 % of pi
    common = 2 * np.arccos(distance / 2) - distance * np.sqrt(1 - distance**2 / 4)
    assert common / np.pi == pytest.approx(0.8, abs=1e-4)
    part, origin = dot(lens, 0.45, (100.0, 0.0), psf=psf)
    perfect, _ = dot(PERFECT_LENS, 0.45, (100.0, 0.0), psf=psf)
    assert part.sum() / perfect.sum() == pytest.approx(0.8, abs=0.006)
    # The outer side is cut, so the rest is centred d/2 to the inside and lands outside by r d/2.
    moved = np.add(centroid_px(part), origin)[0] - np.add(centroid_px(perfect), origin)[0]
    assert moved == pytest.approx(defocus_px(0.45) * distance / 2, abs=0.05)


def test_glare_spreads_a_share_of_the_light_evenly():
    board = d3s.Plane(depth_m=0.8, texture="calibration")
    perfect, veiled = raw(board).image, raw(board, LensErrors(glare=0.1)).image
    lit = np.s_[100:260, 460:620]
    slope, offset = np.polyfit(perfect[lit].ravel(), veiled[lit].ravel(), 1)
    assert slope == pytest.approx(0.9, abs=1e-4)
    share = raw(grey()).image[:, 360:] * 2
    assert offset == pytest.approx(0.1 * perfect[:, 360:].sum() / share.sum(), rel=0.01)


def test_crosstalk_adds_light_of_the_other_lens_without_detail():
    dark = LensErrors(transmission=0.0)
    board = d3s.Plane(depth_m=0.8, texture="calibration")
    lens = LensErrors(crosstalk=0.05, transmission=0.0)
    left = np.s_[100:260, 460:620]
    assert raw(grey(), lens).image[180, 540] == pytest.approx(0.05 * 0.5, rel=0.1)
    leaked = raw(board, lens).image[left]
    assert leaked.std() < 0.1 * raw(board).image[left].std() * 0.05
    assert not raw(board, lens, dark).image[left].any()


def test_lenses_see_scenes_of_all_kinds():
    rig, rng = d3s.Rig.paper_prototype(), np.random.default_rng(0)
    depth = np.full((90, 120), 1.2)
    depth[30:60, 40:80] = 0.7
    lens = LensErrors(
        field_radius_px=80.0, focus_sagittal_dpt=0.5, distortion_third=0.01, clipping=0.05
    )
    scenes = (
        d3s.DepthMapScene(image=rng.random((90, 120)), depth_m=depth),
        d3s.DepthMapScene(image=rng.random((90, 120)), depth_m=np.full((90, 120), 0.7)),
        d3s.RandomScene(seed=1),
        d3s.TiltedPlane(depth_m=0.8, tilt_y_rad=0.5),
    )
    for scene in scenes:
        perfect = d3s.simulate(scene, rig, shape=(90, 120))
        pair = d3s.simulate(scene, rig, shape=(90, 120), lenses=(lens, lens))
        assert np.isfinite(pair.left).all()
        assert np.isfinite(pair.depth_m).all()
        # The middle of the field is as before.
        middle = np.s_[35:55, 50:70]
        assert pair.left[middle] == pytest.approx(perfect.left[middle], abs=0.08)
        assert pair.right[middle] == pytest.approx(perfect.right[middle], abs=0.08)


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


def test_typical_lenses_are_alike_but_not_equal():
    left, right = typical_lenses(3)
    assert (left, right) == typical_lenses(3)
    assert left.distortion_third != right.distortion_third
    assert right.distortion_third == pytest.approx(left.distortion_third, rel=0.6)
    with pytest.raises(D3SError, match="seed"):
        typical_lenses(-1)


def test_lens_file_holds_both_lenses(tmp_path):
    file = LensFile(left=typical_lenses(1)[0])
    file.save(tmp_path / "lenses.toml")
    assert LensFile.load(tmp_path / "lenses.toml") == file
    (tmp_path / "short.toml").write_text("schema_version = 1\n[right]\nfallof = 0.1\n")
    with pytest.raises(SceneError, match=r"right\.fallof"):
        LensFile.load(tmp_path / "short.toml")


def test_lenses_that_are_none_are_refused():
    with pytest.raises(SceneError, match="two of LensErrors"):
        d3s.simulate_raw(grey(), RIG, layout=LAYOUT, lenses=(PERFECT_LENS,))
    with pytest.raises(SceneError, match="focus_sagittal_dpt"):
        LensErrors(focus_sagittal_dpt=100.0)
