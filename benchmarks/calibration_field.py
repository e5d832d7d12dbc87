"""Errors of a calibrated camera over its field: walls by ninth of the view, and the bound there.

A ninth is a third of the rows and a third of the columns of the rectified left view. Pixels whose
window, or the match of it, leaves the views are not judged, as in `d3s.lab.evaluate`.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

import d3s
from calibration_sets import LENS_DEPTHS_M, SCENE_PATTERNS, SENSOR, wall_file
from d3s.files import read_image
from d3s.lab.evaluate.metrics import count_pixels, mean_or_nan, ratio
from d3s.lab.evaluate.truth import TEXTURED_BELOW_M, WINDOW_PX, within_frames
from d3s.optics.information import depth_bound, window_information
from d3s.optics.windows import sharp_gradient_x, shifted_right, window_sum
from d3s.rig import LensMaps
from d3s.types import FloatArray, Image, Mask

NINTHS = (
    *("top left", "top", "top right"),
    *("left", "middle", "right"),
    *("bottom left", "bottom", "bottom right"),
)
FIELD, SIDES = "field", "middle rows"
# The largest window of `joint`, which it uses on a wall.
BOUND_WINDOW_PX = 57
# Mean absolute error of a normal distribution over its standard deviation.
_MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))
_NOISE_SEED = 20
# Rows in the middle of the views: enough for a mean. With maps of lenses `consensus` takes 20 s for
# a megapixel.
_CONSENSUS_ROWS_PX = 96
_LEAST_CONFIDENCE = 0.8
_DIGITS = 5


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Figures of a method on a part of one wall; shares are in per cent."""

    method: str
    pattern: str
    depth_m: float
    place: str  # one of `NINTHS`, or `FIELD`, `SIDES`
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


class Camera(NamedTuple):
    """A calibrated camera, with its maps at all pixels of a view."""

    rig: d3s.Rig
    lenses: LensMaps | None
    places: tuple[FloatArray, FloatArray]  # x and y in units of the field radius
    light: tuple[FloatArray, FloatArray]  # of both views, which the split divides by

    @classmethod
    def of(cls, rig: d3s.Rig) -> Self:
        """Camera of a rig that was calibrated with its noise."""
        found = rig.calibration
        if found is None or found.noise_read is None:
            raise SystemExit("the rig has no calibration with noise.")
        shape = found.crop_rows_px, found.crop_cols_px
        down, across = np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in shape), indexing="ij")
        lenses = found.lenses
        if lenses is None:
            return cls(rig, None, (across, down), (np.ones(shape), np.ones(shape)))
        x, y = across / lenses.field_radius_px, down / lenses.field_radius_px
        light = lenses.illumination(0, x, y), lenses.illumination(1, x, y)
        return cls(rig, lenses, (x, y), light)

    def disparity_px(self, depth_m: float) -> FloatArray:
        """Disparity of a wall, with that of the lenses."""
        disparity = np.full(self.light[0].shape, self.rig.optics.disparity_px(depth_m))
        if self.lenses is not None:
            disparity += self.lenses.remaining_disparity_px(
                *self.places, 1 / depth_m, self.rig.optics
            )
        return disparity

    def noise(self, clean: tuple[Image, Image]) -> FloatArray:
        """Noise of the views by the calibration, root mean square of both."""
        found = self.rig.calibration
        total = np.zeros(clean[0].shape)
        if found is None or found.noise_read is None or found.noise_gain is None:
            return total
        for view, light in zip(clean, self.light, strict=True):
            level = np.maximum(np.nan_to_num(view) * light, 0)
            total += 0.5 * (found.noise_read**2 + found.noise_gain * level) / light**2
        return np.sqrt(total)


