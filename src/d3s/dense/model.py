"""Numbers of the fill: models that `benchmarks/tune_dense.py` has fitted, and sigma from them."""

import numpy as np

from d3s.dense.candidates import PathModel
from d3s.dense.evidence import EvidenceModel
from d3s.dense.judge import FillModel
from d3s.types import Image

# Log-odds that a measured depth beside a hole is right, and a weak one, for each feature.
_EVIDENCE = (
    (3.510, 3.436),  # constant
    (0.655, 1.321),  # confidence
    (2.555, 0.044),  # carried
    (-0.352, -0.553),  # nearby
    (-1.045, -0.789),  # sigma
    (0.328, -0.063),  # around
    (-0.435, 0.739),  # frame
    (-1.998, -0.333),  # fine texture
    (-0.107, -0.254),  # texture
    (1.786, 0.388),  # broad texture
    (-3.262, -2.157),  # aside
    (-2.606, -1.420),  # far aside
)
EVIDENCE = EvidenceModel(*np.array(_EVIDENCE, np.float32).T.copy())
PATHS = PathModel(constant=np.float32(4.341), length=np.float32(-0.828), edge=np.float32(-1.152))

# Log-odds of a gross error, and ln of the error in px otherwise, for each feature.
_COEFFICIENTS = (
    (-1.205, 0.182),  # constant
    (-1.244, -0.646),  # support
    (1.408, 0.504),  # against
    (-0.519, -0.108),  # length
    (0.524, 0.112),  # edge
    (-0.364, 0.125),  # strongest
    (-0.204, 0.087),  # spread
    (-0.086, 0.231),  # precision
    (0.539, 0.120),  # own
    (-0.217, -0.034),  # own gap
    (-0.252, -0.063),  # own odds
    (0.039, -0.003),  # low texture
    (0.016, -0.033),  # inconsistent
    (-0.141, -0.035),  # occluded
    (0.335, -0.088),  # measured nearby
    (0.105, -0.031),  # measured around
    (-0.627, -0.084),  # measured in the frame
    (-0.523, 0.030),  # confidence
    (-0.399, -0.187),  # texture
    (0.176, 0.025),  # texture and edge
    (-0.061, -0.037),  # hidden
    (-0.066, -0.075),  # other surface
    (0.612, 0.085),  # own and texture
    (-0.332, -0.065),  # weak in the frame
    (-0.424, 0.013),  # middle texture
    (-0.054, 0.006),  # broad texture
    (1.534, 0.163),  # aside
    (1.466, 0.132),  # far aside
    (0.308, -0.034),  # carried
    (-0.485, -0.179),  # evidence odds
    (0.146, -0.054),  # between
    (-1.430, 0.074),  # enclosed
    (0.905, 0.480),  # nearer than nearby
    (-1.102, -0.267),  # farther than nearby
    (0.091, 0.208),  # nearer than around
    (-0.974, -0.060),  # farther than around
    (0.483, 0.125),  # unlike
    (0.802, 0.090),  # unlike around
)
FILL = FillModel(*np.array(_COEFFICIENTS, np.float32).T.copy())

GROSS = 0.1
"""Error that counts as that of another surface, as a share of the depth."""
_OUTSIDE = 0.01  # share of the errors beyond 3 sigma that is aimed at
_GROSS_SHARE = 0.45  # mean size of a gross error, as a share of the range of depths
_LEAST_SPAN = 0.3  # range of depths, as a share of their median, if all that is measured is flat


def depth_span_m(measured_m: Image) -> float:
    """Range of the measured depths, by which errors of another surface are reckoned."""
    if not measured_m.size:
        return 1.0
    low, middle, high = np.percentile(measured_m[:: max(measured_m.size // 20000, 1)], (5, 50, 95))
    return float(max(high - low, _LEAST_SPAN * middle))


def sigma_of(depth_m: Image, error_px: Image, gross: Image, camera: tuple[float, float]) -> Image:
    """Sigma in metres, such that few errors are beyond 3 sigma, those of other surfaces included.

    Errors on the right surface fall off exponentially, and so do those of other surfaces, far
    more slowly. With t the size that a share of `_OUTSIDE` exceeds, sigma is the larger of the
    error on the right surface and t / 3.

    Parameters
    ----------
    depth_m
        Filled depth.
    error_px
        Standard deviation of its disparity on the right surface.
    gross
        Probability of another surface.
    camera
        Disparity of one dioptre in pixels, and `depth_span_m` of the frame.
    """
    per_dpt_px, span_m = camera
    error_m = depth_m**2 * error_px / np.float32(per_dpt_px)
    # Share of the errors beyond t that is left for the right surface.
    left = np.maximum(_OUTSIDE - gross, 0.1 * _OUTSIDE)
    near = 0.8 * error_m * np.log(1 / left)
    far = (GROSS * depth_m + _GROSS_SHARE * span_m) * np.maximum(np.log(gross / _OUTSIDE), 0)
    return np.asarray(np.maximum(error_m, (near + far) / 3))
