"""`reference_consensus`: the consensus in NumPy and double precision, slow and easy to check.

It follows the paper line by line, with the functions of `d3s.optics` that hold its equations.
"""

from functools import partial

import numpy as np

from d3s.estimate.checked_pair import CheckedPair
from d3s.estimate.consensus.consensus_plan import ConsensusPlan, filtered, make_plan, tried_mask
from d3s.estimate.consensus.lens_corrections import corrections
from d3s.estimate.consensus.noise_and_gain import equal_contrast, removed_noise, without_noise
from d3s.estimate.consensus.result import ChosenCandidates, as_depth_map
from d3s.estimate.consensus.smoothing import noise_variance
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.options import ConsensusOptions
from d3s.optics.consensus import confidence, depth_only_confidence
from d3s.optics.d3 import (
    PairDerivatives,
    d3_windowed_depth_m,
    finite_differences,
    gradient_ratio_per_px,
    practical_depth_m,
)
from d3s.optics.windows import shifted_right, window_sum
from d3s.rig import Rig
from d3s.types import FloatArray, Image


def reference_consensus(left: Image, right: Image, rig: Rig, options: ConsensusOptions) -> DepthMap:
    """Estimate depth by the consensus of the paper (section 4), to the letter.

    Only what lenses change and noise adds is corrected, for rigs that know it.

    Parameters
    ----------
    left, right, rig, options
        As for `d3s.estimate.consensus.consensus_method.estimate_consensus`, the compiled method,
        which also has the exceptions and defines `sigma_m`.
    """
    pair = CheckedPair(left, right)
    plan = make_plan(rig, options, left.shape)
    views = [filtered(view, plan) for view in pair]
    noises = noise_variance(pair.left), noise_variance(pair.right)
    removed = removed_noise(rig, (left, right), options)
    search = partial(_search, noise=sum(noises), removed=removed)
    views[1] = equal_contrast(views[0], views[1], noises, plan, search)
    found = search(views[0], views[1], plan)
    return as_depth_map(found, pair, views[0], plan)


def _search(
    left: FloatArray, right: FloatArray, plan: ConsensusPlan, noise: float, removed: float
) -> ChosenCandidates:
    """Search smoothed views; `noise` and `removed` are as in `consensus.consensus_method`."""
    index = np.full(left.shape, -1, dtype=np.int32)
    highest = np.zeros(left.shape)
    variance = np.full(left.shape, np.inf)
    meeting = np.zeros(left.shape)
    with_vergence = plan.options.agreement_in == "depth and vergence"
    agreement = confidence if with_vergence else depth_only_confidence
    tried, window_px = tried_mask(plan, left.shape[1]), plan.settings.window_px
    in_rows = np.zeros((left.shape[0], 1), dtype=np.bool_)
    in_rows[plan.reach_px : left.shape[0] - plan.reach_px] = True
    for i, candidate_m in enumerate(plan.candidates_m):
        predictions, energies = [], []
        for m, shift_px in enumerate(plan.shifts_px[i]):
            pair = _corrected(left, shifted_right(right, shift_px), float(candidate_m), plan)
            energy = _energy(pair, plan)
            left_over = without_noise(energy, removed * window_px**2)
            predicted = _predicted_m(pair, m, plan)
            if removed > 0:
                offset = plan.lines[1][m] if plan.lines else 0.0
                predicted = offset + (predicted - offset) * energy / left_over
            predictions.append(predicted)
            energies.append(left_over)
        value = agreement(candidate_m, predictions)
        # Only where the match is in the frame. Of equals the first stays, as in `best_candidate`.
        better = (value > highest) & in_rows & tried[i]
        index[better] = i
        highest[better] = value[better]
        variance[better] = _variance_m2(i, plan, predictions, energies, noise)[better]
        away = np.array(predictions) - candidate_m
        meeting[better] = np.tensordot(plan.shares / plan.shares.size, away, 1)[better]
    return ChosenCandidates(index, highest, variance, meeting)


def _corrected(
    left: FloatArray, right: FloatArray, candidate_m: float, plan: ConsensusPlan
) -> PairDerivatives:
    """Derivatives of aligned views, with the difference that the lenses have on their axis."""
    pair, field = finite_differences(left, right), plan.field
    if field is None:
        return pair
    places, prefilter_px = field.places(left.shape, 1), plan.settings.prefilter_sigma_px
    across, mixed, down, shift = corrections(field, *places, candidate_m, prefilter_px)
    wide = np.pad(0.5 * (left + right), 1, mode="edge")
    here, above, below = wide[1:-1, 1:-1], wide[:-2], wide[2:]
    xx, yy = wide[1:-1, :-2] + wide[1:-1, 2:] - 2 * here, (above + below)[:, 1:-1] - 2 * here
    xy = 0.25 * ((below[:, 2:] - above[:, 2:]) - (below[:, :-2] - above[:, :-2]))
    added = across * xx + 2 * mixed * xy + down * yy + shift * pair.mean_grad_x
    return pair._replace(difference=pair.difference + added)


def _predicted_m(pair: PairDerivatives, m: int, plan: ConsensusPlan) -> FloatArray:
    """Depth predicted by the D3 equation for virtual baseline `m`, in metres: Eq. 10 or Eq. 17."""
    optics, window_px = plan.rig.optics, plan.settings.window_px
    if plan.lines is None:
        return d3_windowed_depth_m(
            pair,
            float(plan.baselines_m[m]),
            focal_length_px=optics.focal_length_px,
            alpha_px2_m=optics.alpha_px2_m,
            kappa_dpt=optics.kappa_dpt,
            window_px=window_px,
        )
    a_m_px, b_m = (float(values[m]) for values in plan.lines)
    return practical_depth_m(gradient_ratio_per_px(pair, window_px), a_m_px=a_m_px, b_m=b_m)


def _energy(pair: PairDerivatives, plan: ConsensusPlan) -> FloatArray:
    """Sum over the window of the squared denominator of the depth equation."""
    denominator, optics = pair.difference, plan.rig.optics
    if plan.lines is None:
        denominator = denominator - optics.alpha_px2_m * optics.kappa_dpt * pair.mean_laplacian
    return window_sum(denominator**2, plan.settings.window_px)


def _variance_m2(
    i: int,
    plan: ConsensusPlan,
    predictions: list[FloatArray],
    energies: list[FloatArray],
    noise: float,
) -> FloatArray:
    """Variance of depth if candidate `i` is chosen: step, disagreement and noise."""
    shares = plan.shares[:, np.newaxis, np.newaxis]
    candidate_m = plan.candidates_m[i]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        disagreement = ((np.array(predictions) - candidate_m) * shares) ** 2
        propagated = (candidate_m * shares) ** 2 * noise / np.array(energies)
    return np.asarray(plan.steps_m[i] ** 2 / 12 + (disagreement + propagated).mean(axis=0))
