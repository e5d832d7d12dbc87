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


class Block(NamedTuple):
    """Square blocks of both halves that show the same texture."""

    left: Image
    right: Image
    place: int  # number of the match


def cut_blocks(
    image: Image, matched: Matched, fields: Fields, side_px: int, *, share: float = 1.0
) -> list[Block]:
    """Cut blocks at matched places, evenly over the field, each within both fields."""
    half = side_px // 2
    box = fields.left
    across, down = (
        (place - first) / size
        for place, first, size in zip(
            matched.left_px.T, (box.col, box.row), (box.cols, box.rows), strict=True
        )
    )
    across, down = (0.5 + (place - 0.5) / share for place in (across, down))
    cells = np.floor(_ACROSS * across) * _ACROSS + np.floor(_ACROSS * down)
    blocks = []
    inside = (np.abs(across - 0.5) < 0.5) & (np.abs(down - 0.5) < 0.5)
    for outline, places in (
        (fields.left_outline_px, matched.left_px),
        (fields.right_outline_px, matched.right_px),
    ):
        inside &= _is_inside(outline, places, half)
    for cell in np.unique(cells[inside]):
        numbers = np.flatnonzero(inside & (cells == cell))
        best = int(numbers[np.argmin(matched.sigma_px[numbers])])
        parts = []
        for place in (matched.left_px[best], matched.right_px[best]):
            col, row = (int(np.rint(value)) - half for value in place)
            parts.append(image[row : row + side_px, col : col + side_px])
        if all(part.shape == (side_px, side_px) for part in parts):
            blocks.append(Block(parts[0], parts[1], best))
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


def measure_sharpness(blocks: list[Block], matched: Matched, noises: list[float]) -> Sharpness:
    """Band ratio of each block of both halves, with noise taken out."""
    places = matched.left_px[[block.place for block in blocks]].reshape(-1, 2)
    left = [_band_ratio(block.left, noises[0]) for block in blocks]
    right = [_band_ratio(block.right, noises[1]) for block in blocks]
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


def half_noises(image: Image, fields: Fields) -> list[float]:
    """Noise variance of both halves, from the middle of their fields."""
    noises = []
    for box in (fields.left, fields.right):
        middle = np.s_[
            box.row + box.rows // 4 : box.row + 3 * box.rows // 4 : 2,
            box.col + box.cols // 4 : box.col + 3 * box.cols // 4 : 2,
        ]
        noises.append(noise_variance(image[middle]))
    return noises


# Focus difference ---------------------------------------------------------------------------------


class Focus(NamedTuple):
    """Focus difference, and how it was found."""

    power_dpt: float  # D: power of the left lens less that of the right one
    sigma_dpt: float
    distance_m: float | None  # that of the scene, typed or found


def measure_focus(
    image: Image,
    matched: Matched,
    fields: Fields,
    vergences_dpt: tuple[FloatArray, bool],
    optics: Optics,
    noises: list[float],
) -> Focus | None:
    """Find the difference of the powers of both lenses; None if too few blocks have texture."""
    vergences, is_known = vergences_dpt
    if not is_known:
        # As near as makes the blur of the design clear; its amount then is a guess, too.
        vergences = vergences + 2 * optics.kappa_dpt
    scene = _Scene(image, matched, fields, vergences, optics, noises)
    blocks = _compare_blocks(scene)
    curved = None if blocks is None else _solve(scene, blocks, is_known=is_known, has_bend=True)
    if blocks is None or curved is None:
        return None
    power, sigma = (float(part[0]) for part in curved)
    if abs(curved.values[_BEND_TERM]) < _CURVED_SIGMAS * curved.sigmas[_BEND_TERM]:
        flat = _solve(scene, blocks, is_known=is_known, has_bend=False)
        if flat is not None:
            # The field may be curved a little: the change that it makes is part of the error.
            change = float(flat.values[0]) - power
            power, sigma = float(flat.values[0]), float(np.hypot(flat.sigmas[0], change))
    else:
        sigma = float(np.hypot(sigma, _CURVED_DPT))
    if not is_known:
        return Focus(power, float(np.hypot(sigma, _GUESS_SHARE * power)), None)
    return Focus(power, sigma, 1 / float(np.median(vergences)))


class _Scene(NamedTuple):
    """Inputs of the focus difference."""

    image: Image
    matched: Matched
    fields: Fields
    vergences_dpt: FloatArray  # of each match
    optics: Optics
    noises: list[float]


class _BlurBlocks(NamedTuple):
    """Blur variance of the left less that of the right block."""

    values_px2: FloatArray  # (blocks,)
    weights: FloatArray
    places: list[int]  # numbers of the matches


def _compare_blocks(scene: _Scene) -> _BlurBlocks | None:
    """Compare blocks of the middle of the field; None if too few have texture.

    Most lenses have a curved field: towards its edge, the blur is another one.
    """
    design = Blur.of(scene.optics)
    nearest = 1 / max(float(np.max(scene.vergences_dpt)), 1e-3)
    plan = BlurComparison((0, 0), (0, 1), (nearest, nearest))
    box = scene.fields.left
    size = block_size(plan, design, _ROOM_SHARE * min(box.rows, box.cols))
    if size is None:
        return None
    values, weights, places = [], [], []
    cut = cut_blocks(scene.image, scene.matched, scene.fields, size.side_px, share=_MIDDLE_SHARE)
    for block in cut:
        depth = 1 / max(float(scene.vergences_dpt[block.place]), 1e-3)
        one = plan._replace(depths_m=(depth, depth))
        compared, usable = compare_blocks([(block.left, block.right)], scene.noises, size, one)
        if usable.all():
            value, weight = compared.blocks_px2(design)
            values.append(float(value[0]))
            weights.append(float(weight[0]))
            places.append(block.place)
    if len(values) < _FEWEST_BLOCKS:
        return None
    return _BlurBlocks(np.array(values), np.array(weights), places)


def _solve(scene: _Scene, blocks: _BlurBlocks, *, is_known: bool, has_bend: bool) -> Fit | None:
    """Power difference first, then an offset, and with `has_bend` curvature and tilt of the field.

    Field curvature and tilt change the blur towards the edge of the field.
    """
    optics, places = scene.optics, scene.matched.left_px[blocks.places]
    factor = -2 * Blur.of(optics).gain ** 2
    designed = optics.optical_power_left_dpt - optics.optical_power_right_dpt
    px2_per_dpt = abs(factor * designed)
    ends = scene.fields.left_outline_px.min(axis=0), scene.fields.left_outline_px.max(axis=0)
    u, v = ((places - (ends[0] + ends[1]) / 2) / (0.5 * scene.fields.left.rows)).T
    reach = max(float(np.abs([u, v]).max()), 1e-6)
    groups = sum(
        scale * np.clip(np.floor(1.5 * (place / reach + 1)), 0, 2)
        for scale, place in ((1.0, u), (3.0, v))
    )
    vergences = scene.vergences_dpt[blocks.places]
    terms = [factor * (vergences - optics.kappa_dpt), np.ones_like(u)]
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
