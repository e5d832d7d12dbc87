"""Focus and aperture from the blur of boards, compared with the simulated lenses."""

from functools import cache

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import d3s
from d3s.calibrate.defocus import find_defocus

RIG = d3s.Rig.paper_prototype()
TRUE_DPT = tuple(1.0 / distance_m for distance_m in RIG.optics.focus_distances_m)
# A design that is wrong by 25 cm in focus and 10 % in aperture.
THOUGHT = RIG.optics.replace(
    optical_power_left_dpt=83.6, optical_power_right_dpt=83.6, aperture_radius_m=1.1e-3
)
DEPTHS_M = tuple(np.round(np.geomspace(0.3, 1.9, 12), 3).tolist())


@cache
def boards(depths_m=DEPTHS_M, *, rig=RIG, texture="calibration", seed=0, psf="disk"):
    pattern = d3s.Texture(pattern=texture, seed=seed)
    pairs = [
        d3s.simulate(
            d3s.Plane(depth_m=z, texture=pattern),
            rig,
            noise=0.01,
            seed=(seed, i),
            shape=(300, 560),
            psf=psf,
        )
        for i, z in enumerate(depths_m)
    ]
    return tuple((pair.left, pair.right) for pair in pairs)


@pytest.fixture(scope="module")
def usual():
    return find_defocus(boards(), DEPTHS_M, THOUGHT)


def test_focus_and_aperture_are_found_from_a_wrong_design(usual):
    found = usual
    assert found.focus_dpt == pytest.approx(TRUE_DPT, abs=0.025)
    assert max(found.focus_sd_dpt) < 0.03
    assert found.power_difference_dpt == pytest.approx(0.1, abs=0.006)
    assert found.aperture_radius_m == pytest.approx(1e-3, rel=0.04)
    assert found.blur_ratio == pytest.approx(1.0, abs=0.01)
    assert found.undetermined == ()
    assert not found.left_out
    optics = found.applied_to(THOUGHT)
    assert optics.focus_distances_m == pytest.approx(found.focus_distances_m)
    assert optics.alpha_px2_m == pytest.approx(RIG.optics.alpha_px2_m, rel=0.1)


def test_gain_of_a_view_is_not_blur(usual):
    dimmed = [(left, np.float32(0.7) * right) for left, right in boards()]
    found = find_defocus(dimmed, DEPTHS_M, THOUGHT)
    assert found.focus_dpt == pytest.approx(usual.focus_dpt, abs=0.01)
    assert found.power_difference_dpt == pytest.approx(usual.power_difference_dpt, abs=0.002)


def test_frame_that_moved_is_named_and_left_out():
    views = list(boards())
    views[5] = gaussian_filter(views[5][0], 2.0), views[5][1]
    found = find_defocus(views, DEPTHS_M, THOUGHT)
    assert list(found.left_out) == [5]
    assert np.isnan(found.relative.measured_px2[5])
    assert found.focus_dpt == pytest.approx(TRUE_DPT, abs=0.03)


@pytest.mark.parametrize("designed_m", [0.7e-3, 1.6e-3])
def test_undetermined_parameters_are_those_of_the_design(designed_m):
    """Boards that are near each other do not determine the aperture of 1 mm."""
    depths_m = (1.35, 1.36, 1.37, 1.38, 1.39)
    design = THOUGHT.replace(aperture_radius_m=designed_m)
    found = find_defocus(boards(depths_m), depths_m, design)
    assert any("the aperture is the design's" in words for words in found.undetermined)
    assert found.aperture_radius_m == pytest.approx(designed_m, rel=0.05)
    assert found.aperture_radius_sd_m == pytest.approx(0.3 * designed_m, rel=0.1)


@pytest.mark.slow
def test_standard_deviations_are_true():
    """Over new textures and noise; several parameters at once, since draws are few."""
    off = []
    for texture in ("leaves", "stone", "calibration"):
        for seed in range(4):
            found = find_defocus(boards(texture=texture, seed=seed), DEPTHS_M, THOUGHT)
            errors = np.subtract(found.focus_dpt, TRUE_DPT) / found.focus_sd_dpt
            difference = (found.power_difference_dpt - 0.1) / found.power_difference_sd_dpt
            aperture = (found.aperture_radius_m - 1e-3) / found.aperture_radius_sd_m
            ratio = (found.blur_ratio - 1.0) / found.blur_ratio_sd
            off.append([*errors, difference, aperture, ratio])
            boards.cache_clear()
    rms = np.sqrt(np.mean(np.square(off), axis=0))
    # Sigma includes the error of the model, which not every texture has.
    assert (rms > 0.3).all()
    assert (rms < 1.5).all()
