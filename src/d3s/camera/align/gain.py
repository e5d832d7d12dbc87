"""Brightness of the right half over the left one, at matched places."""

import math

import numpy as np

from d3s.camera.align.geometry import Frame, Geometry
from d3s.camera.align.light import Light
from d3s.camera.align.matching import Matched
from d3s.camera.align.quantities import Reading, unknown
from d3s.check.fit import Samples, fit_groups
from d3s.types import FloatArray, Image

GAIN_LIMIT = 0.03
_HALF_PX = 24  # of the windows whose means are compared
_STEP_PX = 3  # every third pixel of a window
_WINDOW_SIGMA = 0.01  # relative error of a window
_PLAIN_SIGMA = 0.02  # without texture, from white parts


def gain_reading(
    image: Image, light: Light, matched: Matched, geometry: Geometry | None, frame: Frame
) -> Reading:
    """Reading of the gain: log of the right half over the left one.

    Parameters
    ----------
    image
        Raw frame, (rows, cols).
    light
        Light of the frame.
    matched
        Places that both halves show.
    geometry
        Fit to the places; without it, white parts of both halves are compared.
    frame
        Axes of both lenses.
    """
    if light.fields is None:
        return unknown("gain", 0.0, GAIN_LIMIT, light.problem)
    if geometry is None:
        left, right = light.fields.light
        if min(left, right) <= 0:
            return unknown("gain", 0.0, GAIN_LIMIT, "one half is black: is a lens covered?")
        note = "from white parts, since there is no texture"
        return Reading("gain", math.log(right / left), _PLAIN_SIGMA, 0.0, GAIN_LIMIT, note=note)
    black = float(np.percentile(image[::16, ::16], 1))
    means = [_window_means(image, places) for places in (matched.left_px, matched.right_px)]
    lit = np.minimum(means[0], means[1]) - black > 0.02 * max(float(np.max(means)) - black, 1e-9)
    ratio = np.log((means[1][lit] - black) / (means[0][lit] - black))
    u, v = ((matched.left_px - frame.axes_px[0]) / frame.side_px)[lit].T
    radius = u * u + v * v
    terms = np.stack([np.ones_like(u), u, v, radius - radius.mean()], axis=1)
    sigmas = np.full(ratio.size, _WINDOW_SIGMA)
    fit = fit_groups(Samples(terms, ratio, sigmas, geometry.groups[lit]), np.full(4, np.inf))
    if fit is None:
        return unknown("gain", 0.0, GAIN_LIMIT, "texture in one corner only: show it all over")
    return Reading("gain", float(fit.values[0]), float(fit.sigmas[0]), 0.0, GAIN_LIMIT)


def _window_means(image: Image, places_px: FloatArray) -> FloatArray:
    rows, cols = image.shape
    means = np.empty(len(places_px))
    for number, (x, y) in enumerate(np.rint(places_px).astype(int)):
        means[number] = image[
            max(y - _HALF_PX, 0) : min(y + _HALF_PX + 1, rows) : _STEP_PX,
            max(x - _HALF_PX, 0) : min(x + _HALF_PX + 1, cols) : _STEP_PX,
        ].mean()
    return means
