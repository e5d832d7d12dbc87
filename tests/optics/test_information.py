"""Information and bounds by hand; `tests/physics/test_bound.py` has them by Monte Carlo."""

import numpy as np
import pytest

from d3s.optics import information, psf, thin_lens
from d3s.optics.d3 import alpha_px2_m

PROTOTYPE = {"focal_length_px": 6050.0, "baseline_m": 3.84e-3}


def test_stereo_bound_by_hand():
    # sd(d) = sqrt(2) 0.01 / sqrt(200) = 0.001 px; at 1 m a pixel is 1/23.232 m.
    info = information.window_information(
        200.0, 0.0, 1.0, alpha_px2_m=0.9150625, noise_sigma=0.01, **PROTOTYPE
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
        0.0, 50.0, 2.0, alpha_px2_m=0.9150625, noise_sigma=0.01, **PROTOTYPE
    )
    assert information.depth_bound(info).defocus_m == pytest.approx(8.74256e-3, rel=1e-5)


def test_cues_add():
    info = information.DepthInformation(np.array(300.0), np.array(100.0))
    bound = information.depth_bound(info)
    assert bound.total_m == pytest.approx(0.05)
    assert info.defocus_share == pytest.approx(0.25)


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
        alpha_px2_m=alpha_px2_m(left, right),
        noise_sigma=noise,
        **PROTOTYPE,
    )
    assert exact.stereo_per_m2 == pytest.approx(spatial.stereo_per_m2, rel=1e-3)
    assert exact.defocus_per_m2 == pytest.approx(spatial.defocus_per_m2, rel=1e-3)


def test_scale_invariant_texture_has_the_contrast_that_was_asked():
    count = 1024
    axis = (np.arange(count) + 0.5) / count - 0.5
    frequency = np.hypot(*np.meshgrid(axis, axis))
    power = information.scale_invariant_power(frequency, contrast=0.15, window_px=31)
    assert np.sqrt(power.mean()) == pytest.approx(0.15, rel=2e-3)


def test_usable_share_by_hand():
    # P = 3e-4 (0.5² + 0.5²) = 1.5e-4 against 1e-4 of noise: 0.6
    half = np.array(0.5)
    assert information.usable_share(3e-4, (half, half), 0.01) == pytest.approx(0.6)
    assert information.usable_share(0.0, (half, half), 0.01) == 0


def _expected(left, right, depth, **changes):
    settings = {"contrast": 0.15, "noise_sigma": 0.01, "window_px": 31, **PROTOTYPE, **changes}
    return information.expected_information(depth, _gaussian(left), _gaussian(right), **settings)


def test_expected_information_scales_as_it_must(left, right):
    base = _expected(left, right, 1.2)
    # Only the ratio of contrast to noise counts, by slightly more than its square: with more
    # contrast, more frequencies exceed the noise.
    louder = _expected(left, right, 1.2, contrast=0.3)
    same = _expected(left, right, 1.2, contrast=0.3, noise_sigma=0.02)
    assert same.total_per_m2 == pytest.approx(base.total_per_m2)
    assert 4 < louder.total_per_m2 / base.total_per_m2 < 4.1
    wide = _expected(left, right, 1.2, baseline_m=2 * 3.84e-3)
    assert wide.stereo_per_m2 == pytest.approx(4 * base.stereo_per_m2)
    assert wide.defocus_per_m2 == pytest.approx(base.defocus_per_m2)


@pytest.mark.parametrize("depth", [0.05, 0.1, 0.2, 0.245, 50.0])
def test_far_out_of_focus_there_is_less_and_less_but_never_nan(left, right, depth):
    info = _expected(left, right, depth)
    assert 0 <= info.stereo_per_m2 < np.inf
    assert 0 <= info.defocus_per_m2 < np.inf


