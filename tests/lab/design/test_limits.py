"""Limits of a camera, and the figures of docs/how_good.md."""

import numpy as np
import pytest

from d3s.errors import D3SError
from d3s.lab.design.limits import Conditions, depth_limits
from d3s.optics.psf import diffraction_range_m
from d3s.rig import Rig

OPTICS = Rig.paper_prototype().optics
DEPTHS = np.linspace(0.25, 2.5, 46)


def _limits(spread, depths=DEPTHS, **conditions):
    return depth_limits(OPTICS, depths, spread=spread, conditions=Conditions(**conditions))


def test_geometry_is_that_of_the_rig():
    limits = _limits("disk", [0.5, 1.0])
    np.testing.assert_allclose(limits.disparity_px, [46.464, 23.232])
    np.testing.assert_allclose(limits.blur_sigma_px[0], [2.3130, -0.7120], atol=1e-4)
    np.testing.assert_allclose(limits.blur_sigma_px[1], [2.6155, -0.4095], atol=1e-4)


@pytest.mark.parametrize("spread", ["gaussian", "disk", "diffraction"])
def test_bound_grows_with_noise_and_shrinks_with_contrast(spread):
    base = _limits(spread, [1.2]).bound.total_m
    # By slightly more than their ratio: the weakest frequencies fall below the noise.
    assert 3 < _limits(spread, [1.2], noise_sigma=0.03).bound.total_m / base < 3.3
    same = _limits(spread, [1.2], noise_sigma=0.03, contrast=0.45).bound.total_m
    assert same == pytest.approx(base)
    assert _limits(spread, [1.2], window_px=61).bound.total_m < base


def test_ordinary_stereo_pair_has_a_bound_and_no_defocus():
    optics = Rig.from_pinhole(focal_length_px=994.978, baseline_m=0.193).optics
    limits = depth_limits(optics, [2.0, 4.0], spread="disk", conditions=Conditions())
    assert not limits.information.defocus_per_m2.any()
    near, far = limits.bound.total_m
    assert far == pytest.approx(4 * near)  # a pinhole's error grows with the depth squared


def test_stereo_carries_the_depth_as_the_docs_say():
    assert _limits("gaussian").information.defocus_share.max() == pytest.approx(0.0145, abs=1e-3)
    assert _limits("disk").information.defocus_share.max() == pytest.approx(0.12, abs=5e-3)
    shares = _limits("diffraction", [0.25, 0.5, 0.8, 1.0, 2.5]).information.defocus_share
    np.testing.assert_allclose(100 * shares, [8.9, 1.4, 0.1, 0.1, 1.3], atol=0.06)


def test_diffraction_is_not_small_as_the_docs_say():
    ranges = [diffraction_range_m(OPTICS.lens(camera), 550e-9) for camera in (0, 1)]
    np.testing.assert_allclose(ranges, [[0.637, 1.111], [0.680, 1.250]], atol=1e-3)
    ratio = _limits("diffraction").bound.total_m / _limits("disk").bound.total_m
    assert 2 < ratio.max() < 2.5
    outside = (DEPTHS < 0.63) | (DEPTHS > 1.26)
    assert np.abs(ratio[outside] - 1).max() < 0.1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"noise_sigma": 1.5}, "noise_sigma=1.5 must be below 1"),
        ({"contrast": 0.0}, "contrast=0.0 must be above 0"),
        ({"window_px": 1}, "window_px=1 must be at least 3"),
        ({"wavelength_m": 550.0}, "wavelength_m=550.0.*in metres"),
    ],
)
def test_wrong_conditions_are_named(wrong, words):
    with pytest.raises(D3SError, match=words):
        Conditions(**wrong)


@pytest.mark.parametrize("depths", [[-1.0], [np.nan], 1.0])
def test_wrong_depths_are_named(depths):
    with pytest.raises(D3SError, match=r"depths_m=.* must be a list of positive"):
        _limits("disk", depths)
