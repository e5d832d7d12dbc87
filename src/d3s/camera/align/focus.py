"""Sharpness of both halves over the field, and the focus difference.

Sharpness is the energy of fine detail over that of coarser detail, DoG(1, 2) over DoG(2, 4), with
the energy of noise taken out of both. DoG(a, b) is the difference of Gaussians of a and b pixels.
It depends on the texture, so that its best value is that of the same scene in focus.

The focus difference is from blocks that show the same texture in both halves (`calibrate.defocus`).
The blur variance of the left half less that of the right one is::

    v_left - v_right = -2 g² D (1/Z - kappa)

with g = w s0 A / p, the power difference D, and kappa, the vergence at which both blur alike. So a
frame tells D if it shows several depths, or one depth that is known and away from 1 / kappa.
"""

from typing import NamedTuple

import numpy as np

from d3s.calibrate.defocus import Blur, BlurComparison, block_size, compare_blocks
from d3s.calibrate.fields import Fields
from d3s.camera.align.geometry import Matched
from d3s.camera.align.quantities import Reading, unknown
from d3s.check.drift import BlockSamples, Fit, fit_groups
from d3s.estimate.consensus.smoothing import noise_variance
from d3s.rig import Optics
from d3s.types import FloatArray, Image, Mask

FOCUS_SHARE, FOCUS_LEAST_M = 0.25, 2e-6
"""Limit of the focus difference: a share of the design's, and at least so much."""
_ACROSS = 5  # blocks across a field, and down
_SMALLEST_BLOCK_PX, _LARGEST_BLOCK_PX = 32, 96  # for the sharpness
_ROOM_SHARE = 0.25  # of the side of a field: largest block
_FEWEST_BLOCKS = 6
_MIDDLE_SHARE = 0.5  # of the width and height of the field, for the focus difference
_BEND_TERM = 2  # of the fit: curvature of the field
_CURVED_SIGMAS = 3.0  # from which on a field counts as curved
_CURVED_DPT = 0.04  # error of D of lenses with a curved field, from simulated stock lenses
_SIGMAS_PX = (1.0, 2.0, 4.0)  # of the Gaussians
_LEAST_TEXTURE = 1.0  # energy of DoG(1, 2) over that of its noise
_BLOCK_PX2 = 0.05  # error of the blur difference of one block
_FOCUS_DPT = 0.1  # standard deviation of the mean focus around the design
_CURVATURE_DPT, _TILT_DPT = 3.0, 0.3  # change of the focus at the edge of the field, of lenses
_POWER_PRIOR_DPT = 1.0
_TOO_BLURRED = "too blurred or too plain: show finer texture, nearer to where it is sharp"
_GUESS_SHARE = 0.2  # relative error of D where the distance is not known


class Sharpness(NamedTuple):
    """Sharpness of blocks over the field."""

    places_px: FloatArray  # (blocks, 2): x, y in the left half
    left: FloatArray  # (blocks,): band ratio; NaN where noise hides it
    right: FloatArray

    def of(self, camera: int) -> tuple[float, float]:
        """Return the median sharpness of one half, and its standard deviation."""
        values = (self.left, self.right)[camera]
        known = values[np.isfinite(values) & (values > 0)]
        if known.size < _FEWEST_BLOCKS:
            return float("nan"), float("nan")
        scatter = 1.4826 * float(np.median(np.abs(np.log(known / np.median(known)))))
        middle = float(np.median(known))
        return middle, middle * 1.25 * max(scatter, 0.01) / np.sqrt(known.size)


class BothHalves(NamedTuple):
    """Frame with the places that both halves show, and the noise variance of each half."""

    image: Image
    fields: Fields
    matched: Matched
    noises: list[float]


def both_halves(image: Image, fields: Fields, matched: Matched) -> BothHalves:
    """Frame with its matches, and the noise from the middle of both fields."""
    noises = []
    for box in (fields.left, fields.right):
        middle = np.s_[
            box.row + box.rows // 4 : box.row + 3 * box.rows // 4 : 2,
            box.col + box.cols // 4 : box.col + 3 * box.cols // 4 : 2,
        ]
        noises.append(noise_variance(image[middle]))
    return BothHalves(image, fields, matched, noises)


