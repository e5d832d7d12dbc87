"""The figures of docs/method.md show what the page says of them."""

import sys

import numpy as np
import pytest

import d3s
from pages import DOCS

sys.path.insert(0, str(DOCS))

import method_figures

OPTICS = d3s.Rig.paper_prototype().optics


def test_only_defocus_resolves_a_periodic_texture():
    pixel = method_figures.pixel_of(method_figures.waves(2.0, 12.0), 2.0)
    period_dpt = 12.0 / float(OPTICS.disparity_px(1.0))
    valleys_m = 1 / (0.5 + period_dpt * np.arange(4))
    stereo = pixel.residual_energy(valleys_m, 31, use_defocus=False)
    both = pixel.residual_energy(valleys_m, 31)
    assert stereo.max() < 1.2 * stereo.min()
    assert both.argmin() == 0
    assert both[1:].min() > 3 * both[0]


@pytest.mark.parametrize("side_px", [9, 23, 57])
def test_likelihood_has_the_width_of_the_formula(side_px):
    pixel = method_figures.pixel_of("gravel", 1.2)
    noise = pixel.noise_energy(side_px)
    sigma_px = np.sqrt(noise / np.square(pixel.gradient(side_px)).sum())
    sigma_m = 1.2**2 / (OPTICS.focal_length_px * OPTICS.baseline_m) * sigma_px
    depths_m = np.linspace(1.2 - 4 * sigma_m, 1.2 + 4 * sigma_m, 81)
    energy = pixel.residual_energy(depths_m, side_px)
    best = int(energy.argmin())
    away = np.array([best - 10, best + 10])  # one sigma
    rise = side_px**2 * (energy[away] - energy.min()) / noise
    assert rise.mean() == pytest.approx(1.0, abs=0.15)
