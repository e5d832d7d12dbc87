"""Errors of a calibrated camera over its field: walls by ninth of the view, and the bound there.

A ninth is a third of the rows and a third of the columns of the rectified left view. Pixels whose
window, or the match of it, leaves the views are not judged, as in `d3s.evaluate`.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import d3s
from calibration_sets import LENS_DEPTHS_M, SCENE_PATTERNS, SENSOR, wall_file
from d3s.evaluate.metrics import count_pixels, mean_or_nan, ratio
from d3s.evaluate.truth import TEXTURED_BELOW_M, WINDOW_PX, within_frames
from d3s.files import read_image
from d3s.optics.information import depth_bound_map
from d3s.rig import LensMaps
from d3s.types import FloatArray, Image, Mask

NINTHS = (
    *("top left", "top", "top right"),
    *("left", "middle", "right"),
    *("bottom left", "bottom", "bottom right"),
)
FIELD, CROP, SIDES = "field", "crop", "middle rows"
CROP_PX = (902, 1802)
# Blocks of the crop that the picture shows.
MAP_SHAPE = (11, 22)
MAP_DEPTHS_M = (0.40, 1.00, 1.90)
# The largest window of `joint`, which it uses on a wall.
BOUND_WINDOW_PX = 57
# Mean absolute error of a normal distribution over its standard deviation.
_MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))
_NOISE_SEED = 20
# Rows in the middle of the views: enough for a mean; `consensus` takes 8 s for a megapixel.
_CONSENSUS_ROWS_PX = 160
_LEAST_CONFIDENCE = 0.8
_DIGITS = 5


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Figures of a method on a part of one wall; shares are in per cent."""

    method: str
    pattern: str
    depth_m: float
    place: str  # one of `NINTHS`, or `FIELD`, `CROP`, `SIDES`
    pixels: int  # judged
    share: float  # of the judged pixels have a depth
    textured: float  # of the judged pixels have texture
    density: float  # of the textured pixels have a depth
    mae_cm: float  # mean absolute error
    bias_cm: float  # mean error
    within_1: float  # errors below sigma
    within_3: float  # errors below 3 sigma
    textured_mae_cm: float  # mean absolute error of textured pixels
    bound_cm: float  # mean absolute error at the bound, of the same pixels


class Scene(NamedTuple):
    """A wall as a calibrated camera sees it, and its truth."""

    pattern: str
    depth_m: float
    views: tuple[Image, Image]  # with noise
    judged: Mask
    textured: Mask
    bound_m: FloatArray  # standard deviation at the bound of `BOUND_WINDOW_PX`


class Maps(NamedTuple):
    """Mean absolute error, in cm, and share of pixels with a depth over `MAP_SHAPE` blocks."""

    error_cm: FloatArray
    share: FloatArray