def _cut_blocks(
    seen: BothHalves, side_px: int, *, share: float = 1.0
) -> list[tuple[Image, Image, int]]:
    """Square blocks of both halves with the numbers of their matches, evenly over the field."""
    half = side_px // 2
    matched, box = seen.matched, seen.fields.left
    across, down = (
        (place - first) / size
        for place, first, size in zip(
            matched.left_px.T, (box.col, box.row), (box.cols, box.rows), strict=True
        )
    )
    across, down = (0.5 + (place - 0.5) / share for place in (across, down))
    cells = np.floor(_ACROSS * across) * _ACROSS + np.floor(_ACROSS * down)
    inside = (np.abs(across - 0.5) < 0.5) & (np.abs(down - 0.5) < 0.5)
    inside &= _is_inside(seen.fields.left_outline_px, matched.left_px, half)
    inside &= _is_inside(seen.fields.right_outline_px, matched.right_px, half)
    blocks = []
    for cell in np.unique(cells[inside]):
        numbers = np.flatnonzero(inside & (cells == cell))
        best = int(numbers[np.argmin(matched.sigma_px[numbers])])
        left, right = (
            seen.image[row : row + side_px, col : col + side_px]
            for col, row in (
                np.rint(places[best]).astype(int) - half
                for places in (matched.left_px, matched.right_px)
            )
        )
        if left.shape == right.shape == (side_px, side_px):
            blocks.append((left, right, best))
    return blocks


def _is_inside(outline_px: FloatArray, places_px: FloatArray, half_px: int) -> Mask:
    """Whether the square around each place is within a convex outline."""
    import cv2

    outline = outline_px.astype(np.float32)
    corners = [(x, y) for x in (-half_px, half_px) for y in (-half_px, half_px)]
    return np.array(
        [
            all(
                cv2.pointPolygonTest(outline, (float(x + dx), float(y + dy)), False) >= 0
                for dx, dy in corners
            )
            for x, y in places_px
        ],
        dtype=np.bool_,
    )


