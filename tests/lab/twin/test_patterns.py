"""Patterns belong to places on a surface: they do not depend on the raster that is asked for."""

import numpy as np
import pytest
from scipy import ndimage

from d3s.lab.twin import patterns
from d3s.lab.twin.patterns import PATTERNS
from d3s.lab.twin.patterns.noise import Grid

NAMES = sorted(PATTERNS)
# Footprints of a pixel of the paper's camera from 0.2 m to 3 m.
PITCHES_M = (0.033e-3, 0.165e-3, 0.5e-3)
# Only bricks and fabric have some order.
ORDERED = {"brick": 0.4, "fabric": 0.4, "calibration": 0.4}


def render(name, grid, seed=1):
    return patterns.render(name, grid, seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pitch_m", PITCHES_M)
def test_pieces_are_parts_of_the_whole(name, pitch_m):
    whole = render(name, Grid(-70, -45, 250, 231, pitch_m))
    pieces = ((0, 0, 101, 231), (101, 0, 149, 90), (101, 90, 149, 141), (70, 45, 1, 1))
    for row, col, rows, cols in pieces:
        piece = render(name, Grid(-70 + row, -45 + col, rows, cols, pitch_m))
        np.testing.assert_array_equal(piece, whole[row : row + rows, col : col + cols])


@pytest.mark.parametrize("name", NAMES)
def test_one_seed_is_one_texture(name, monkeypatch):
    grid = Grid(1000, -3000, 120, 200, 0.1e-3)
    first = render(name, grid, 5)
    assert first.dtype == np.float32
    assert first.shape == (120, 200)
    monkeypatch.setenv("D3S_THREADS", "3")
    np.testing.assert_array_equal(render(name, grid, 5), first)


@pytest.mark.parametrize("name", NAMES)
def test_seeds_have_nothing_to_do_with_each_other(name):
    # Courses and threads have the same order in all walls and fabrics; detail differs.
    grid = Grid(0, 0, 300, 300, 0.165e-3)
    details = [_detail(render(name, grid, seed)) for seed in (5, 6, 2**63 - 1)]
    correlation = np.corrcoef([detail.ravel() for detail in details])
    assert np.abs(correlation - np.eye(3)).max() < 0.1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pitch_m", [0.0825e-3, 0.25e-3])
def test_coarse_raster_is_the_fine_one_seen_from_afar(name, pitch_m):
    fine = render(name, Grid(-300, -300, 601, 601, pitch_m), 3)
    coarse = render(name, Grid(-150, -150, 301, 301, 2.0 * pitch_m), 3)
    # Texel (i, j) of the coarse raster has the same centre as texel (2i, 2j) of the fine raster.
    seen = ndimage.gaussian_filter(fine.astype(np.float64), 2.4)[::2, ::2][8:-8, 8:-8]
    shown = ndimage.gaussian_filter(coarse.astype(np.float64), 1.1)[8:-8, 8:-8]
    assert np.corrcoef(seen.ravel(), shown.ravel())[0, 1] > 0.95
    assert abs(seen.mean() - shown.mean()) < 0.01
    assert 0.85 < shown.std() / seen.std() < 1.2
    across, down = np.abs(_shift(seen, shown))
    assert across < 0.05
    # Along the fibres there is little detail: the shift is measured to 0.05 only.
    assert down < (0.15 if name == "wood" else 0.05)


@pytest.mark.parametrize("name", NAMES)
def test_brightness_stays_at_any_distance(name):
    # From texels much finer than any detail to texels much larger. The mean of a small area varies
    # from place to place, so the tolerance is tight for coarse texels only.
    means = [render(name, Grid(-50, -50, 100, 100, pitch)).mean() for pitch in (4e-3, 0.03, 0.3, 3)]
    assert np.ptp(means) < 0.03
    fine = render(name, Grid(0, 0, 64, 64, 1e-6))
    assert 0.0 <= fine.min() <= fine.max() <= 1.0


@pytest.mark.parametrize("name", NAMES)
def test_nothing_comes_twice(name):
    values = _detail(render(name, Grid(0, 0, 600, 600, 0.165e-3)))
    assert _second_peak(values) < ORDERED.get(name, 0.2)


def _detail(values):
    """Texels minus their local mean, which removes the correlation of large features."""
    values = values.astype(np.float64)
    return values - ndimage.gaussian_filter(values, 12.0)


def _second_peak(values):
    """Highest local maximum of the autocorrelation outside the main peak."""
    rows, cols = values.shape
    power = np.abs(np.fft.rfft2(values - values.mean(), (2 * rows, 2 * cols))) ** 2
    pairs = np.fft.irfft2(np.abs(np.fft.rfft2(np.ones_like(values), (2 * rows, 2 * cols))) ** 2)
    correlation = np.fft.fftshift(np.fft.irfft2(power) / np.maximum(pairs, 1.0))
    half = rows // 2
    middle = correlation[rows - half : rows + half + 1, cols - half : cols + half + 1]
    middle = middle / middle[half, half]
    peaks = (ndimage.maximum_filter(middle, 5) == middle) & (middle > 0)
    peaks[half - 2 : half + 3, half - 2 : half + 3] = False
    return middle[peaks].max(initial=0.0)


def _shift(seen, shown):
    """Shift between two rasters in texels, from the phase of their cross-spectrum."""
    rows, cols = seen.shape
    window = np.hanning(rows)[:, None] * np.hanning(cols)
    spectra = [np.fft.fft2((image - image.mean()) * window) for image in (seen, shown)]
    cross = spectra[0] * np.conj(spectra[1])
    fx, fy = np.meshgrid(np.fft.fftfreq(cols), np.fft.fftfreq(rows))
    weight = np.sqrt(np.abs(cross) * (np.hypot(fx, fy) < 0.25))
    waves = np.stack([(weight * f).ravel() for f in (fx, fy)], axis=1)
    slopes = np.linalg.lstsq(waves, (weight * np.angle(cross)).ravel(), rcond=None)[0]
    return slopes / (2.0 * np.pi)
