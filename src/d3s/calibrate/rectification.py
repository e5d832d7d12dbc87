"""Rectification: scale, rotation and shift that bring the rows of both views together.

With places measured from the anchors, the right view is scaled, rotated and shifted down onto the
left one, as in the paper (Eq. S7). Two effects are added to the paper's model:

- A tilted board has more disparity on one side, and a similarity takes half of it for scale or
  roll: with a tilt of 1° and the prototype's baseline 1.3e-4 or 0.008° at 0.25 m, as much as may be
  wrong in all, and less farther away. Rows do not depend on disparity, so only rows are fitted.
- The rows of the left view are not quite parallel to the baseline, so disparity has a vertical
  part: 1.6 px at 0.25 m for 1°. It is proportional to disparity, which separates it from a shift;
  both views are rotated by this angle.

With the similarity H of the right view and the direction (cos β, sin β) of the baseline, all places
of all frames shall have n · (x_left - H x_right) = 0, n = (-sin β, cos β). The four numbers are
fitted to all frames at once; sigma is from the scatter between frames. The result has the medians
of one similarity for each frame, the paper's method, for comparison.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.anchors import Anchors
from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.matches import Matches, PairMatches, Place
from d3s.calibrate.robust import rms, robust_sigma, robust_sigmas
from d3s.errors import CalibrationError
from d3s.types import FloatArray

_ROUNDS = 20
_SETTLED = 1e-9  # largest change of scale and angles in the last step
_OUTLIER_SIGMAS = 4.0
_LARGEST_MEDIAN_PX = 0.5  # vertical disparity of a frame; with more, the frame is rejected


class Similarity(NamedTuple):
    """Scale, rotation and shift down that bring the right view onto the left one."""

    scale: float
    angle_rad: float
    shift_y_px: float


class RowResidual(NamedTuple):
    """Vertical disparity of one frame, before and after rectification."""

    frame: int
    before_rms_px: float  # aligned by the anchors only
    after_rms_px: float


class Rectification(NamedTuple):
    """Scale, rotation, shift and baseline direction, with standard deviations."""

    scale: float
    angle_rad: float
    shift_y_px: float
    baseline_angle_rad: float
    sigma: tuple[float, float, float, float]  # standard deviations of the four values above
    spread: Similarity  # standard deviation of the similarities of single frames
    median: Similarity  # of the similarities of single frames, as in the paper
    median_rms_px: float  # vertical disparity after the median similarity, RMS
    residuals: tuple[RowResidual, ...]
    windows: int
    left_out: dict[int, str]

    @property
    def rms_px(self) -> float:
        """Vertical disparity after rectification, RMS over all frames."""
        return float(np.sqrt(np.mean([one.after_rms_px**2 for one in self.residuals])))

    @property
    def matrix(self) -> FloatArray:
        """(2, 2): scale and rotation of the right view."""
        return _matrix(self.scale, self.angle_rad)

    def rectified(
        self, left_px: FloatArray, right_px: FloatArray, anchors: tuple[Place, Place]
    ) -> tuple[FloatArray, FloatArray]:
        """Rectified places: rows agree, and x differs by the disparity.

        Places (places, 2) are x, y in the raw frame; the anchors there are the origins of the
        result.
        """
        back = _matrix(1.0, -self.baseline_angle_rad)
        left = (left_px - np.array(anchors[0])) @ back.T
        moved = (right_px - np.array(anchors[1])) @ self.matrix.T + (0.0, self.shift_y_px)
        return left, np.asarray(moved @ back.T)


class _Places(NamedTuple):
    """Places of all frames, relative to the anchors."""

    left: FloatArray  # (places, 2)
    right: FloatArray  # (places, 2)
    sigma: FloatArray  # (places,)
    frame: NDArray[np.int64]  # (places,): number of the frame

    def of(self, is_in: NDArray[np.bool_]) -> "_Places":
        """Places where a mask is true."""
        return _Places(self.left[is_in], self.right[is_in], self.sigma[is_in], self.frame[is_in])


def find_rectification(
    matches: Matches, anchors: Anchors, *, by_medians: bool = False
) -> Rectification:
    """Fit the rectification to the places of all frames.

    `by_medians` takes the medians of one similarity for each frame instead, as the paper does.
    """
    pairs = matches.across
    if len(pairs) < FEWEST_FRAMES:
        raise CalibrationError(
            f"{len(pairs)} frames have views that fit each other, and at least {FEWEST_FRAMES} "
            "are needed for the rectification."
        )
    anchors_px = (np.array(anchors.left_px), np.array(anchors.right_px))
    single = np.array([_similarity(pair, *anchors_px) for pair in pairs])
    median = Similarity(*np.median(single, axis=0).tolist())
    places = _places_of(pairs, *anchors_px)
    start = np.array([*median, 0.0])
    values, keep = _fit(places, start)
    left_out = _rejected_frames(places, values)
    if left_out:
        places = places.of(~np.isin(places.frame, list(left_out)))
        if len(set(places.frame.tolist())) < FEWEST_FRAMES:
            raise CalibrationError(
                "the rows of the two views fit in no way that is the same for all frames: "
                + "; ".join(f"{matches.names[frame]}: {why}" for frame, why in left_out.items())
                + ". Were the lenses moved between frames?"
            )
        values, keep = _fit(places, start)
    kept = places.of(keep)
    values = start if by_medians else values
    scale, angle, shift, baseline = (float(value) for value in values)
    return Rectification(
        scale=scale,
        angle_rad=angle,
        shift_y_px=shift,
        baseline_angle_rad=baseline,
        sigma=_sigma(kept, values),
        spread=Similarity(*robust_sigmas(single - median).tolist()),
        median=median,
        median_rms_px=rms(_residual(kept, start)),
        residuals=_residuals(kept, values),
        windows=len(kept.sigma),
        left_out=left_out,
    )


def _matrix(scale: float, angle_rad: float) -> FloatArray:
    cos, sin = scale * np.cos(angle_rad), scale * np.sin(angle_rad)
    return np.array([[cos, -sin], [sin, cos]])


def _similarity(pair: PairMatches, left: FloatArray, right: FloatArray) -> Similarity:
    """Similarity by least squares on the ORB features of one frame, relative to the anchors."""
    x, y = (pair.features_second_px - right).T
    u, v = (pair.features_first_px - left).T
    zero, one = np.zeros_like(x), np.ones_like(x)
    terms = np.concatenate(
        [np.stack([x, -y, one, zero], axis=1), np.stack([y, x, zero, one], axis=1)]
    )
    cos, sin, _, shift = np.linalg.lstsq(terms, np.concatenate([u, v]), rcond=None)[0]
    return Similarity(float(np.hypot(cos, sin)), float(np.arctan2(sin, cos)), float(shift))


def _places_of(pairs: Sequence[PairMatches], left: FloatArray, right: FloatArray) -> _Places:
    return _Places(
        np.concatenate([pair.first_px - left for pair in pairs]),
        np.concatenate([pair.second_px - right for pair in pairs]),
        np.concatenate([pair.sigma_px for pair in pairs]),
        np.concatenate([np.full(len(pair.sigma_px), pair.first) for pair in pairs]),
    )


def _residual(places: _Places, values: FloatArray) -> FloatArray:
    """Distance perpendicular to the baseline between the left and the right place."""
    scale, angle, shift, baseline = values
    apart = places.left - places.right @ _matrix(scale, angle).T - (0.0, shift)
    return np.asarray(np.cos(baseline) * apart[:, 1] - np.sin(baseline) * apart[:, 0])


def _derivatives(places: _Places, values: FloatArray) -> FloatArray:
    """Derivatives of the residual, (places, 4): by scale, angle, shift and baseline angle."""
    scale, angle, shift, baseline = values
    moved = places.right @ _matrix(1.0, angle).T
    across = np.array([-np.sin(baseline), np.cos(baseline)])
    along = np.array([np.cos(baseline), np.sin(baseline)])
    turned = np.stack([-moved[:, 1], moved[:, 0]], axis=1)
    apart = places.left - scale * moved - (0.0, shift)
    return np.stack(
        [
            -moved @ across,
            -scale * turned @ across,
            np.full(len(moved), -np.cos(baseline)),
            -apart @ along,
        ],
        axis=1,
    )


def _fit(places: _Places, start: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Fit the four values by least squares without outliers; also the mask of the places kept."""
    values = start.copy()
    # The scatter is estimated: distortion adds to the sigma of the windows.
    keep = np.ones(len(places.sigma), dtype=np.bool_)
    for _ in range(_ROUNDS):
        residual = _residual(places, values)
        sizes = np.abs(residual) / places.sigma
        keep = sizes < _OUTLIER_SIGMAS * max(robust_sigma(sizes), 1e-9)
        weights = keep / places.sigma
        slopes = _derivatives(places, values) * weights[:, np.newaxis]
        size = np.sqrt(np.sum(slopes**2, axis=0)) + 1e-300
        step = -np.linalg.lstsq(slopes / size, residual * weights, rcond=None)[0] / size
        values = values + step
        if float(np.abs(step[[0, 1, 3]]).max()) < _SETTLED:
            break
    return values, keep


