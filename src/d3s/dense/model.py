"""Numbers of the fill: models that `benchmarks/tune_dense.py` has fitted, and sigma from them."""

import numpy as np

from d3s.dense.candidates import PathModel
from d3s.dense.evidence import WeakModel
from d3s.dense.judge import FillModel
from d3s.types import Image

WEAK = WeakModel(
    constant=2.15,
    confidence=1.534,
    carried=0.376,
    nearby=-0.626,
    sigma=-1.099,
    wide=-0.393,
    frame=1.16,
)
PATHS = PathModel(constant=np.float32(3.863), length=np.float32(-0.807), edge=np.float32(-1.123))

# Log-odds of a gross error, and ln of the error in px otherwise, for each feature.
_COEFFICIENTS = (
    (0.986, 0.821),  # constant
    (-3.045, -0.578),  # support
    (0.241, 0.265),  # against
    (-0.649, -0.146),  # length
    (0.496, 0.063),  # edge
    (-0.036, 0.126),  # strongest
    (-0.582, 0.146),  # spread
    (0.671, 0.789),  # precision
    (1.915, 0.068),  # own
    (0.272, -0.032),  # own gap
    (-0.266, 0.013),  # own odds
    (0.268, 0.009),  # low texture
    (0.326, -0.098),  # inconsistent
    (-0.069, -0.176),  # occluded
    (0.369, 0.070),  # measured nearby
    (0.184, -0.072),  # measured around
    (-1.994, -0.275),  # measured in the frame
    (-0.652, -0.080),  # confidence
    (-0.973, -0.045),  # texture
    (0.240, -0.017),  # texture and edge
    (-0.204, -0.070),  # hidden
    (-0.473, -0.079),  # other surface
    (1.197, 0.184),  # own and texture
    (-0.388, -0.048),  # weak in the frame
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
    near = 0.8 * error_m * np.log(1 / left)
    far = (GROSS * depth_m + _GROSS_SHARE * span_m) * np.maximum(np.log(gross / _OUTSIDE), 0)
    return np.asarray(np.maximum(error_m, (near + far) / 3))
