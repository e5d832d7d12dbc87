"""Layers of shapes as data: how large, how many, how grey; and what is left of them from afar."""

import math
from typing import NamedTuple

import numpy as np

from d3s.types import FloatArray

ELLIPSE, BLADE, BOX, CRYSTAL = range(4)

# Share of its bounding box 2a x 2b that each kind of shape fills; that of a crystal is measured.
FILL = {ELLIPSE: math.pi / 4.0, BLADE: 2.0 / 3.0, BOX: 1.0, CRYSTAL: 0.83}


class Layer(NamedTuple):
    """Shapes of about one size. Lengths are half-lengths in metres, ranges are drawn evenly.

    A grey is `low` or `high` with some softness between the two: `bias` above 1 makes more of them
    dark, `split` pushes them to the ends. `dome` darkens towards the edge of a shape and `tilt`
    towards its lower right; `opacity` is how much of what lies below is hidden.
    """

    kind: int
    cell_m: float
    length: tuple[float, float]
    aspect: tuple[float, float]
    angle: tuple[float, float]
    density: float
    grey: tuple[float, float]
    bias: float = 1.0
    split: float = 0.0
    dome: float = 0.0
    tilt: float = 0.0
    opacity: float = 1.0

    @property
    def thin_m(self) -> float:
        """Half the width of a middling shape."""
        return sum(self.length) / 2.0 / (sum(self.aspect) / 2.0)

    @property
    def mean_grey(self) -> float:
        """Grey of the layer seen from so far away that its shapes are too small to see."""
        low, high = self.grey
        u = np.asarray(((np.arange(256) + 0.5) / 256.0) ** self.bias, np.float64)
        plain = low + (high - low) * _pushed(u, self.split).mean()
        # The square of the distance from the middle, over a disc, is 1/2 in the mean.
        return float(plain * (1.0 - 0.5 * self.dome))

    @property
    def cover(self) -> float:
        """Share of the surface that the layer hides."""
        (short, long), (round_, slim) = self.length, self.aspect
        square = (short * short + short * long + long * long) / 3.0
        inverse = math.log(slim / round_) / (slim - round_) if slim > round_ else 1.0 / slim
        area = 4.0 * FILL[self.kind] * square * inverse
        # Shapes of neighbouring cells overlap as if thrown at random, nearly enough.
        return self.opacity * (1.0 - math.exp(-self.density * area / self.cell_m**2))


def _pushed(u: FloatArray, split: float) -> FloatArray:
    ends = u * u * (3.0 - 2.0 * u)
    pushed: FloatArray = u + split * (ends * ends * (3.0 - 2.0 * ends) - u)
    return pushed


def octave(layer: Layer, level: int) -> Layer:
    """The same layer with everything half as large, `level` times."""
    scale = 0.5**level
    short, long = layer.length
    return layer._replace(cell_m=layer.cell_m * scale, length=(short * scale, long * scale))


def fractal(layer: Layer, levels: int) -> list[Layer]:
    """Octaves of a layer, coarse to fine, each as much in sight as every other.

    Of n octaves the last must hide 1/n, the one before 1/(n - 1), and so on, for equal shares.
    """
    octaves = [octave(layer, level) for level in range(levels)]
    full = -math.log(1.0 - min(0.999, layer._replace(density=1.0, opacity=1.0).cover))
    hidden = [1.0 / (level + 1.0) for level in range(levels)]
    densities = [-math.log(max(1e-9, 1.0 - share)) / full for share in hidden]
    return [
        octave_._replace(density=min(layer.density, density))
        for octave_, density in zip(octaves, densities, strict=True)
    ]