def _sigma(places: _Places, values: FloatArray) -> tuple[float, float, float, float]:
    """Standard deviations from the scatter between frames: errors within a frame correlate."""
    weights = 1 / places.sigma
    slopes = _derivatives(places, values) * weights[:, np.newaxis]
    residual = _residual(places, values) * weights
    inverse = np.linalg.pinv(slopes.T @ slopes, hermitian=True)
    gradients = [
        slopes[places.frame == frame].T @ residual[places.frame == frame]
        for frame in np.unique(places.frame)
    ]
    count = len(gradients)
    scatter = np.einsum("ij,ik->jk", gradients, gradients) * count / max(count - 1, 1)
    a, b, c, d = np.sqrt(np.diag(inverse @ scatter @ inverse))
    return float(a), float(b), float(c), float(d)


def _rejected_frames(places: _Places, values: FloatArray) -> dict[int, str]:
    """Frames whose vertical disparity is too large, with the reason."""
    residual = _residual(places, values)
    out = {}
    for frame in np.unique(places.frame):
        away = float(np.median(residual[places.frame == frame]))
        if abs(away) > _LARGEST_MEDIAN_PX:
            out[int(frame)] = (
                f"rows of its two views are {away:+.2f} px apart when those of the other frames "
                "agree"
            )
    return out


def _residuals(places: _Places, values: FloatArray) -> tuple[RowResidual, ...]:
    before, after = places.left[:, 1] - places.right[:, 1], _residual(places, values)
    found = []
    for frame in np.unique(places.frame):
        is_in = places.frame == frame
        found.append(RowResidual(int(frame), rms(before[is_in]), rms(after[is_in])))
    return tuple(found)
