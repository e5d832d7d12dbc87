"""Maximum likelihood on synthetic windows reaches the Cramér-Rao bound and does not beat it.

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
        # The Nyquist column of an even window has no direction: do not shift it.
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


def test_bound_map_is_reached_inside_a_larger_image():
    """Windows of noisy images, not periodic ones: one least-squares step for each window."""
    rng = np.random.default_rng(7)
    shape, depth, noise, window = (96, 192), 1.0, 0.01, 31
    fy, fx = np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None]
    fx = np.where(fx == 0.5, 0.0, fx)  # the Nyquist column has no direction
    spectrum = np.fft.rfft2(rng.normal(size=shape)) * psf.gaussian_otf(np.hypot(fx, fy), 1.0)
    shift = np.exp(
        2j * np.pi * fx * float(stereo.disparity_px(depth, disparity_offset_px=0.0, **GEOMETRY))
    )
    left, right = (np.fft.irfft2(spectrum * place, s=shape) for place in (1.0, shift))
    bound = information.depth_bound_map(
        left,
        right,
        depth,
        disparity_offset_px=0.0,
        alpha_px2_m=0.0,
        noise_sigma=noise,
        window_px=window,
        **GEOMETRY,
    ).total_m
    slope = float(stereo.disparity_slope_px_per_m(depth, **GEOMETRY))
    half = window // 2
    boxes = [
        (r, c, np.s_[r - half : r + half + 1, c - half : c + half + 1])
        for r in range(24, 80, 24)
        for c in range(48, 176, 24)
    ]
    ratios = []
    for _ in range(80):
        noisy = [np.fft.rfft2(view + noise * rng.normal(size=shape)) for view in (left, right)]
        # A shift in the spectrum is exact and leaves white noise white.
        aligned = noisy[1] / shift
        difference = np.fft.irfft2(noisy[0] - aligned, s=shape)
        gradient = np.fft.irfft2(0.5 * (noisy[0] + aligned) * 2j * np.pi * fx, s=shape)
        for r, c, box in boxes:
            residual_px = -(gradient[box] * difference[box]).sum() / (gradient[box] ** 2).sum()
            ratios.append(residual_px / slope / bound[r, c])
    assert np.std(ratios) == pytest.approx(1, abs=0.1)
    assert abs(np.mean(ratios)) < 0.1


class NaturalWindow(Window):
    """A window of scale-invariant texture of 15 % contrast, as `Conditions()` assume it."""

    def __init__(self, depth: float, *, disk: bool) -> None:
        super().__init__(PROTOTYPE, depth, disk, seed=0)
        self.size, self.noise = 31, 0.01
        self.fx, fy = np.fft.fftfreq(31)[None, :], np.fft.fftfreq(31)[:, None]
        self.frequency = np.hypot(self.fx, fy)
        self.power = information.scale_invariant_power(self.frequency, contrast=0.15, window_px=31)
        self.usable = information.usable_share(self.power, self.transfer(depth), self.noise)
        self.texture = np.sqrt(self.power * self.usable)  # for `information`, which squares it

    def directions(self, depth: float) -> np.ndarray:
        """Unit vector, per frequency, along which the two views of a texture lie."""
        h0, h1 = self.transfer(depth)
        views = np.stack([h0 + 0j, h1 * self.shift(depth)])
        length = np.hypot(h0, h1)
        return np.divide(views, length, out=np.zeros_like(views), where=length > 0)

    def spread_over_bound(self, count: int) -> float:
        """Most likely depths of fresh textures with fresh noise, both cues together."""
        limit = float(information.depth_bound(self.information(self.noise)).total_m)
        rng = np.random.default_rng(1)
        depths = self.depth + np.linspace(-6, 6, 61) * limit
        candidates = [self.directions(depth).conj() for depth in depths]
        h0, h1 = self.transfer(self.depth)
        views = np.stack([h0 + 0j, h1 * self.shift(self.depth)])
        found = []
        for _ in range(count):
            white = np.fft.fft2(rng.normal(size=(3, 31, 31)), norm="ortho")
            seen = views * np.sqrt(self.power) * white[0] + self.noise * white[1:]
            likelihood = np.array(
                [np.sum(self.usable * np.abs((u * seen).sum(axis=0)) ** 2) for u in candidates]
            )
            best = int(np.clip(likelihood.argmax(), 1, 59))
            before, peak, after = likelihood[best - 1 : best + 2]
            step = 0.5 * (before - after) / (before - 2 * peak + after)
            found.append(depths[best] + step * (depths[1] - depths[0]))
        return float(np.std(found) / limit)


@pytest.mark.parametrize("depth", [0.3, 0.5, 1.64, 2.5])
def test_bound_is_reached_for_natural_texture_at_one_per_cent_noise(depth):
    """Much of the defocus information of a disk is below the noise; the rest is usable."""
    ratio = NaturalWindow(depth, disk=True).spread_over_bound(count=250)
    assert ratio == pytest.approx(1, abs=0.2)


def test_designers_rings_are_the_windows_frequencies():
    """`expected_information` in rings against the sum over the frequencies of a window."""
    window = NaturalWindow(1.64, disk=True)

    def transfer(camera: int):
        lens = window.lenses[camera]
        return lambda f, depth: psf.disk_otf(f, thin_lens.blur_radius_px(depth, lens))

    rings = information.expected_information(
        1.64,
        transfer(0),
        transfer(1),
        contrast=0.15,
        noise_sigma=0.01,
        window_px=31,
        **GEOMETRY,
    )
    # A window has few low frequencies, and they do not fill their rings evenly.
    assert rings.total_per_m2 == pytest.approx(window.information(0.01).total_per_m2, rel=0.15)