def scenes(rig: d3s.Rig, folder: Path) -> Iterator[Scene]:
    """Walls in a folder, seen by a calibrated camera with the noise of its sensor."""
    walls = [(pattern, depth_m) for depth_m in LENS_DEPTHS_M for pattern in SCENE_PATTERNS]
    for number, (pattern, depth_m) in enumerate(walls):
        light = read_image(wall_file(folder, pattern, depth_m))
        clean = rig.split(light)
        rng = np.random.default_rng((_NOISE_SEED, number))
        views = rig.split(SENSOR.expose(light, camera=0, rng=rng))
        aligned_m = _aligned_depth_m(rig, depth_m, clean[0].shape)
        with np.errstate(invalid="ignore"):
            bound, least = (
                _bound(rig, clean, aligned_m, px) for px in (BOUND_WINDOW_PX, WINDOW_PX)
            )
            judged = within_frames(rig.optics.disparity_px(aligned_m), WINDOW_PX // 2)
            textured = judged & (least.total_m < TEXTURED_BELOW_M)
        yield Scene(pattern, depth_m, views, judged, textured, bound.stereo_m)


def _lenses(rig: d3s.Rig) -> LensMaps | None:
    return None if rig.calibration is None else rig.calibration.lenses


def _places(lenses: LensMaps, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Places (x, y) of all pixels of a view, in units of the field radius."""
    down, across = np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in shape), indexing="ij")
    return across / lenses.field_radius_px, down / lenses.field_radius_px


def _aligned_depth_m(rig: d3s.Rig, depth_m: float, shape: tuple[int, ...]) -> FloatArray:
    """Depth at which the views of a wall match, with the disparity that the lenses add."""
    disparity = np.full(shape, rig.optics.disparity_px(depth_m))
    lenses = _lenses(rig)
    if lenses is not None:
        x, y = _places(lenses, shape)
        disparity += lenses.remaining_disparity_px(x, y, 1 / depth_m, rig.optics)
    return rig.optics.depth_m(disparity)


def _bound(rig: d3s.Rig, clean: tuple[Image, Image], aligned_m: FloatArray, window_px: int) -> Any:
    optics = rig.optics
    return depth_bound_map(
        *clean,
        aligned_m,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
        alpha_px2_m=optics.alpha_px2_m,
        noise_sigma=_noise(rig, clean),
        window_px=window_px,
    )


def _noise(rig: d3s.Rig, clean: tuple[Image, Image]) -> FloatArray:
    """Noise of the views by the calibration, root mean square of both.

    Where a lens gives less light, the correction of light amplifies the noise.
    """
    found, lenses = rig.calibration, _lenses(rig)
    if found is None or found.noise_read is None or found.noise_gain is None:
        raise SystemExit("the rig has no noise.")
    total = np.zeros(clean[0].shape)
    for camera, view in enumerate(clean):
        light = np.ones(view.shape)
        if lenses is not None:
            light = lenses.illumination(camera, *_places(lenses, view.shape))
        level = np.maximum(np.nan_to_num(view) * light, 0)
        total += 0.5 * (found.noise_read**2 + found.noise_gain * level) / light**2
    return np.sqrt(total)


def joint_cells(rig: d3s.Rig, scene: Scene) -> tuple[list[Cell], Maps]:
    """Figures of `joint` on a wall by part of the field, and their maps over the crop."""
    est = d3s.estimate(*scene.views, rig)
    parts = {FIELD: np.s_[:, :]} | dict(zip(NINTHS, _ninths(est.depth_m.shape), strict=True))
    found = [_cell("joint", place, scene, est, part) for place, part in parts.items()]
    crop = _crop(est.depth_m.shape)
    everywhere = scene._replace(judged=np.ones_like(scene.judged))
    found.append(_cell("joint", CROP, everywhere, est, crop))
    return found, _maps(est.depth_m[crop], scene.depth_m)


def consensus_cells(rig: d3s.Rig, scene: Scene) -> list[Cell]:
    """Figures of `consensus` on the middle rows of a wall, of all columns and the middle third."""
    rows, cols = scene.judged.shape
    cut = max(rows - _CONSENSUS_ROWS_PX, 0) // 2
    part = np.s_[cut : rows - cut, :]
    left, right = (view[part] for view in scene.views)
    est = d3s.estimate(left, right, rig, method="consensus")
    est = est.filter(min_confidence=_LEAST_CONFIDENCE)
    strip = scene._replace(
        judged=scene.judged[part], textured=scene.textured[part], bound_m=scene.bound_m[part]
    )
    third = np.s_[:, cols // 3 : cols - cols // 3]
    return [
        _cell("consensus", place, strip, est, columns)
        for place, columns in ((SIDES, np.s_[:, :]), ("middle", third))
    ]


def _ninths(shape: tuple[int, ...]) -> list[tuple[slice, slice]]:
    rows, cols = ([slice(size * j // 3, size * (j + 1) // 3) for j in range(3)] for size in shape)
    return [(row, col) for row in rows for col in cols]


def _crop(shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Part of a view that is not larger than that of the paper, about the same middle."""
    cuts = [max(size - most, 0) // 2 for size, most in zip(shape, CROP_PX, strict=True)]
    rows, cols = (slice(cut, size - cut) for cut, size in zip(cuts, shape, strict=True))
    return rows, cols


def _cell(
    method: str, place: str, scene: Scene, est: d3s.DepthMap, part: tuple[slice, slice]
) -> Cell:
    judged, textured = scene.judged[part], scene.textured[part]
    retained = judged & est.valid[part]
    both = textured & retained
    error = est.depth_m[part].astype(np.float64) - scene.depth_m
    size, sigma = np.abs(error), est.sigma_m[part][retained]
    return Cell(
        method=method,
        pattern=scene.pattern,
        depth_m=scene.depth_m,
        place=place,
        pixels=count_pixels(judged),
        share=100 * ratio(count_pixels(retained), count_pixels(judged)),
        textured=100 * ratio(count_pixels(textured), count_pixels(judged)),
        density=100 * ratio(count_pixels(both), count_pixels(textured)),
        mae_cm=100 * mean_or_nan(size[retained]),
        bias_cm=100 * mean_or_nan(error[retained]),
        within_1=100 * mean_or_nan(size[retained] < sigma),
        within_3=100 * mean_or_nan(size[retained] < 3 * sigma),
        textured_mae_cm=100 * mean_or_nan(size[both]),
        bound_cm=100 * _MEAN_ABSOLUTE * mean_or_nan(scene.bound_m[part][both]),
    )


def _maps(depth_m: NDArray[Any], true_m: float) -> Maps:
    """Means over blocks of a crop, those that are cut off at its ends included."""
    rows, cols = (
        np.linspace(0, size, count + 1).astype(int)
        for size, count in zip(depth_m.shape, MAP_SHAPE, strict=True)
    )
    blocks = [
        [depth_m[top:bottom, left:right] for left, right in pairwise(cols)]
        for top, bottom in pairwise(rows)
    ]
    error = [[mean_or_nan(np.abs(one[np.isfinite(one)] - true_m)) for one in row] for row in blocks]
    share = [[float(np.isfinite(one).mean()) for one in row] for row in blocks]
    return Maps(100 * np.array(error), np.array(share))


def measure_walls(rig: d3s.Rig, folder: Path) -> tuple[list[Cell], dict[float, Maps]]:
    """Figures of both methods on all walls, and maps of `joint` by depth, means of the textures."""
    cells: list[Cell] = []
    maps: dict[float, list[Maps]] = {depth_m: [] for depth_m in MAP_DEPTHS_M}
    for scene in scenes(rig, folder):
        found, over_field = joint_cells(rig, scene)
        cells += [*found, *consensus_cells(rig, scene)]
        if scene.depth_m in maps:
            maps[scene.depth_m].append(over_field)
    means = {
        depth_m: Maps(*(np.mean(np.stack(part), axis=0) for part in zip(*some, strict=True)))
        for depth_m, some in maps.items()
    }
    return cells, means


def write_cells(path: Path, cells: Mapping[str, Sequence[Cell]]) -> None:
    """Write the figures of all sets as a table of values separated by commas."""
    names = [field.name for field in fields(Cell)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", *names])
        for name, some in cells.items():
            for cell in some:
                writer.writerow([name, *(_short(value) for value in asdict(cell).values())])


def _short(value: Any) -> Any:
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else value


def read_cells(path: Path) -> dict[str, list[Cell]]:
    """Figures of all sets from a table; empty if there is none."""
    if not path.exists():
        return {}
    texts = {"method", "pattern", "place"}
    found: dict[str, list[Cell]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            name = line.pop("set")
            values: dict[str, Any] = {
                key: value if key in texts else float(value) for key, value in line.items()
            }
            found.setdefault(name, []).append(Cell(**values | {"pixels": int(values["pixels"])}))
    return found
