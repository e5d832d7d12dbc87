"""Pairs: same bytes, noise, truth; no artefacts at borders, no grid, no period."""

import numpy as np
import pytest
from scipy import ndimage

import d3s
from d3s.optics.psf import disk_otf
from twin_tools import PROTOTYPE, thin_rig

SHAPE = (120, 160)
PINHOLE = thin_rig(aperture_radius_m=0.0)
FIELDS = ("left", "right", "depth_m", "all_in_focus", "occluded")


def box():
    mask = np.zeros(SHAPE, dtype=np.float32)
    mask[40:80, 60:100] = 1
    return mask


CURVED = d3s.LensErrors(focus_sagittal_dpt=0.3)
SCENES = {
    "plane": d3s.Plane(depth_m=0.6, texture="stone"),
    "tilted": d3s.TiltedPlane(depth_m=0.6, tilt_x_rad=1.0, tilt_y_rad=-0.7, texture="leaves"),
    "layered": d3s.Layered(
        layers=[d3s.Layer(depth_m=0.4, mask=box()), d3s.Layer(depth_m=1.2, texture="noise")]
    ),
    "depth map": d3s.DepthMapScene(
        image=np.random.default_rng(0).random(SHAPE), depth_m=np.where(box() == 1, 0.4, 1.2)
    ),
}


def simulate(scene, rig=PROTOTYPE, **options):
    return d3s.simulate(scene, rig, **{"shape": SHAPE, **options})


def as_bytes(pair):
    return [getattr(pair, name).tobytes() for name in FIELDS]


@pytest.mark.parametrize("name", SCENES)
def test_one_seed_is_one_pair_whatever_the_number_of_threads(name, monkeypatch):
    pairs = []
    for threads in ("1", "3"):
        monkeypatch.setenv("D3S_THREADS", threads)
        pairs.append(as_bytes(simulate(SCENES[name], noise=0.01, seed=(7, 1))))
    assert pairs[0] == pairs[1]


def test_point_spread_function_may_be_a_function():
    def of_radius(share):
        return lambda frequency, radius_px, lens: disk_otf(frequency, share * radius_px)

    for name, options in (("layered", {}), ("plane", {"lenses": (CURVED, CURVED)})):
        disk, own, half = (
            simulate(SCENES[name], psf=psf, **options)
            for psf in ("disk", of_radius(1.0), of_radius(0.5))
        )
        np.testing.assert_allclose(own.left, disk.left, atol=1e-4)
        assert (half.left - half.all_in_focus).std() < 0.8 * (disk.left - disk.all_in_focus).std()


def test_truth_of_a_plane_by_hand():
    pair = simulate(d3s.Plane(depth_m=0.4))
    np.testing.assert_allclose(pair.depth_m, 0.4, rtol=1e-6)
    # 12.1 mm x 3.84 mm / (2 um x 0.4 m); 6.05 px m (2.5 - 83.88 + 1/0.0121) and 83.78 for it.
    np.testing.assert_allclose(pair.disparity_px, 58.08, rtol=1e-6)
    np.testing.assert_allclose(pair.blur_left_px, 7.651, rtol=1e-4)
    np.testing.assert_allclose(pair.blur_right_px, 8.256, rtol=1e-4)
    beyond = simulate(d3s.Plane(depth_m=2.5))
    np.testing.assert_allclose(beyond.blur_left_px, -5.054, rtol=1e-4)
    np.testing.assert_allclose(beyond.blur_right_px, -4.449, rtol=1e-4)


@pytest.mark.parametrize(("disparity_px", "hidden"), [(24.4, 24), (24.6, 25), (0.3, 0), (200, 160)])
def test_plane_is_hidden_where_the_right_view_ends(disparity_px, hidden):
    # A point is in the right frame to half a pixel beyond its first column.
    scene = d3s.Plane(depth_m=23.232 / disparity_px)
    occluded = simulate(scene, PINHOLE).occluded
    assert occluded[:, :hidden].all()
    assert not occluded[:, hidden:].any()


@pytest.mark.parametrize("name", ["plane", "tilted"])
@pytest.mark.parametrize("psf", ["disk", "gaussian", "diffraction"])
def test_frame_is_part_of_a_larger_one(name, psf):
    # The outermost pixel is right too: the surroundings of the frame are rendered.
    small = simulate(SCENES[name], psf=psf)
    large = simulate(SCENES[name], psf=psf, shape=(220, 300))
    # Slices of blur depend on the frame; they differ by at most 0.6 % of the contrast.
    # Diffraction has tails: about 1e-3 of the light falls outside the window.
    tolerance = 6e-3 if name == "tilted" else {"diffraction": 3e-3}.get(psf, 2e-4)
    for view in ("left", "right", "all_in_focus"):
        np.testing.assert_allclose(
            getattr(small, view), getattr(large, view)[50:-50, 70:-70], atol=tolerance
        )


@pytest.mark.parametrize(
    "scene",
    [d3s.TiltedPlane(depth_m=1.0, tilt_x_rad=1.0, tilt_y_rad=0.4), d3s.Plane(depth_m=0.837)],
    ids=["tilted", "odd scale"],
)
def test_no_column_is_softer_than_the_others(scene):
    powers = {"left": [], "right": []}
    for seed in range(3):
        texture = d3s.Texture(pattern="noise_white", seed=seed)
        pair = d3s.simulate(scene.replace(texture=texture), PINHOLE, shape=(400, 600))
        for name, power in powers.items():
            power.append(np.diff(getattr(pair, name).astype(float), axis=1) ** 2)
    for power in powers.values():
        across, down = np.mean(power, axis=(0, 1)), np.mean(power, axis=(0, 2))
        for line in (across, down):
            even = (line / ndimage.uniform_filter1d(line, 49))[24:-24]
            for period in (2, 3, 4, 8):
                means = [even[first::period].mean() for first in range(period)]
                # 0.024 is the largest chance value over three frames.
                assert np.ptp(means) < 0.04
