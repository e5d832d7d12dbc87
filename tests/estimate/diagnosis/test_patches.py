"""Measurements of matched patches against plain NumPy, and what regressions make of them."""

import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import patches
from d3s.estimate.diagnosis.grain import noise_grain
from d3s.estimate.diagnosis.light import Value, compare
from d3s.estimate.diagnosis.patches import LAGS, Patches, PatchStatistic, matched_patches
from d3s.estimate.lens_field import lens_field
from lens_pairs import lens_pair, lens_rig

RIG = d3s.Rig.from_pinhole(focal_length_px=500.0, baseline_m=0.1)
SHAPE = (90, 200)
DISPARITY_PX = 20.25


def _views(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(size=SHAPE).astype(np.float32) for _ in range(2))


def _depth() -> np.ndarray:
    depth_m = float(RIG.optics.depth_m(DISPARITY_PX))
    return np.full(SHAPE, depth_m, np.float32)


def _gaussian(count: int, centre: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and the derivative of what they weigh by the place."""
    distance = np.arange(count) - centre
    weight = np.exp(-0.5 * distance**2 / variance)
    weight /= weight.sum()
    return weight, weight * distance / variance


def _expected(view: np.ndarray, row: int, col: float, half: int) -> np.ndarray:
    first = int(np.floor(col)) - half
    part = view[row - half : row + half + 1, first : first + 2 * half + 2].astype(np.float64)
    inner, outer = 9.0, 36.0
    rows = [_gaussian(2 * half + 1, half, variance) for variance in (inner, outer)]
    cols = [_gaussian(2 * half + 2, half + col % 1, variance) for variance in (inner, outer)]
    means = [r[0] @ part @ c[0] for r, c in zip(rows, cols, strict=True)]
    across = [r[0] @ part @ c[1] for r, c in zip(rows, cols, strict=True)]
    down = [r[1] @ part @ c[0] for r, c in zip(rows, cols, strict=True)]
    return np.array([means[1], means[0] - means[1], across[0] - across[1], down[0] - down[1]])


def test_kernel_is_the_formula():
    left, right = _views()
    found = matched_patches(left, right, _depth(), RIG.optics)
    places = patches._places(_depth(), RIG.optics)
    assert found.x.size == places.row.size > 20
    for i in (0, 7, found.x.size - 1):
        row, col = int(places.row[i]), int(places.col[i])
        np.testing.assert_allclose(found.left[i], _expected(left, row, col, places.half), atol=1e-9)
        match = col - float(places.disparity_px[i])
        np.testing.assert_allclose(
            found.right[i], _expected(right, row, match, places.half), atol=1e-9
        )
        for j, lag in enumerate(LAGS):
            square = slice(row - 8, row + 9)
            second = [
                np.roll(view, lag, 0) - 2 * view + np.roll(view, -lag, 0) for view in (left, right)
            ]
            start = round(match)
            a = second[0][square, col - 8 : col + 9].astype(np.float64)
            b = second[1][square, start - 8 : start + 9].astype(np.float64)
            products = [np.mean(a * a), np.mean(b * b), np.mean(a * b)]
            np.testing.assert_allclose(found.fine[i, :, j], products, rtol=1e-5, atol=1e-6)


def test_known_lenses_are_no_difference_of_contrast():
    """Field curvature blurs a point more in one view than in the other."""
    views, rig = lens_pair(0.7, shape=(160, 1802)), lens_rig()
    depth = np.full(views[0].shape, 0.7, np.float32)
    unknown = compare(matched_patches(*views, depth, rig.optics)).gain
    field = lens_field(rig, depth.shape)
    known = compare(matched_patches(*views, depth, rig.optics, field)).gain
    assert unknown.value > 0.02
    assert abs(known.value) < 0.01


def test_missing_pixels_steps_and_empty_maps_have_no_patches():
    left, right = _views()
    whole = matched_patches(left, right, _depth(), RIG.optics)
    holed = left.copy()
    holed[:, 90:110] = np.nan
    some = matched_patches(holed, right, _depth(), RIG.optics)
    assert 0 < some.x.size < whole.x.size
    assert np.isfinite(some.left).all()
    stepped = _depth()
    stepped[:, 100:] *= 1.3
    assert matched_patches(left, right, stepped, RIG.optics).x.size < whole.x.size
    nothing = np.full(SHAPE, np.nan, np.float32)
    assert matched_patches(left, right, nothing, RIG.optics).x.size == 0
    assert compare(matched_patches(left, right, nothing, RIG.optics)) is None
    assert noise_grain(matched_patches(left, right, nothing, RIG.optics)) is None


def _made(**faults: float) -> Patches:
    """Patches whose right view differs from the left one as told."""
    rng = np.random.default_rng(3)
    count = 400
    x, y = rng.uniform(-1, 1, (2, count))
    mean = rng.uniform(0.2, 0.8, count)
    detail, across, down = 0.05 * rng.standard_normal((3, count))
    change = (
        faults.get("gain", 0.0)
        + faults.get("shading_x", 0.0) * x
        + faults.get("tone", 0.0) * (mean - 0.5) / 0.24
    )
    moved = -faults.get("rows_px", 0.0) * down
    left = np.stack([mean, detail * (1 - change / 2) - moved / 2, across, down], axis=1)
    right = np.stack([mean, detail * (1 + change / 2) + moved / 2, across, down], axis=1)
    for view in (left, right):
        view[:, PatchStatistic.DETAIL] += 0.001 * rng.standard_normal(count)
    return Patches(x, y, left, right, np.ones((count, 3, len(LAGS))))


@pytest.mark.parametrize(
    "faults", [{}, {"gain": 0.05}, {"shading_x": -0.2}, {"tone": 0.1}, {"rows_px": 0.7}]
)
def test_what_differs_is_measured_and_nothing_else(faults):
    found = compare(_made(**faults))
    for name, value in found._asdict().items():
        assert value.value == pytest.approx(faults.get(name, 0.0), abs=5 * value.sigma + 0.01), name
        assert value.sigma < 0.02


def _grain(smoothing: float, texture: float = 0.0) -> Value | None:
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(5)
    shape = (300, 420)
    shared = texture * gaussian_filter(rng.standard_normal((shape[0], shape[1] + 20)), 1.0)
    views = [
        part + (gaussian_filter(noise, smoothing) if smoothing else noise)
        for part, noise in zip(
            (shared[:, :-20], shared[:, 20:]), rng.standard_normal((2, *shape)), strict=True
        )
    ]
    left, right = (view.astype(np.float32) for view in views)
    depth = np.full(shape, float(RIG.optics.depth_m(20.0)), np.float32)
    return noise_grain(matched_patches(left, right, depth, RIG.optics))


def test_grain_of_white_and_of_smoothed_noise():
    assert _grain(0.0).value == pytest.approx(1, abs=0.1)
    assert _grain(0.0, texture=3.0).value == pytest.approx(1, abs=0.15)
    # 6 - 8 rho(2) + 2 rho(4) over 6 - 8 rho(1) + 2 rho(2), rho(k) = exp(-k² / (4 sigma²)):
    rho = {k: np.exp(-(k**2) / (4 * 0.7**2)) for k in (1, 2, 4)}
    expected = (6 - 8 * rho[2] + 2 * rho[4]) / (6 - 8 * rho[1] + 2 * rho[2])
    assert _grain(0.7).value == pytest.approx(expected, rel=0.15)
    assert _grain(0.0, texture=60.0) is None