def scenes(rig: d3s.Rig, folder: Path) -> Iterator[Scene]:
    """Walls in a folder, seen by a calibrated camera with the noise of its sensor."""
    camera = Camera.of(rig)
    walls = [(pattern, depth_m) for depth_m in LENS_DEPTHS_M for pattern in SCENE_PATTERNS]
    for number, (pattern, depth_m) in enumerate(walls):
        light = read_image(wall_file(folder, pattern, depth_m))
        rng = np.random.default_rng((_NOISE_SEED, number))
        views = rig.split(SENSOR.expose(light, camera=0, rng=rng))
        disparity = camera.disparity_px(depth_m)
        bound, least = _bounds_m(camera, rig.split(light), depth_m, disparity)
        judged = within_frames(disparity, WINDOW_PX // 2)
        textured = judged & (least < TEXTURED_BELOW_M)
        yield Scene(pattern, depth_m, views, judged, textured, bound)


def _bounds_m(
    camera: Camera, clean: tuple[Image, Image], depth_m: float, disparity_px: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of stereo for windows of `BOUND_WINDOW_PX` and of `WINDOW_PX`.

    As `d3s.optics.information.depth_bound_map`, with the disparity that the lenses add, and for
    views of unequal blur: energies of the gradients combine as 2 / (1/left + 1/right).
    """
    left, right = (sharp_gradient_x(view) for view in clean)
    right = shifted_right(right, disparity_px)
    seen = np.isfinite(left + right)
    squares = [np.where(seen, one**2, 0.0) for one in (left, right)]
    optics, noise = camera.rig.optics, camera.noise(clean)
    bounds = [
        depth_bound(
            window_information(
                _common(*(window_sum(one, window_px) for one in squares)),
                0.0,
                depth_m,
                focal_length_px=optics.focal_length_px,
                baseline_m=optics.baseline_m,
                alpha_px2_m=0.0,
                noise_sigma=noise,
            )
        ).stereo_m
        for window_px in (BOUND_WINDOW_PX, WINDOW_PX)
    ]
    return bounds[0], bounds[1]


def _common(left: FloatArray, right: FloatArray) -> FloatArray:
    """Harmonic mean of two energies."""
    total = left + right
    return np.asarray(np.divide(2 * left * right, total, out=np.zeros_like(total), where=total > 0))


def joint_cells(rig: d3s.Rig, scene: Scene) -> list[Cell]:
    """Figures of `joint` on a wall by part of the field."""
    est = d3s.estimate(*scene.views, rig)
    parts = {FIELD: np.s_[:, :]} | dict(zip(NINTHS, _ninths(est.depth_m.shape), strict=True))
    return [_cell("joint", place, scene, est, part) for place, part in parts.items()]


def consensus_cells(rig: d3s.Rig, scene: Scene) -> list[Cell]:
    """Figures of `consensus` on the middle rows of a wall, of all columns and the middle third."""
    rows, cols = scene.judged.shape
    cut = max(rows - _CONSENSUS_ROWS_PX, 0) // 2
    part = np.s_[cut : rows - cut, :]
    left, right = (view[part] for view in scene.views)
    est = d3s.estimate(left, right, rig, method="consensus")
    est = est.filter(min_confidence=_LEAST_CONFIDENCE)
    # Windows of the outer rows leave the strip.
    judged = scene.judged[part].copy()
    judged[: WINDOW_PX // 2] = judged[-(WINDOW_PX // 2) :] = False
    strip = scene._replace(
        judged=judged, textured=scene.textured[part] & judged, bound_m=scene.bound_m[part]
    )
    third = np.s_[:, cols // 3 : cols - cols // 3]
    return [
        _cell("consensus", place, strip, est, columns)
        for place, columns in ((SIDES, np.s_[:, :]), ("middle", third))
    ]


def _ninths(shape: tuple[int, ...]) -> list[tuple[slice, slice]]:
    rows, cols = ([slice(size * j // 3, size * (j + 1) // 3) for j in range(3)] for size in shape)
    return [(row, col) for row in rows for col in cols]


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


def measure_walls(rig: d3s.Rig, folder: Path) -> list[Cell]:
    """Figures of both methods on all walls."""
    return [
        cell
        for scene in scenes(rig, folder)
        for cell in (*joint_cells(rig, scene), *consensus_cells(rig, scene))
    ]


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