def measure_sharpness(seen: BothHalves) -> Sharpness:
    """Band ratio of blocks of both halves, with noise taken out."""
    side = max(min(_LARGEST_BLOCK_PX, seen.fields.left.rows // 5), _SMALLEST_BLOCK_PX)
    blocks = _cut_blocks(seen, side)
    left = [_band_ratio(block, seen.noises[0]) for block, _, _ in blocks]
    right = [_band_ratio(block, seen.noises[1]) for _, block, _ in blocks]
    places = seen.matched.left_px[[number for _, _, number in blocks]].reshape(-1, 2)
    return Sharpness(places, np.array(left), np.array(right))


def _band_ratio(block: Image, noise: float) -> float:
    energies = _energies(block)
    of_noise = noise * _noise_energies()
    fine, coarse = energies - of_noise
    if fine < _LEAST_TEXTURE * of_noise[0] or coarse <= 0:
        return float("nan")
    return float(fine / coarse)


def _energies(block: Image) -> FloatArray:
    """Mean square of DoG(1, 2) and DoG(2, 4), away from the border."""
    import cv2

    smooth = [cv2.GaussianBlur(block, (0, 0), sigma) for sigma in _SIGMAS_PX]
    rim = int(2 * _SIGMAS_PX[-1])
    inner = [one[rim:-rim, rim:-rim] for one in smooth]
    return np.array(
        [
            float(np.mean(np.square(inner[0] - inner[1]))),
            float(np.mean(np.square(inner[1] - inner[2]))),
        ]
    )


def _noise_energies() -> FloatArray:
    """Mean square of both bands for white noise of variance 1."""

    def overlap(first: float, second: float) -> float:
        # Sum of the product of two Gaussians with unit sum.
        return 1 / (2 * np.pi * (first**2 + second**2))

    pairs = ((_SIGMAS_PX[0], _SIGMAS_PX[1]), (_SIGMAS_PX[1], _SIGMAS_PX[2]))
    return np.array([overlap(a, a) - 2 * overlap(a, b) + overlap(b, b) for a, b in pairs])


# Focus difference ---------------------------------------------------------------------------------


class Focus(NamedTuple):
    """Focus difference, and how it was found."""

    power_dpt: float  # D: power of the left lens less that of the right one
    sigma_dpt: float
    distance_m: float | None  # that of the scene, typed or found


def measure_focus(
    seen: BothHalves, vergences_dpt: FloatArray, optics: Optics, *, is_known: bool
) -> Focus | None:
    """Find the difference of the powers of both lenses; None if too few blocks have texture.

    Vergences are those of the matches; if they are not known, up to a constant.
    """
    if optics.aperture_radius_m == 0:
        return None
    # As near as makes the blur of the design clear; its amount then is a guess, too.
    vergences = vergences_dpt if is_known else vergences_dpt + 2 * optics.kappa_dpt
    blocks = _compare_blocks(seen, vergences, optics)
    curved = None if blocks is None else _solve(blocks, optics, is_known=is_known, has_bend=True)
    if blocks is None or curved is None:
        return None
    power, sigma = (float(part[0]) for part in curved)
    if abs(curved.values[_BEND_TERM]) < _CURVED_SIGMAS * curved.sigmas[_BEND_TERM]:
        flat = _solve(blocks, optics, is_known=is_known, has_bend=False)
        if flat is not None:
            # The field may be curved a little: the change that it makes is part of the error.
            change = float(flat.values[0]) - power
            power, sigma = float(flat.values[0]), float(np.hypot(flat.sigmas[0], change))
    else:
        sigma = float(np.hypot(sigma, _CURVED_DPT))
    if not is_known:
        return Focus(power, float(np.hypot(sigma, _GUESS_SHARE * power)), None)
    return Focus(power, sigma, 1 / float(np.median(vergences)))


class _BlurBlocks(NamedTuple):
    """Blur variance of the left less that of the right block."""

    values_px2: FloatArray  # (blocks,)
    weights: FloatArray
    vergences_dpt: FloatArray
    u: FloatArray  # place from the middle of the field, in half its rows
    v: FloatArray


def _compare_blocks(
    seen: BothHalves, vergences_dpt: FloatArray, optics: Optics
) -> _BlurBlocks | None:
    """Compare blocks of the middle of the field; None if too few have texture.

    Most lenses have a curved field: towards its edge, the blur is another one.
    """
    design = Blur.of(optics)
    nearest = 1 / max(float(np.max(vergences_dpt)), 1e-3)
    plan = BlurComparison((0, 0), (0, 1), (nearest, nearest))
    box, outline = seen.fields.left, seen.fields.left_outline_px
    size = block_size(plan, design, _ROOM_SHARE * min(box.rows, box.cols))
    if size is None:
        return None
    rows, numbers = [], []
    for left, right, number in _cut_blocks(seen, size.side_px, share=_MIDDLE_SHARE):
        depth = 1 / max(float(vergences_dpt[number]), 1e-3)
        one = plan._replace(depths_m=(depth, depth))
        compared, usable = compare_blocks([(left, right)], seen.noises, size, one)
        if usable.all():
            value, weight = compared.blocks_px2(design)
            rows.append((float(value[0]), float(weight[0])))
            numbers.append(number)
    if len(rows) < _FEWEST_BLOCKS:
        return None
    values, weights = np.array(rows).T
    ends = outline.min(axis=0), outline.max(axis=0)
    places = seen.matched.left_px[numbers]
    u, v = ((places - (ends[0] + ends[1]) / 2) / (0.5 * box.rows)).T
    return _BlurBlocks(values, weights, vergences_dpt[numbers], u, v)


def _solve(blocks: _BlurBlocks, optics: Optics, *, is_known: bool, has_bend: bool) -> Fit | None:
    """Power difference first, then an offset, and with `has_bend` curvature and tilt of the field.

    Field curvature and tilt change the blur towards the edge of the field.
    """
    u, v = blocks.u, blocks.v
    factor = -2 * Blur.of(optics).gain ** 2
    designed = optics.optical_power_left_dpt - optics.optical_power_right_dpt
    px2_per_dpt = abs(factor * designed)
    reach = max(float(np.abs([u, v]).max()), 1e-6)
    groups = sum(
        scale * np.clip(np.floor(1.5 * (place / reach + 1)), 0, 2)
        for scale, place in ((1.0, u), (3.0, v))
    )
    terms = [factor * (blocks.vergences_dpt - optics.kappa_dpt), np.ones_like(u)]
    offset_px2 = float(np.hypot(px2_per_dpt * _FOCUS_DPT, _BLOCK_PX2)) if is_known else np.inf
    prior = [_POWER_PRIOR_DPT, offset_px2]
    if has_bend:
        terms += [u * u + v * v, u, v]
        bends = (_CURVATURE_DPT, _TILT_DPT, _TILT_DPT)
        prior += [float(np.hypot(px2_per_dpt * bend, _BLOCK_PX2)) for bend in bends]
    sigmas = _BLOCK_PX2 * np.sqrt(np.median(blocks.weights) / blocks.weights)
    samples = BlockSamples(np.stack(terms, axis=1), blocks.values_px2, sigmas, np.asarray(groups))
    return fit_groups(samples, np.array(prior))


def focus_reading(found: Focus | None, optics: Optics, problem: str) -> Reading:
    """Reading of the focus difference, as a distance between the seats of the lenses."""
    per_dpt = optics.sensor_distance_m**2
    target = per_dpt * (optics.optical_power_left_dpt - optics.optical_power_right_dpt)
    limit = max(FOCUS_SHARE * abs(target), FOCUS_LEAST_M)
    if optics.aperture_radius_m == 0:
        return unknown("focus_m", target, limit, "the design has no aperture: nothing blurs")
    if found is None:
        return unknown("focus_m", target, limit, problem or _TOO_BLURRED)
    if found.distance_m is None and per_dpt * found.sigma_dpt > limit:
        half_m = 0.5 / optics.kappa_dpt
        reason = f"type the distance of a wall, best {half_m:.2f} m, or show things near and far"
        return unknown("focus_m", target, limit, reason)
    where = "" if found.distance_m is None else f" at {found.distance_m:.2f} m"
    return Reading(
        "focus_m",
        per_dpt * found.power_dpt,
        per_dpt * found.sigma_dpt,
        target,
        limit,
        note=f"{found.power_dpt:+.3f} ± {found.sigma_dpt:.3f} dpt{where}",
    )
