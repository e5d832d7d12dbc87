"""Information and bounds by hand; `tests/physics/test_bound.py` has them by Monte Carlo."""

import numpy as np
import pytest

from d3s.optics import information, psf, thin_lens
from d3s.optics.d3 import alpha_px2_m

PROTOTYPE = {"focal_length_px": 6050.0, "baseline_m": 3.84e-3}


def test_stereo_bound_by_hand():
    # sd(d) = sqrt(2) 0.01 / sqrt(200) = 0.001 px; at 1 m a pixel is 1/23.232 m.
    info = information.window_information(
        200.0, 0.0, 1.0, alpha=0.9150625, noise_sigma=0.01, **PROTOTYPE
    )
    bound = information.depth_bound(info)
    assert bound.stereo_m == pytest.approx(0.001 / 23.232)
    assert bound.total_m == bound.stereo_m
    assert bound.defocus_m == np.inf
    assert info.defocus_share == 0


def test_defocus_bound_by_hand():
    # At 2 m the variance difference changes by 2 alpha / Z² = 0.45753 px² a metre, its half
    # multiplies the Laplacian: sqrt(2) 0.01 / (0.228766 sqrt(50)) m.
    info = information.window_information(
        0.0, 50.0, 2.0, alpha=0.9150625, noise_sigma=0.01, **PROTOTYPE
    )
    assert information.depth_bound(info).defocus_m == pytest.approx(8.74256e-3, rel=1e-5)


def test_cues_add():
    info = information.DepthInformation(np.array(300.0), np.array(100.0))
    bound = information.depth_bound(info)
    assert bound.total_m == pytest.approx(0.05)
    assert info.defocus_share == pytest.approx(0.25)


def test_empty_window_knows_nothing():
    info = information.window_information(0.0, 0.0, 1.0, alpha=0.9, noise_sigma=0.01, **PROTOTYPE)
    assert information.depth_bound(info).total_m == np.inf
    assert np.isnan(info.defocus_share)


def _gaussian(lens):
    return lambda f, depth: psf.gaussian_otf(f, thin_lens.blur_sigma_px(depth, lens))


def test_spectral_and_spatial_forms_agree_for_lenses_that_focus_almost_alike(left, right):
    """One wave of amplitude 0.1 in a 64 x 64 window, four cycles along x and three along y."""
    n, fx, fy, depth, noise = 64, 4 / 64, 3 / 64, 0.9, 0.01
    k2 = (2 * np.pi) ** 2 * (fx**2 + fy**2)
    frequency = np.array([np.hypot(fx, fy)])
    transfers = (_gaussian(left), _gaussian(right))
    values = tuple(otf(frequency, depth) for otf in transfers)
    slopes = tuple(
        (otf(frequency, depth + 1e-5) - otf(frequency, depth - 1e-5)) / 2e-5 for otf in transfers
    )
    energy = np.array([0.1**2 / 2 * n * n])
    exact = information.spectral_information(
        energy,
        [fx],
        values,
        slopes,
        disparity_slope_px_per_m=-23.232 / depth**2,
        noise_sigma=noise,
    )
    seen = energy[0] * values[0][0] * values[1][0]
    spatial = information.window_information(
        (2 * np.pi * fx) ** 2 * seen,
        k2**2 * seen,
        depth,
        alpha=alpha_px2_m(left, right),
        noise_sigma=noise,
        **PROTOTYPE,
    )
    assert exact.stereo_per_m2 == pytest.approx(spatial.stereo_per_m2, rel=1e-3)
    assert exact.defocus_per_m2 == pytest.approx(spatial.defocus_per_m2, rel=1e-3)


def test_scale_invariant_texture_has_the_contrast_that_was_asked():
    count = 1024
    axis = (np.arange(count) + 0.5) / count - 0.5
    frequency = np.hypot(*np.meshgrid(axis, axis))
    energy = information.scale_invariant_energy(
        frequency, contrast=0.15, window_px=31, cell=1 / count**2
    )
    assert np.sqrt(energy.sum() / 31**2) == pytest.approx(0.15, rel=2e-3)


