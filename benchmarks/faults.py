"""Good pairs, and faults that people's pairs have: each spoils a good pair by a stated amount."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np

import d3s
from d3s.estimate.diagnosis import Cause
from d3s.lab.twin.textures import Texture
from d3s.types import Image

PROTOTYPE = d3s.Rig.paper_prototype()
PINHOLE = d3s.Rig.from_pinhole(focal_length_px=700.0, baseline_m=0.06, name="pinhole pair")
SHAPE = (260, 440)
NOISES = (0.0, 0.005, 0.01, 0.02)
CONTRASTS = (1.0, 0.6)
PLAIN_CONTRAST = 0.002  # a wall that shows nothing in noise


class Case(NamedTuple):
    """A scene to render, its camera and its noise."""

    name: str
    scene: Any
    rig: d3s.Rig
    noise: float

    def pair(self, seed: int) -> d3s.Pair:
        return d3s.simulate(self.scene, self.rig, noise=self.noise, seed=seed, shape=SHAPE)


def good_cases(patterns: Sequence[str], seed: int) -> list[Case]:
    """200 pairs without a fault: planes, random scenes, and scenes before a plain wall.

    Parameters
    ----------
    patterns
        Textures.
    seed
        Seed of textures and scenes.
    """
    cases: list[Case] = []
    depths = {"prototype": (0.3, 0.45, 0.7, 1.0, 1.4, 2.0), "pinhole": (0.5, 1.0, 1.5, 2.0)}
    for rig, name in ((PROTOTYPE, "prototype"), (PINHOLE, "pinhole")):
        for place, depth_m in enumerate(depths[name]):
            for i in range(8):
                pattern = patterns[i % len(patterns)]
                noise = NOISES[(place + i) % len(NOISES)]
                contrast = CONTRASTS[(place + i // 2) % len(CONTRASTS)]
                texture = Texture(pattern=pattern, seed=seed + i, contrast=contrast)
                scene = d3s.Plane(depth_m=depth_m, texture=texture)
                cases.append(Case(f"{name}: {pattern} at {depth_m} m", scene, rig, noise))
        for i in range(30):
            scene = random_scene(patterns, seed + i)
            noise = NOISES[i % len(NOISES)]
            cases.append(Case(f"{name}: scene {i}", scene, rig, noise))
            plain = before_plain_wall(random_scene(patterns, seed + 100 + i, things=8), rig)
            cases.append(Case(f"{name}: plain wall {i}", plain, rig, noise))
    return cases


def random_scene(patterns: Sequence[str], seed: int, things: int | None = None) -> d3s.RandomScene:
    return d3s.RandomScene(
        seed=seed, nearest_m=0.35, farthest_m=1.9, patterns=tuple(patterns), things=things
    )


def before_plain_wall(scene: d3s.RandomScene, rig: d3s.Rig) -> d3s.Layered:
    """Objects of a random scene in front of a wall without texture."""
    *things, wall = scene.layers_for(rig.optics, SHAPE)
    plain = wall.texture.replace(contrast=PLAIN_CONTRAST)
    return d3s.Layered(layers=[*things, wall.replace(texture=plain)])


def cases_to_spoil(patterns: Sequence[str], seed: int) -> list[Case]:
    """20 good pairs with 1 % noise, most of them of the prototype."""
    cases = []
    for i in range(20):
        rig = PINHOLE if i % 4 == 3 else PROTOTYPE
        scene: Any = random_scene(patterns, seed + i)
        if i % 2:
            texture = Texture(pattern=patterns[i % len(patterns)], seed=seed + i)
            scene = d3s.Plane(depth_m=(0.5, 0.8, 1.1, 1.4, 1.8)[i % 5], texture=texture)
        cases.append(Case(f"pair {i}", scene, rig, 0.01))
    return cases


class Fault(NamedTuple):
    """A fault of a stated size, and the causes that describe it."""

    what: str
    size: str
    causes: tuple[Cause, ...]
    spoil: Callable[[d3s.Pair], tuple[Image, Image]]
    options: Callable[[d3s.Pair], dict[str, Any]] = lambda pair: {}


def _right(change: Callable[[Image], Any]) -> Callable[[d3s.Pair], tuple[Image, Image]]:
    return lambda pair: (pair.left, np.asarray(change(pair.right), dtype=np.float32))


def _both(change: Callable[[Image], Any]) -> Callable[[d3s.Pair], tuple[Image, Image]]:
    return lambda pair: (
        np.asarray(change(pair.left), dtype=np.float32),
        np.asarray(change(pair.right), dtype=np.float32),
    )


def moved_down(view: Image, rows: float) -> Image:
    """View moved down by rows, also by fractions; bicubic, edges repeat."""
    matrix = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, rows]])
    return _warped(view, matrix)


def turned(view: Image, degrees: float) -> Image:
    """View turned about its middle."""
    middle = (view.shape[1] / 2, view.shape[0] / 2)
    return _warped(view, cv2.getRotationMatrix2D(middle, degrees, 1.0))


def _warped(view: Image, matrix: Any) -> Image:
    size = view.shape[1], view.shape[0]
    moved = cv2.warpAffine(
        view, matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(moved)


def shaded(view: Image, share: float) -> Image:
    """View times a ramp from 1 - share at the left to 1 + share at the right."""
    return np.asarray(view * np.linspace(1 - share, 1 + share, view.shape[1], dtype=np.float32))


def clipped(view: Image, share: float, *, white: bool) -> Image:
    """View with this share of its pixels at white or black."""
    if white:
        return np.minimum(view, np.quantile(view, 1 - share))
    return np.maximum(view, np.quantile(view, share))


def as_jpeg(view: Image, quality: int) -> Image:
    """View written as JPEG and read again."""
    bytes_ = np.clip(255 * view + 0.5, 0, 255).astype(np.uint8)
    _, packed = cv2.imencode(".jpg", bytes_, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(packed, cv2.IMREAD_GRAYSCALE) / 255)


def demosaiced(view: Image) -> Image:
    """View as the mosaic of a colour sensor, demosaiced and turned to grey."""
    mosaic = np.clip(65535 * view, 0, 65535).astype(np.uint16)
    colour = cv2.cvtColor(mosaic, cv2.COLOR_BayerBG2RGB)
    return np.asarray(colour @ np.array([0.2126, 0.7152, 0.0722]) / 65535)


def _noise_only(view: Image) -> Image:
    rng = np.random.default_rng(1)
    return np.asarray(0.02 + 0.01 * rng.standard_normal(view.shape), dtype=np.float32)


def _other_scene(pair: d3s.Pair) -> tuple[Image, Image]:
    return pair.left, pair.right[::-1, ::-1].copy()


def _range_before(pair: d3s.Pair) -> dict[str, Any]:
    return {"depth_range_m": (0.2, 0.75 * float(np.median(pair.depth_m)))}


def _range_behind(pair: d3s.Pair) -> dict[str, Any]:
    middle_m = float(np.median(pair.depth_m))
    return {"depth_range_m": (1.35 * middle_m, 4 * middle_m)}


def faults() -> Iterator[Fault]:
    """Every fault at several sizes."""
    yield Fault("swapped", "", (Cause.SWAPPED,), lambda pair: (pair.right, pair.left))
    for rows in (0.25, 0.5, 0.75, 1, 2, 4, 8):
        yield Fault("rows moved", f"{rows:g} px", (Cause.ROWS,), _right(_call(moved_down, rows)))
    for degrees in (0.25, 0.5, 1.0):
        spoil = _right(_call(turned, degrees))
        yield Fault("right view turned", f"{degrees:g}°", (Cause.ROWS,), spoil)
    unspoilt = _right(np.asarray)
    yield Fault("range ends before", "0.75 Z", (Cause.RANGE,), unspoilt, _range_before)
    yield Fault("range begins behind", "1.35 Z", (Cause.RANGE,), unspoilt, _range_behind)
    for percent in (1, 2, 3, 5, 10, 40):
        spoil = _right(_call(np.multiply, np.float32(1 - percent / 100)))
        yield Fault("gain", f"-{percent} %", (Cause.CONTRAST,), spoil)
    for gamma in (1.1, 1.2, 1.3, 1.5, 2.2):
        spoil = _right(lambda view, gamma=gamma: np.maximum(view, 0) ** gamma)
        yield Fault("gamma", f"{gamma:g}", (Cause.GAMMA, Cause.CONTRAST), spoil)
    for percent in (5, 10, 15, 20, 30):
        spoil = _right(_call(shaded, percent / 100))
        yield Fault("shading", f"±{percent} %", (Cause.SHADING, Cause.CONTRAST), spoil)
    for percent in (1, 5, 20, 40):
        for white in (True, False):
            spoil = _both(lambda view, s=percent / 100, w=white: clipped(view, s, white=w))
            name = "clipped white" if white else "clipped black"
            yield Fault(name, f"{percent} %", (Cause.CLIPPED,), spoil)
    for contrast in (0.1, 0.03, 0.0):
        causes = (Cause.PLAIN, Cause.UNCERTAIN)
        yield Fault("weak texture", f"{contrast:g}", causes, _weak(contrast))
    yield Fault("lens covered", "noise", (Cause.COVERED,), _right(_noise_only))
    yield Fault("lens covered", "black", (Cause.CONSTANT,), _right(np.zeros_like))
    yield Fault("other picture", "", (Cause.UNLIKE,), _other_scene)
    yield Fault("demosaiced", "bilinear", (Cause.GRAIN,), _both(demosaiced))
    for quality in (95, 90, 75):
        yield Fault("JPEG", f"{quality}", (Cause.GRAIN,), _both(_call(as_jpeg, quality)))
    for sigma in (0.4, 0.5, 0.7):
        spoil = _both(lambda view, s=sigma: cv2.GaussianBlur(view, (0, 0), s))
        yield Fault("smoothed", f"{sigma:g} px", (Cause.GRAIN,), spoil)


def _call(function: Callable[..., Any], amount: Any) -> Callable[[Image], Any]:
    return lambda view: function(view, amount)


def _weak(contrast: float) -> Callable[[d3s.Pair], tuple[Image, Image]]:
    """Texture and its noise weakened, and 1 % of noise added anew."""

    def spoil(pair: d3s.Pair) -> tuple[Image, Image]:
        rng = np.random.default_rng(2)
        left, right = (
            0.5 + contrast * (view - 0.5) + 0.01 * rng.standard_normal(view.shape)
            for view in (pair.left, pair.right)
        )
        return left.astype(np.float32), right.astype(np.float32)

    return spoil
