"""Cases of `attacks.py`: repetition whose true match is out of the range, or out of the frame."""

from collections.abc import Callable
from functools import partial

import numpy as np

import d3s
from attacks import Attack, Case
from d3s.lab.twin.textures import Texture
from d3s.types import FloatArray
from faults import PINHOLE, PROTOTYPE, SHAPE

_FINE = 3  # pixels of a texture per pixel of the frame
_SIZE = 320, 760  # rows and columns of a texture, in pixels of the frame
_KEPT = 0.9  # contrast: no pixel is clipped

Places = FloatArray
Pattern = Callable[[Places, Places, np.random.Generator], FloatArray]
"""Brightness, 0 to 1, at rows and columns in periods; the generator varies it."""


def _sine(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return 0.5 + 0.5 * np.sin(2 * np.pi * (x + rng.random())) + 0 * y


def _sines(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return 0.5 + 0.25 * np.sin(2 * np.pi * (x + rng.random())) + 0.25 * np.sin(2 * np.pi * y)


def _triangles(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return np.abs(2 * ((x + 0.3 * y + rng.random()) % 1) - 1)


def _stripes(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return ((x + rng.random()) % 1 < 0.4) + 0 * y


def _grid(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return 1.0 * ((x + rng.random()) % 1 > 0.2) * (y % 1 > 0.2)


def _dots(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return 1.0 * (np.hypot((x + rng.random()) % 1 - 0.5, y % 1 - 0.5) < 0.3)


def _checks(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return (np.floor(2 * x + rng.random()) + np.floor(2 * y)) % 2


def _each(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    """Another number, 0 to 1, for each period."""
    numbers = rng.random((97, 89))
    return numbers[np.floor(y).astype(int) % 97, np.floor(x).astype(int) % 89]


def _bricks(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    row = np.floor(2 * y)
    across = x + 0.5 * (row % 2)
    is_brick = (across % 1 > 0.12) & (2 * y % 1 > 0.2)
    return is_brick * (0.75 + 0.1 * _each(2 * y, across, rng))


def _keys(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    """Keys with another small sign on each."""
    across = x + 0.25 * np.floor(y)
    is_key = (np.abs(across % 1 - 0.5) < 0.42) & (np.abs(y % 1 - 0.5) < 0.42)
    inside = (np.abs(across % 1 - 0.35) < 0.15) & (np.abs(y % 1 - 0.35) < 0.15)
    sign = inside & (_each(10 * y, 10 * across, rng) > 0.6)
    return is_key * (0.8 - 0.25 * sign)


def _paper(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    """Wallpaper: one random tile again and again, and print that varies a little."""
    tile = rng.random((9, 9))
    spots = tile[np.floor(9 * y).astype(int) % 9, np.floor(9 * x).astype(int) % 9]
    return np.asarray(0.94 * spots + 0.06 * _each(7 * y, 7 * x, rng))


def _hatch(y: Places, x: Places, rng: np.random.Generator) -> FloatArray:
    return 0.5 * ((x + y) % 1 < 0.5) + 0.5 * ((x - y + rng.random()) % 1 < 0.3)


def _attack(
    pattern: Pattern,
    period_px: float,
    depth_m: float,
    rig: d3s.Rig,
    range_m: tuple[float, float] | None,
    noise: float,
    seed: int,
    rest_m: float | None,
) -> Attack:
    """Wall of a pattern whose period in the view is given; beside it a part that does not repeat.

    The rest is bark, over the right half of the frame or all but a band of 80 rows.
    """
    rng = np.random.default_rng(seed)
    rows, cols = (np.arange(_FINE * size) / _FINE / period_px for size in _SIZE)
    image = pattern(rows[:, np.newaxis], cols[np.newaxis], rng)
    image = 0.5 + _KEPT * (np.clip(image, 0, 1) - 0.5)
    width_m = _SIZE[1] * depth_m / rig.optics.focal_length_px
    wall = d3s.Photo(image=image.astype(np.float32), width_m=width_m, encoding="linear")
    layers = [d3s.Layer(depth_m=depth_m, texture=wall)]
    if rest_m is not None:
        mask = np.ones(SHAPE)
        mask[(slice(90, 170),) if seed % 2 else (slice(None), slice(SHAPE[1] // 2))] = 0
        bark = Texture(pattern="bark", seed=seed)
        if rest_m < depth_m:
            layers.append(d3s.Layer(depth_m=rest_m, texture=bark, mask=mask))
        else:
            near = layers.pop().replace(mask=1 - mask)
            layers += [near, d3s.Layer(depth_m=rest_m, texture=bark)]
    pair = d3s.simulate(d3s.Layered(layers=layers), rig, noise=noise, seed=seed, shape=SHAPE)
    options: dict[str, object] = {} if range_m is None else {"depth_range_m": range_m}
    return Attack(pair.left, pair.right, pair.depth_m, rig, options)


def _case(
    pattern: Pattern,
    period_px: float,
    depth_m: float,
    rig: d3s.Rig,
    range_m: tuple[float, float] | None = None,
    *,
    noise: float = 0.01,
    rest_m: float | None = None,
    is_tuning: bool = False,
) -> Case:
    name = "lenses" if rig is PROTOTYPE else "pinhole"
    range_ = "" if range_m is None else f", {range_m[0]:g} to {range_m[1]:g} m"
    rest = "" if rest_m is None else f", bark at {rest_m:g} m"
    words = f"{pattern.__name__[1:]} {period_px:g} px at {depth_m:g} m{rest}, {name}{range_}"
    seed = 1000 * is_tuning + int(period_px)
    make = partial(_attack, pattern, period_px, depth_m, rig, range_m, noise, seed, rest_m)
    return Case(words, make, is_tuning)


# A disparity of 1 px is 42 m away with the pinhole pair, 23 m with the prototype.
CASES: list[Case] = [
    # Matches out of the frame: 100 px of 440 are, or more.
    _case(_sine, 37, 0.4, PINHOLE),
    _case(_stripes, 22, 0.42, PINHOLE),
    _case(_grid, 31, 0.5, PINHOLE, noise=0.0),
    _case(_bricks, 44, 0.45, PINHOLE),
    _case(_keys, 40, 0.4, PINHOLE),
    _case(_paper, 53, 0.5, PINHOLE, noise=0.005),
    _case(_checks, 26, 0.42, PINHOLE, rest_m=1.0),
    # Nearer or farther than the default range.
    _case(_sines, 19, 0.25, PINHOLE),
    _case(_stripes, 60, 0.2, PINHOLE, noise=0.0),
    _case(_keys, 33, 0.3, PINHOLE, rest_m=1.2),
    _case(_checks, 48, 6.0, PINHOLE),
    _case(_paper, 29, 0.27, PINHOLE),
    _case(_sines, 42, 0.22, PROTOTYPE),
    _case(_bricks, 36, 4.0, PROTOTYPE),
    # Nearer or farther than a given range.
    _case(_grid, 17, 0.5, PINHOLE, (0.8, 5.0)),
    _case(_sine, 6, 0.6, PINHOLE, (1.0, 1.2), noise=0.005),
    _case(_bricks, 28, 2.0, PINHOLE, (0.5, 1.2)),
    _case(_paper, 47, 1.5, PINHOLE, (0.4, 0.9), rest_m=0.6),
    _case(_stripes, 11, 0.5, PROTOTYPE, (0.8, 1.0)),
    _case(_sine, 24, 0.5, PROTOTYPE, (0.8, 2.5)),
    _case(_keys, 35, 0.6, PROTOTYPE, (1.0, 3.0)),
    _case(_checks, 20, 1.5, PROTOTYPE, (0.4, 0.9)),
    _case(_paper, 25, 0.8, PROTOTYPE, (1.2, 2.5), rest_m=1.6),
    _case(_grid, 14, 0.7, PROTOTYPE, (0.9, 1.5), noise=0.02),
    _case(_bricks, 24, 0.4, PINHOLE, rest_m=0.9),
    _case(_keys, 50, 1.6, PINHOLE, (0.4, 0.9), rest_m=0.55),
    _case(_grid, 30, 0.6, PROTOTYPE, (0.8, 2.5), rest_m=1.3, noise=0.005),
    _case(_bricks, 43, 0.9, PROTOTYPE, (0.3, 0.7), rest_m=0.5),
    # Constants were chosen on these.
    _case(_triangles, 23, 0.41, PINHOLE, is_tuning=True),
    _case(_dots, 34, 0.45, PINHOLE, noise=0.02, is_tuning=True),
    _case(_hatch, 50, 0.25, PINHOLE, is_tuning=True),
    _case(_dots, 15, 0.6, PINHOLE, (0.9, 4.0), noise=0.0, is_tuning=True),
    _case(_bricks, 39, 0.48, PINHOLE, is_tuning=True),
    _case(_paper, 41, 0.38, PINHOLE, rest_m=0.9, is_tuning=True),
    _case(_hatch, 8, 0.5, PINHOLE, (0.9, 1.1), is_tuning=True),
    _case(_triangles, 30, 0.6, PROTOTYPE, (0.9, 2.5), is_tuning=True),
    _case(_dots, 18, 0.5, PROTOTYPE, (0.75, 1.4), noise=0.02, is_tuning=True),
    _case(_keys, 45, 0.23, PROTOTYPE, is_tuning=True),
    _case(_hatch, 27, 1.4, PROTOTYPE, (0.4, 0.8), is_tuning=True),
    _case(_paper, 33, 0.6, PROTOTYPE, (0.9, 2.0), rest_m=1.2, is_tuning=True),
    _case(_dots, 46, 1.4, PINHOLE, (0.4, 0.9), rest_m=0.55, is_tuning=True),
    _case(_paper, 38, 1.7, PINHOLE, (0.4, 1.0), rest_m=0.6, is_tuning=True),
    _case(_hatch, 32, 0.36, PINHOLE, rest_m=0.7, is_tuning=True),
    _case(_dots, 25, 0.37, PINHOLE, rest_m=0.8, is_tuning=True),
    _case(_triangles, 40, 0.5, PROTOTYPE, (0.8, 2.5), rest_m=1.0, is_tuning=True),
    _case(_hatch, 29, 1.0, PROTOTYPE, (0.4, 0.8), rest_m=0.6, is_tuning=True),
]