def _expected(left, right, depth, **changes):
    settings = {"contrast": 0.15, "noise_sigma": 0.01, "window_px": 31, **PROTOTYPE, **changes}
    return information.expected_information(depth, _gaussian(left), _gaussian(right), **settings)


def test_expected_information_scales_as_it_must(left, right):
    base = _expected(left, right, 1.2)
    assert _expected(left, right, 1.2, contrast=0.3).total_per_m2 == pytest.approx(
        4 * base.total_per_m2
    )
    assert _expected(left, right, 1.2, noise_sigma=0.03).total_per_m2 == pytest.approx(
        base.total_per_m2 / 9
    )
    wide = _expected(left, right, 1.2, baseline_m=2 * 3.84e-3)
    assert wide.stereo_per_m2 == pytest.approx(4 * base.stereo_per_m2)
    assert wide.defocus_per_m2 == pytest.approx(base.defocus_per_m2)


def test_lenses_that_focus_alike_know_depth_from_stereo_alone(left):
    info = _expected(left, left, 1.2)
    assert info.defocus_per_m2 == 0
    assert info.stereo_per_m2 > 0


def _pair(depth: float, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A pinhole pair of a smooth random texture, displaced exactly, by Fourier synthesis."""
    rng = np.random.default_rng(seed)
    rows, columns = 64, 128
    fy, fx = np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None]
    spectrum = np.fft.rfft2(rng.normal(size=(rows, columns)))
    spectrum *= psf.gaussian_otf(np.hypot(fx, fy), 1.2)
    disparity = 23.232 / depth
    left = np.fft.irfft2(spectrum, s=(rows, columns))
    right = np.fft.irfft2(spectrum * np.exp(2j * np.pi * fx * disparity), s=(rows, columns))
    return tuple(v + noise * rng.normal(size=v.shape) for v in (left, right))


MAP = {"disparity_offset_px": 0.0, "alpha": 0.0, "noise_sigma": 0.01, "window_px": 15, **PROTOTYPE}


def test_bound_map_is_that_of_each_window():
    left, right = _pair(1.3, noise=0.0)
    bound = information.depth_bound_map(left, right, 1.3, **MAP)
    assert bound.total_m.shape == left.shape
    row, column = 30, 60
    fx = np.fft.fftfreq(left.shape[1])[None]
    gradient = np.fft.ifft2(np.fft.fft2(left) * 2j * np.pi * fx).real
    window = gradient[row - 7 : row + 8, column - 7 : column + 8]
    expected = np.sqrt(2) * 0.01 / np.sqrt((window**2).sum()) / (23.232 / 1.3**2)
    assert bound.total_m[row, column] == pytest.approx(expected, rel=3e-3)  # the spline's loss


def test_bound_map_is_not_fooled_by_noise():
    clean = information.depth_bound_map(*_pair(1.3, noise=0.0), 1.3, **MAP).total_m
    noisy = information.depth_bound_map(*_pair(1.3, noise=0.02), 1.3, **MAP).total_m
    inner = np.s_[16:-16, 40:-16]
    assert np.median(noisy[inner] / clean[inner]) == pytest.approx(1, abs=0.02)


def test_bound_map_is_nan_where_there_is_no_depth_or_no_second_view():
    left, right = _pair(1.3, noise=0.0)
    depth = np.full(left.shape, 1.3)
    depth[20, 50] = np.nan
    bound = information.depth_bound_map(left, right, depth, **MAP).total_m
    assert np.isnan(bound[20, 50])
    assert np.isfinite(bound[20, 60])
    assert np.isnan(bound[:, :17]).all()  # 17.87 px of disparity: the right view starts later
    assert not np.isnan(bound[:, 18:50]).any()
    assert np.isfinite(bound[10:-10, 60:-10]).all()
    assert bound[0, -1] == np.inf  # too near the border for a derivative: it knows nothing


def test_alignment_is_exact_for_smooth_images():
    left, right = _pair(1.3, noise=0.0)
    aligned = information.aligned_right(right, 23.232 / 1.3)
    np.testing.assert_allclose(aligned[8:-8, 30:-10], left[8:-8, 30:-10], atol=2e-3)