def _pair(
    depth: float, noise: float, seed: int = 0, sigmas: tuple[float, float] = (1.2, 1.2), offset=0.0
) -> tuple[np.ndarray, np.ndarray]:
    """A pair of a random texture, blurred and displaced exactly, by Fourier synthesis."""
    rng = np.random.default_rng(seed)
    rows, columns = 64, 128
    fy, fx = np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None]
    texture = np.fft.rfft2(rng.normal(size=(rows, columns)))
    shift = np.exp(2j * np.pi * fx * (23.232 / depth + offset))
    frequency = np.hypot(fx, fy)
    spectra = (texture * psf.gaussian_otf(frequency, sigma) for sigma in sigmas)
    views = (
        np.fft.irfft2(spectrum * place, s=(rows, columns))
        for spectrum, place in zip(spectra, (1.0, shift), strict=True)
    )
    return tuple(view + noise * rng.normal(size=view.shape) for view in views)


MAP = {
    "disparity_offset_px": 0.0,
    "alpha_px2_m": 0.0,
    "noise_sigma": 0.01,
    "window_px": 15,
    **PROTOTYPE,
}


def _derivatives(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exact x-derivative and Laplacian of a periodic image."""
    fy, fx = np.fft.fftfreq(image.shape[0])[:, None], np.fft.fftfreq(image.shape[1])[None]
    spectrum = np.fft.fft2(image)
    gradient = np.fft.ifft2(spectrum * 2j * np.pi * fx).real
    return gradient, np.fft.ifft2(-spectrum * (2 * np.pi) ** 2 * (fx**2 + fy**2)).real


@pytest.mark.parametrize("offset", [0.0, -9.25])
def test_bound_map_is_that_of_each_window(offset):
    """Both cues, worked out for one window from the exact derivatives of the two views."""
    left, right = _pair(1.3, noise=0.0, sigmas=(1.2, 1.3), offset=offset)
    settings = {**MAP, "alpha_px2_m": 0.9, "disparity_offset_px": offset}
    bound = information.depth_bound_map(left, right, 1.3, **settings)
    assert bound.total_m.shape == left.shape
    box = np.s_[30 - 7 : 30 + 8, 60 - 7 : 60 + 8]
    # Texture of the right view, shifted back to the left view.
    same_place = _pair(1.3, noise=0.0, sigmas=(1.3, 1.3))[0]
    grad, lap = (
        (a * b)[box].sum()
        for a, b in zip(_derivatives(left), _derivatives(same_place), strict=True)
    )
    stereo = np.sqrt(2) * 0.01 / np.sqrt(grad) / (23.232 / 1.3**2)
    defocus = np.sqrt(2) * 0.01 / np.sqrt(lap) / (0.9 / 1.3**2)
    assert bound.stereo_m[30, 60] == pytest.approx(stereo, rel=3e-3)  # the spline's loss
    assert bound.defocus_m[30, 60] == pytest.approx(defocus, rel=6e-3)
    assert bound.total_m[30, 60] == pytest.approx((stereo**-2 + defocus**-2) ** -0.5, rel=3e-3)


def test_bound_map_is_not_fooled_by_noise():
    settings = {**MAP, "alpha_px2_m": 0.9}
    clean = information.depth_bound_map(*_pair(1.3, noise=0.0), 1.3, **settings)
    noisy = information.depth_bound_map(*_pair(1.3, noise=0.02), 1.3, **settings)
    inner = np.s_[16:-16, 40:-16]
    assert np.median(noisy.stereo_m[inner] / clean.stereo_m[inner]) == pytest.approx(1, abs=0.02)
    assert np.median(noisy.defocus_m[inner] / clean.defocus_m[inner]) == pytest.approx(1, abs=0.05)


def test_bound_map_is_nan_where_there_is_no_depth_or_no_second_view():
    left, right = _pair(1.3, noise=0.0)
    depth = np.full(left.shape, 1.3)
    depth[20, 50], depth[20, 51], depth[20, 52] = np.nan, -1.0, 0.0
    left[40, 80] = np.nan
    bound = information.depth_bound_map(left, right, depth, **MAP).total_m
    assert np.isnan(bound[20, 50:53]).all()
    assert np.isnan(bound[40, 80])
    assert np.isfinite(bound[20, 60])
    assert np.isnan(bound[:, :17]).all()  # 17.87 px of disparity: the right view starts later
    assert not np.isnan(bound[:10, 18:]).any()
    assert bound[0, -1] == np.inf  # too near the border for a derivative: it knows nothing
