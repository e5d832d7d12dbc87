"""Rows, results and a tuned camera of the reproduction, as small as they go."""

from functools import cache

from d3s.lab.evaluate.cameras import tuned_twin


def row(method="joint", depth_m=1.0, mae_m=0.005, **changes):
    """A row of one plane, as Fig. 5 has it."""
    values = {"method": method, "threshold": None, "texture": "brick", "depth_m": depth_m}
    values |= {"pixels": 100, "retained": 50, "mae_m": mae_m, "median_m": mae_m, "density": 0.5}
    return values | changes


def table(result, name):
    """Rows of one table of a result."""
    (found,) = [one for one in result.tables if one.name == name]
    return list(found.rows)


@cache
def tiny_twin():
    """A twin that is tuned in a second or two."""
    return tuned_twin(depths_m=(0.35, 0.45, 0.6, 0.75, 0.9, 1.1, 1.3, 1.6), shape=(210, 420))
