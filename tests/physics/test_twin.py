"""Simulated images against the thin lens and triangulation, by measurements on the images."""

import numpy as np
import pytest

import d3s
from d3s.lab.twin.geometry import Mount
from d3s.lab.twin.textures import Texture
from d3s.optics.psf import diffraction_otf
from twin_tools import (
    PROTOTYPE,
    centroid_px,
    dot_texture,
    phase_shift_px,
    second_moment_px2,
    thin_rig,
)

OPTICS = PROTOTYPE.optics


@pytest.mark.parametrize("depth_m", [0.2, 0.2617, 0.4, 0.667, 0.81, 0.88, 1.234, 1.9, 2.5, 3.0])
@pytest.mark.parametrize("psf", ["disk", "gaussian", "diffraction"])
def test_disparity_of_a_plane_by_the_phase_of_the_cross_spectrum(depth_m, psf):
    pair = d3s.simulate(
        d3s.Plane(depth_m=depth_m, texture="noise"), PROTOTYPE, psf=psf, shape=(600, 900)
    )
    expected = 12.1e-3 * 3.84e-3 / (depth_m * 2e-6)
    measured = phase_shift_px(pair.left, pair.right, expected)
    assert measured == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("phase", np.linspace(0, 1, 8, endpoint=False))
@pytest.mark.parametrize("texture", ["leaves", "text"])
def test_disparity_at_any_part_of_a_pixel(phase, texture):
    depth_m = float(OPTICS.depth_m(24 + phase))
    pair = d3s.simulate(d3s.Plane(depth_m=depth_m, texture=texture), PROTOTYPE, shape=(300, 420))
    assert phase_shift_px(pair.left, pair.right, 24 + phase) == pytest.approx(24 + phase, abs=0.003)


@pytest.mark.parametrize("offset_px", [-31.086, 0.37, 12.0])
def test_disparity_of_any_stereo_rig_with_its_offset(offset_px):
    rig = d3s.Rig.from_pinhole(
        focal_length_px=994.978, baseline_m=0.193, disparity_offset_px=offset_px
    )
    depth_m = 3.1
    expected = 994.978 * 0.193 / depth_m + offset_px
    scene = d3s.Plane(depth_m=depth_m, texture=Texture(pattern="noise", scale=8.0))
    pair = d3s.simulate(scene, rig, shape=(200, 300))
    assert phase_shift_px(pair.left, pair.right, expected, 0.4) == pytest.approx(
        expected, abs=0.005
    )


@pytest.mark.parametrize("camera", [0, 1])
@pytest.mark.parametrize("psf", ["disk", "gaussian"])
@pytest.mark.parametrize("depth_m", [0.25, 0.35, 0.6, 1.2, 1.64, 2.5])
def test_second_moment_of_a_point_is_that_of_the_thin_lens(depth_m, psf, camera):
    pair = d3s.simulate(
        d3s.Plane(depth_m=depth_m, texture=dot_texture(PROTOTYPE, depth_m, size_px=1.0)),
        PROTOTYPE,
        psf=psf,
        shape=(220, 400),
    )
    image = (pair.left, pair.right)[camera]
    added = second_moment_px2(image) - second_moment_px2(pair.all_in_focus)
    # s0 A (1/Z - rho + 1/s0) / p is the radius; a quarter of its square the moment along an axis.
    power = (83.88, 83.78)[camera]
    radius = 12.1e-3 * 1e-3 * (1 / depth_m - power + 1 / 12.1e-3) / 2e-6
    assert added == pytest.approx(radius**2 / 4, rel=0.01)


@pytest.mark.parametrize("depth_m", [0.3, 0.81, 1.5])
def test_spectrum_of_a_diffracted_view_is_that_of_the_lens(depth_m):
    scene = d3s.Plane(depth_m=depth_m, texture=dot_texture(PROTOTYPE, depth_m, size_px=0.8))
    pair = d3s.simulate(scene, PROTOTYPE, psf="diffraction", shape=(256, 256))
    sharp, blurred = (np.fft.rfft2(image)[0, :64] for image in (pair.all_in_focus, pair.left))
    frequency = np.fft.rfftfreq(256)[:64]
    expected = diffraction_otf(frequency, OPTICS.blur_radius_px(depth_m, 0), OPTICS.lens(0), 550e-9)
    np.testing.assert_allclose((blurred / sharp).real, expected, atol=4e-3)


@pytest.mark.parametrize("camera", [0, 1])
@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        # The dot is 40 px right of the axis and 25 px below it; the axis at (159.5, 119.5).
        (Mount(), (199.5, 144.5)),
        (Mount(scale=1.02), (200.3, 145.0)),
        (Mount(shift_x_px=3.3, shift_y_px=-2.6), (202.8, 141.9)),
        (Mount(roll_rad=0.1), (196.8044, 148.3684)),
    ],
)
def test_point_is_where_the_mount_puts_it(mount, expected, camera):
    depth_m = 1.0
    scene = d3s.Plane(depth_m=depth_m, texture=dot_texture(PROTOTYPE, depth_m, at_px=(40.0, 25.0)))
    pair = d3s.simulate(scene, PROTOTYPE, mounts=(mount, mount), shape=(240, 320))
    x, y = centroid_px((pair.left, pair.right)[camera])
    # The right camera sees it 23.232 px further left, along the rows of a perfect view.
    turned = mount.matrix @ (-23.232 * camera, 0.0)
    assert (x, y) == pytest.approx((expected[0] + turned[0], expected[1] + turned[1]), abs=0.01)


