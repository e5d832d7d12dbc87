"""Variance of the disparity by errors of a calibration, over the field and the vergence.

Each independent error is a polynomial of the place (x, y) and of the vergence u = 1/Z: the
disparity that is wrong if the error has the size of its standard deviation. The variance is the sum
of their squares, and so a polynomial too.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from d3s.types import FloatArray

Maps = Sequence[Sequence[float]]
"""Maps over the field of the terms 1, u, u², ..., as in `LensMaps`."""


class DisparityVariance(NamedTuple):
    """Variance of the disparity in px²: a polynomial of u, x and y."""

    terms: FloatArray  # (powers of u, of x, of y)
    field_radius_px: float = 1.0  # the unit of x and y, from the middle of the view

    @classmethod
    def of_sigma(cls, sigma_px: float) -> Self:
        """Variance that is the same everywhere."""
        return cls(np.full((1, 1, 1), sigma_px**2))

    @classmethod
    def of_errors(cls, errors_px: Sequence[Maps], field_radius_px: float) -> Self:
        """Sum of the squares of independent errors, each given as maps over the field.

        The errors are disparities of one standard deviation.
        """
        squares = [_square(_table(maps)) for maps in errors_px if len(maps)]
        total = np.zeros(np.max([(1, 1, 1), *(one.shape for one in squares)], axis=0))
        for one in squares:
            powers, across, down = one.shape
            total[:powers, :across, :down] += one
        return cls(total, field_radius_px)

    def at(self, x: ArrayLike, y: ArrayLike, vergence_dpt: ArrayLike) -> FloatArray:
        """Variance of points, in px².

        x and y are places in the left view, in units of `field_radius_px`; shapes broadcast.
        """
        polyval = np.polynomial.polynomial.polyval
        across, down, vergence = (np.asarray(one, dtype=np.float64) for one in (x, y, vergence_dpt))
        total = np.zeros(np.broadcast_shapes(across.shape, down.shape, vergence.shape))
        for plane in self.terms[::-1]:
            inner = np.zeros(())
            for row in plane[::-1]:
                inner = inner * across + polyval(down, row)
            total = total * vergence + inner
        return np.maximum(total, 0.0)

    def over(self, vergence_dpt: FloatArray) -> FloatArray:
        """Variance of all pixels of a view whose 1/Z is given, in px²."""
        down, across = (
            (np.arange(size) - (size - 1) / 2) / self.field_radius_px for size in vergence_dpt.shape
        )
        return self.at(across, down[:, np.newaxis], vergence_dpt)


def term_count(degree: int) -> int:
    """Number of terms of a polynomial in x and y, up to a total degree."""
    return (degree + 1) * (degree + 2) // 2


def polynomial_degree(terms: int) -> int:
    """Total degree of a polynomial in x and y that has so many terms."""
    degree = 0
    while term_count(degree) < terms:
        degree += 1
    return degree


def power_table(coefficients: ArrayLike, degree: int) -> FloatArray:
    """Coefficients of a map by power of x and power of y (degree + 1, degree + 1)."""
    values = np.asarray(coefficients)
    table = np.zeros((degree + 1, degree + 1))
    place = 0
    for total in range(polynomial_degree(values.size) + 1):
        for power in range(total + 1):
            table[total - power, power] = values[place]
            place += 1
    return table


def _table(maps: Maps) -> FloatArray:
    """Coefficients of maps by power of u, x and y."""
    degree = max(polynomial_degree(len(one)) for one in maps)
    return np.stack([power_table(one, degree) for one in maps])


def _square(table: FloatArray) -> FloatArray:
    """Coefficients of the square of a polynomial in three variables."""
    out = np.zeros([2 * size - 1 for size in table.shape])
    powers, across, down = table.shape
    for k, i, j in np.argwhere(table).tolist():
        out[k : k + powers, i : i + across, j : j + down] += table[k, i, j] * table
    return out
