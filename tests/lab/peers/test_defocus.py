"""Rivals that use defocus find depth where stereo cannot."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.optics.psf import gaussian_otf

OPTICS = d3s.Rig.paper_prototype().optics
# Six times the difference in power, so that defocus is informative in a small window.
RIG = d3s.Rig.paper_prototype().replace(
    optics=OPTICS.replace(optical_power_right_dpt=OPTICS.optical_power_left_dpt - 0.6)
)
SHAPE = (110, 190)


def stripes(depth_m, noise=0.0005):
    """Pair of stripes along the rows: every disparity fits, only the blur depends on depth."""
    rng = np.random.default_rng(0)
    profile = rng.random(SHAPE[0])
    frequency = np.fft.rfftfreq(SHAPE[0])
    views = []
    for camera in (0, 1):
        transfer = gaussian_otf(frequency, RIG.optics.blur_sigma_px(depth_m, camera))
        blurred = np.fft.irfft(np.fft.rfft(profile) * transfer, SHAPE[0])
        views.append(blurred[:, np.newaxis] + rng.normal(0, noise, SHAPE))
    return views


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("takeda2013", {"psf": "gaussian", "consistency_px": -1, "min_confidence": 0}),
        ("guo2017", {"gain": 1.0, "consistency_px": -1, "min_confidence": 0}),
        ("li2010", {"consistency_px": -1, "min_confidence": 0}),
    ],
)
@pytest.mark.parametrize("depth_m", [0.55, 0.9])
def test_depth_of_stripes_along_the_rows(method, options, depth_m):
    result = d3s.estimate(*stripes(depth_m), RIG, method=method, options=options)
    seen = result.depth_m[30:-30, 60:-30]
    assert np.isfinite(seen).mean() > 0.5
    # A quarter of a dioptre: this change of power is not small, as the differential method assumes.
    assert np.nanmedian(np.abs(1 / seen - 1 / depth_m)) < 0.25


def test_differential_defocus_needs_defocus():
    pinhole = d3s.Rig.from_pinhole(
        focal_length_px=1000.0, baseline_m=0.1, disparity_offset_px=0.0, name="pinhole"
    )
    image = np.random.default_rng(0).random((60, 120))
    with pytest.raises(InputError, match="needs lenses of different power"):
        d3s.estimate(image, image, pinhole, method="guo2017")


@pytest.mark.parametrize("method", ["takeda2013", "li2010", "phase", "sift", "sgbm", "bm"])
def test_pinhole_pair_is_plain_stereo(method):
    """Without blur, with negative disparities."""
    rig = d3s.Rig.from_pinhole(
        focal_length_px=1000.0, baseline_m=0.2, disparity_offset_px=-50.0, name="offset"
    )
    texture = np.random.default_rng(0).random((140, 300))
    texture = sum(np.roll(texture, (i, j), (0, 1)) for i in range(3) for j in range(3)) / 9
    left, right = texture[:, 10:250], texture[:, 5:245]  # a point lies 5 px further right there
    options = {"depth_range_m": (3.0, 20.0)}
    if method in ("sgbm", "bm"):
        options["prefilter_sigma_px"] = 0.7
    result = d3s.estimate(left, right, rig, method=method, options=options)
    # 1000 * 0.2 / (-5 + 50)
    inside = result.depth_m[40:-40, 40:-40]
    assert np.isfinite(inside).mean() > (0.001 if method == "sift" else 0.9)
    assert np.nanmedian(inside) == pytest.approx(4.444, abs=0.02)