def test_tilted_plane_has_the_disparity_of_its_depth():
    scene = d3s.TiltedPlane(depth_m=0.8, tilt_x_rad=0.9, tilt_y_rad=-0.6, texture="noise_white")
    pair = d3s.simulate(scene, PROTOTYPE, shape=(360, 520))
    # Worked by hand: 1/Z at the middle is 1/0.8; a pixel right of it looks along 1/6050.
    slope_x, slope_y = np.tan(0.9), np.tan(-0.6)
    y, x = np.mgrid[:360, :520]
    inverse = (1 - slope_x * (x - 259.5) / 6050 - slope_y * (y - 179.5) / 6050) / 0.8
    np.testing.assert_allclose(pair.depth_m, 1 / inverse, rtol=1e-6)
    np.testing.assert_allclose(pair.disparity_px, 23.232 * inverse, rtol=1e-6)
    for row in (90, 180, 270):
        for col in (150, 260, 400):
            assert _residual_px(pair, row, col) == pytest.approx(0, abs=0.01)


def _residual_px(pair, row, col, half=40):
    """Shift between the left view and the right view sampled at the true disparity."""
    from scipy.ndimage import map_coordinates

    part = np.s_[row - half : row + half, col - half : col + half]
    y, x = np.mgrid[part]
    moved = map_coordinates(pair.right.astype(float), [y, x - pair.disparity_px[part]], order=5)
    slope = np.gradient((pair.left[part] + moved) / 2, axis=1)
    return np.sum(slope * (moved - pair.left[part])) / np.sum(slope**2)


def test_object_shrinks_with_distance():
    # A pinhole sees at twice the distance every second pixel of what it saw before, averaged.
    rig = thin_rig(aperture_radius_m=0.0)
    near, far = (
        d3s.simulate(d3s.Plane(depth_m=z, texture="noise"), rig, shape=shape).left
        for z, shape in ((0.7, (400, 400)), (1.4, (200, 200)))
    )
    halved = near.reshape(200, 2, 200, 2).mean(axis=(1, 3))
    # An average of four is not quite what a pixel of twice the size sees.
    assert np.corrcoef(halved.ravel(), far.ravel())[0, 1] > 0.98
    assert phase_shift_px(halved, far, 0, 0.25) == pytest.approx(0, abs=0.01)
    assert phase_shift_px(halved.T, far.T, 0, 0.25) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("tilt_rad", [0.0, 0.9, 1.1, 1.3])
@pytest.mark.parametrize(
    ("cycles_px", "lowest", "highest"),
    [(0.3, 0.8, 0.86), (0.8, 0.0, 0.01), (1.0, 0.0, 0.01), (1.7, 0.0, 0.02), (2.2, 0.0, 0.01)],
)
def test_stripes_on_a_tilted_plane(tilt_rad, cycles_px, lowest, highest):
    # Level stripes, so many a pixel in the middle of the view, where the plane is foreshortened: a
    # pixel's own width passes sinc(0.3) = 0.86, and what is beyond Nyquist must be gone.
    rig, depth_m = thin_rig(aperture_radius_m=0.0), 1.0
    period_m = depth_m / 6050 / np.cos(tilt_rad) / cycles_px
    stripes = 0.5 + 0.45 * np.cos(2 * np.pi * np.arange(4000) / 8)
    photo = d3s.Photo(image=np.tile(stripes[:, None], (1, 16)), width_m=2 * period_m)
    scene = d3s.TiltedPlane(depth_m=depth_m, tilt_y_rad=tilt_rad, texture=photo)
    view = d3s.simulate(scene, rig, shape=(64, 64)).left[24:40]
    assert lowest <= np.sqrt(2) * view.std() / 0.45 <= highest


def test_no_grey_comes_in_from_the_border():
    # A nearly black wall, tilted so that its blur has many slices.
    dark = 0.1 + 1e-3 * np.random.default_rng(0).random((64, 64))
    for psf in ("disk", "gaussian", "diffraction"):
        scene = d3s.TiltedPlane(depth_m=0.4, tilt_x_rad=1.3, texture=dark)
        view = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(160, 240)).left
        np.testing.assert_allclose(view, 0.1005, atol=1e-3)


@pytest.mark.parametrize("psf", ["disk", "gaussian", "diffraction"])
def test_light_is_conserved(psf):
    scene = d3s.Plane(depth_m=0.5, texture=dot_texture(PROTOTYPE, 0.5))
    pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(240, 420))
    total = pair.all_in_focus.sum(dtype=float)
    # Diffraction throws a tenth of a percent of it out of the frame.
    tolerance = 3e-3 if psf == "diffraction" else 1e-4
    for image in (pair.left, pair.right):
        assert image.sum(dtype=float) == pytest.approx(total, rel=tolerance)
