"""The Cramér-Rao bound is reached, and not beaten: maximum likelihood on synthetic windows.

The texture is unknown to the estimator. Each figure is the spread of many draws over the bound;
with n draws its own relative error is 1/sqrt(2n), 3 % for 600.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import analytic
from d3s.optics import information, psf, stereo, thin_lens
from d3s.optics.lens import Lens

FOCAL_PX, BASELINE_M = 6050.0, 3.84e-3
GEOMETRY = {"focal_length_px": FOCAL_PX, "baseline_m": BASELINE_M}


def _lens(power: float) -> Lens:
    return analytic.lens_of(analytic.Camera(power=power))


class Window:
    """A periodic window of random texture, seen by two lenses; everything in its spectrum."""

    def __init__(self, powers: tuple[float, float], depth: float, disk: bool, seed: int) -> None:
        self.size, self.depth, self.disk = 24, depth, disk
        self.lenses = tuple(_lens(power) for power in powers)
        rng = np.random.default_rng(seed)
        axis = np.fft.fftfreq(self.size)
        self.fx, fy = axis[None, :], axis[:, None]
        self.frequency = np.hypot(self.fx, fy)
        self.texture = np.fft.fft2(rng.normal(size=(self.size, self.size)), norm="ortho")

    def transfer(self, depth: float) -> tuple[np.ndarray, np.ndarray]:
        radii = (float(thin_lens.blur_radius_px(depth, lens)) for lens in self.lenses)
        if self.disk:
            return tuple(psf.disk_otf(self.frequency, abs(r)) for r in radii)
        return tuple(psf.gaussian_otf(self.frequency, 0.5 * r) for r in radii)

    def shift(self, depth: float) -> np.ndarray:
        disparity = stereo.disparity_px(depth, disparity_offset_px=0.0, **GEOMETRY)
        # The Nyquist column of an even window has no direction; leave it still.
        fx = np.where(np.abs(self.fx) == 0.5, 0.0, self.fx)
        return np.exp(2j * np.pi * fx * disparity)

    def information(self, noise: float) -> information.DepthInformation:
        h = 1e-5
        slopes = tuple(
            (ahead - behind) / (2 * h)
            for ahead, behind in zip(
                self.transfer(self.depth + h), self.transfer(self.depth - h), strict=True
            )
        )
        fx = np.where(np.abs(self.fx) == 0.5, 0.0, self.fx)
        return information.spectral_information(
            np.abs(self.texture) ** 2,
            np.broadcast_to(fx, self.frequency.shape),
            self.transfer(self.depth),
            slopes,
            disparity_slope_px_per_m=float(stereo.disparity_slope_px_per_m(self.depth, **GEOMETRY)),
            noise_sigma=noise,
        )

    def draws(self, noise: float, count: int, cues: str, reach: float) -> np.ndarray:
        """Maximum-likelihood depths of noisy views, from the cues named."""
        rng = np.random.default_rng(1)
        h0, h1 = self.transfer(self.depth)
        clean = np.stack([h0 * self.texture, h1 * self.texture * self.shift(self.depth)])

        def misfit(depth: float, views: np.ndarray) -> float:
            h0, h1 = self.transfer(depth if cues != "stereo" else self.depth)
            shift = self.shift(depth if cues != "defocus" else self.depth)
            residual = h1 * shift * views[0] - h0 * views[1]
            return float(np.sum(np.abs(residual) ** 2 / (h0**2 + h1**2)))

        found = []
        for _ in range(count):
            noisy = np.fft.fft2(noise * rng.normal(size=clean.shape), norm="ortho") + clean
            result = minimize_scalar(
                misfit,
                bounds=(self.depth - reach, self.depth + reach),
                args=(noisy,),
                method="bounded",
                options={"xatol": reach * 1e-4},
            )
            found.append(result.x)
        return np.array(found)


def _spread_over_bound(window: Window, noise: float, cues: str, count: int) -> float:
    info = window.information(noise)
    bound = information.depth_bound(info)
    limit = float(
        {"both": bound.total_m, "stereo": bound.stereo_m, "defocus": bound.defocus_m}[cues]
    )
    depths = window.draws(noise, count, cues, reach=8 * limit)
    assert abs(depths.mean() - window.depth) < 4 * limit / np.sqrt(count), "biased"
    return float(depths.std() / limit)


PROTOTYPE = (83.88, 83.78)
UNEQUAL = (84.8, 82.9)  # defocus strong enough to share the work

CASES = {
    "stereo, prototype": (PROTOTYPE, 1.2, False, "stereo"),
    "both, prototype": (PROTOTYPE, 1.2, False, "both"),
    "both, disk": (PROTOTYPE, 0.6, True, "both"),
    "defocus, unequal": (UNEQUAL, 1.2, False, "defocus"),
    "both, unequal": (UNEQUAL, 1.2, False, "both"),
}


@pytest.mark.parametrize("name", CASES)
def test_maximum_likelihood_reaches_the_bound(name):
    powers, depth, disk, cues = CASES[name]
    window = Window(powers, depth, disk, seed=2)
    assert _spread_over_bound(window, 0.002, cues, count=600) == pytest.approx(1, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_maximum_likelihood_reaches_the_bound_closely(name, seed):
    powers, depth, disk, cues = CASES[name]
    window = Window(powers, depth, disk, seed=seed)
    assert _spread_over_bound(window, 0.001, cues, count=3000) == pytest.approx(1, abs=0.05)


def test_unequal_lenses_do_share_the_work():
    """So that the joint case above is a test of the sum, not of one cue."""
    share = Window(UNEQUAL, 1.2, False, seed=2).information(0.002).defocus_share
    assert 0.1 < share < 0.9


def test_bound_map_is_reached_inside_a_larger_image():
    """Windows of an image, not periodic ones: the least-squares shift of each window."""
    rng = np.random.default_rng(7)
    rows, columns, depth, noise, window = 96, 192, 1.0, 0.01, 31
    fy, fx = np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None]
    fx_odd = np.where(fx == 0.5, 0.0, fx)
    spectrum = np.fft.rfft2(rng.normal(size=(rows, columns))) * psf.gaussian_otf(
        np.hypot(fx, fy), 1.0
    )
    disparity = float(stereo.disparity_px(depth, disparity_offset_px=0.0, **GEOMETRY))
    left = np.fft.irfft2(spectrum, s=(rows, columns))
    right = np.fft.irfft2(spectrum * np.exp(2j * np.pi * fx_odd * disparity), s=(rows, columns))
    bound = information.depth_bound_map(
        left,
        right,
        depth,
        disparity_offset_px=0.0,
        alpha=0.0,
        noise_sigma=noise,
        window_px=window,
        **GEOMETRY,
    ).total_m
    slope = float(stereo.disparity_slope_px_per_m(depth, **GEOMETRY))
    gradient = np.fft.irfft2(spectrum * 2j * np.pi * fx_odd, s=(rows, columns))
    half = window // 2
    centres = [(r, c) for r in range(24, 80, 24) for c in range(48, 176, 24)]
    ratios = []
    for _ in range(80):
        # Noise that is white before the alignment is white after it, whatever the shift.
        difference = noise * (rng.normal(size=left.shape) - rng.normal(size=left.shape))
        for r, c in centres:
            box = np.s_[r - half : r + half + 1, c - half : c + half + 1]
            shift = (gradient[box] * difference[box]).sum() / (gradient[box] ** 2).sum()
            ratios.append(shift / slope / bound[r, c])
    assert np.std(ratios) == pytest.approx(1, abs=0.1)
