"""Numbers of the fill: models that `benchmarks/tune_dense.py` has fitted, and sigma from them."""

import numpy as np

from d3s.dense.candidates import PathModel
from d3s.dense.evidence import WeakModel
from d3s.dense.judge import FillModel
from d3s.types import Image

WEAK = WeakModel(
    constant=2.441,
    confidence=1.618,
    carried=0.364,
    nearby=-0.639,
    sigma=-0.985,
    wide=-0.39,
    frame=1.188,
)
PATHS = PathModel(constant=np.float32(3.907), length=np.float32(-0.723), edge=np.float32(-1.215))

# Log-odds of a gross error, and ln of the error in px otherwise, for each feature.
_COEFFICIENTS = (
    (0.469, 0.779),  # constant
    (-3.336, -0.718),  # support
    (1.164, 0.232),  # against
    (-0.555, -0.141),  # length
    (0.736, 0.103),  # edge
    (-0.146, 0.198),  # strongest
    (-0.293, 0.153),  # spread
    (-0.213, 0.734),  # precision
    (1.153, 0.107),  # own
    (-0.214, -0.000),  # own gap
    (-0.302, -0.025),  # own odds
    (-0.079, 0.053),  # low texture
    (0.030, -0.138),  # inconsistent
    (0.054, -0.168),  # occluded
    (0.411, 0.065),  # measured nearby
    (-0.045, -0.081),  # measured around
    (-1.434, -0.289),  # measured in the frame
    (-0.326, -0.076),  # confidence
    (-0.857, -0.025),  # texture
    (-0.007, 0.004),  # texture and edge
    (-0.206, -0.068),  # hidden
    (-0.169, -0.046),  # other surface
    (0.882, 0.110),  # own and texture
)
FILL = FillModel(*np.array(_COEFFICIENTS, np.float32).T.copy())

GROSS = 0.1
"""Error that counts as that of another surface, as a share of the depth."""
_OUTSIDE = 0.015  # share of the errors beyond 3 sigma that is aimed at
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
    near = 0.7 * error_m * np.log(1 / left)
    far = (GROSS * depth_m + _GROSS_SHARE * span_m) * np.maximum(np.log(gross / _OUTSIDE), 0)
    return np.asarray(np.maximum(error_m, (near + far) / 3))
