"""Cameras to choose from: sensors and lenses that are sold, and many cameras at once as arrays.

The catalogue has facts with their source, from TOML files.
"""

import difflib
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.errors import DesignError, InputError, RecordError
from d3s.estimate.candidates import WIDEST_BLUR_PX
from d3s.lab.design.camera import CLEAR_SHARE, THICKNESS_SHARE, Camera
from d3s.lab.design.error_model import (
    LARGEST_DIFFERENCE_PX,
    LARGEST_RADIUS_PX,
    MAE_PER_SIGMA,
    ErrorTable,
    error_model,
)
from d3s.lab.design.limits import WAVELENGTH_M
from d3s.lab.design.predict import LEAST_DENSITY, ErrorLimit
from d3s.lab.design.wall import Lighting
from d3s.record import OneLine, Record

CATALOGUE_FILE = Path(__file__).with_name("catalogue.toml")
"""Catalogue of the package."""

_LARGEST_BYTES = 1_000_000


class ImageSensor(Record):
    """Image sensor that is sold."""

    error: ClassVar[type[RecordError]] = DesignError

    name: OneLine = Field(description="the name it is sold by")
    pixel_pitch_m: float = Field(
        gt=1e-7, lt=1e-4, description="the distance between neighbouring pixel centres"
    )
    rows_px: int = Field(ge=64, le=20_000, description="the height of the sensor")
    cols_px: int = Field(ge=64, le=20_000, description="the width of the sensor")
    colour: bool = Field(default=False, description="whether it has colour filters")
    source: OneLine = Field(default="", description="where these facts are from")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows_px, self.cols_px


class StockLens(Record):
    """Lens that is sold."""

    error: ClassVar[type[RecordError]] = DesignError

    name: OneLine = Field(description="the name it is sold by")
    focal_length_m: float = Field(gt=0, lt=1, description="the focal length")
    diameter_m: float = Field(gt=0, lt=0.2, description="the outer diameter")
    clear_share: float = Field(
        default=0.9, gt=0, le=1, description="the clear diameter over the outer one"
    )
    length_m: float | None = Field(
        default=None, gt=0, lt=0.2, description="the length along the axis"
    )
    source: OneLine = Field(default="", description="where these facts are from")

    @property
    def least_f_number(self) -> float:
        """Focal length over the clear diameter."""
        return self.focal_length_m / (self.clear_share * self.diameter_m)


_Named = TypeVar("_Named", ImageSensor, StockLens)


@dataclass(frozen=True)
class Catalogue:
    """Sensors and lenses to choose from."""

    sensors: tuple[ImageSensor, ...]
    lenses: tuple[StockLens, ...]

    def sensor(self, name: str) -> ImageSensor:
        """Sensor of a name; an InputError with the names that there are if there is none."""
        return _found(name, self.sensors, "sensor")

    def lens(self, name: str) -> StockLens:
        """Lens of a name; an InputError with the names that there are if there is none."""
        return _found(name, self.lenses, "lens")


def load_catalogue(*paths: str | os.PathLike[str]) -> Catalogue:
    """Read the catalogue of the package, and further files whose entries add to it.

    An entry with the name of an earlier one replaces it.

    Raises
    ------
    DesignError
        Naming the file, and every entry and field that is wrong.
    """
    sensors: dict[str, ImageSensor] = {}
    lenses: dict[str, StockLens] = {}
    for path in (CATALOGUE_FILE, *map(Path, paths)):
        tables = _read(path)
        sensors |= {one.name: one for one in _entries(tables, "sensor", ImageSensor, path)}
        lenses |= {one.name: one for one in _entries(tables, "lens", StockLens, path)}
    return Catalogue(tuple(sensors.values()), tuple(lenses.values()))


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_BYTES:
            raise DesignError(f"is larger than {_LARGEST_BYTES} bytes.", path=path)
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DesignError(f"cannot be read: {error.strerror or error}.", path=path) from error
    except ValueError as error:
        if isinstance(error, DesignError):
            raise
        raise DesignError(f"is not valid TOML: {error}.", path=path) from error
    unknown = sorted(set(tables) - {"sensor", "lens"})
    if unknown:
        raise DesignError(
            f"{unknown[0]!r} is no table of a catalogue: write [[sensor]] or [[lens]].", path=path
        )
    return tables


def _entries(tables: dict[str, Any], kind: str, record: type[_Named], path: Path) -> list[_Named]:
    entries = tables.get(kind, [])
    if not isinstance(entries, list):
        raise DesignError(f"{kind} must be a list: write [[{kind}]].", path=path)
    found = []
    for number, one in enumerate(entries, start=1):
        try:
            found.append(record(**one))
        except DesignError as error:
            named = f"{kind} {number}: "
            raise DesignError(*(named + line for line in error.problems), path=path) from error
    return found


def _found(name: str, entries: Sequence[_Named], kind: str) -> _Named:
    for one in entries:
        if one.name.lower() == name.lower():
            return one
    names = [one.name for one in entries]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"Did you mean {close[0]}?" if close else f"Known are {', '.join(names)}."
    raise InputError(f"{kind}={name!r} is not in the catalogue. {hint}")


Array = NDArray[Any]
"""One value for each camera: numbers, indices or truths."""

NODES = 14
"""Depths at which errors are looked up over a reach."""
BEYOND = 8
"""Depths beyond the farthest, up to three times as far."""

_MOST_SHARED = 0.5  # of the width of a view that the largest disparity may take
_NEAREST_FOCAL_LENGTHS = 4.0
_LONGEST_BASELINE = 49.0  # of the sensor distance: the rule of `Optics`, and some


@dataclass(frozen=True)
class CameraCandidates:
    """Cameras; one value of each array is one camera."""

    sensor: Array  # index of the sensor
    lens: Array  # index of the lens; -1 for a lens of any kind
    focal_m: Array
    f_number: Array
    baseline_m: Array
    middle_dpt: Array  # mean vergence of both focus distances
    apart_dpt: Array  # left less right

    def __len__(self) -> int:
        return self.focal_m.size

    def take(self, places: Array) -> "CameraCandidates":
        """Cameras at some places."""
        return CameraCandidates(*(getattr(self, one.name)[places] for one in fields(self)))

    @classmethod
    def join(cls, parts: list["CameraCandidates"]) -> "CameraCandidates":
        """Cameras of all parts."""
        return cls(*(np.concatenate([getattr(p, one.name) for p in parts]) for one in fields(cls)))


@dataclass(frozen=True)
class Parts:
    """Sensors and lenses that candidates refer to by index."""

    sensors: tuple[ImageSensor, ...]
    lenses: tuple[StockLens, ...]

    def camera(self, candidates: CameraCandidates, place: int, name: str = "design") -> Camera:
        """Camera of the candidate at `place`."""
        sensor = self.sensors[int(candidates.sensor[place])]
        lens = self.lenses[int(candidates.lens[place])] if candidates.lens[place] >= 0 else None
        middle, apart = candidates.middle_dpt[place], candidates.apart_dpt[place]
        return Camera.of_lenses(
            focal_length_m=float(candidates.focal_m[place]),
            f_number=float(candidates.f_number[place]),
            baseline_m=float(candidates.baseline_m[place]),
            focus_m=(float(1 / (middle + apart / 2)), float(1 / (middle - apart / 2))),
            pixel_pitch_m=sensor.pixel_pitch_m,
            sensor_px=sensor.shape,
            lens_diameter_m=None if lens is None else lens.diameter_m,
            lens_length_m=None if lens is None else lens.length_m,
            name=name,
        )


@dataclass(frozen=True)
class Merits:
    """Figures of candidates; one value each."""

    is_possible: Array  # rules that no wish can relax: lenses fit, views overlap, blur known
    size_m: Array
    light_um2: Array
    field_rad: Array
    worst: Array  # largest error over its limit, over the reach, with its margin
    nearest_m: Array  # depths between which the error is within its limit, from either end
    farthest_m: Array

    def take(self, places: Array) -> "Merits":
        """Figures at some places."""
        return Merits(*(getattr(self, one.name)[places] for one in fields(self)))

    @classmethod
    def join(cls, parts: list["Merits"]) -> "Merits":
        """Figures of all parts."""
        return cls(*(np.concatenate([getattr(p, one.name) for p in parts]) for one in fields(cls)))


@dataclass(frozen=True, kw_only=True)
class MeritFunction:
    """Conditions under which candidates are judged."""

    parts: Parts
    table: ErrorTable
    light: Lighting
    limit: ErrorLimit
    reach_m: tuple[float, float]
    contrast: float = 1.0  # of the texture, over that of the table
    calibration_px: float = 0.0  # disparity that a calibration leaves
    sigmas: float = 0.0  # standard deviations of the scatter of predictions that errors include

    def merits(self, candidates: CameraCandidates) -> Merits:
        """Figures of the candidates."""
        pitch, rows, cols = (
            np.array([getattr(one, name) for one in self.parts.sensors])[candidates.sensor]
            for name in ("pixel_pitch_m", "rows_px", "cols_px")
        )
        opening = candidates.focal_m / candidates.f_number
        diameter, length, clear = self._lenses(candidates, opening)
        sensor_m = 1 / (1 / candidates.focal_m - candidates.middle_dpt)
        width = cols * pitch
        is_single = candidates.baseline_m < width
        half = 0.5 * cols
        shared = half - np.abs(candidates.baseline_m / pitch - half)
        view = np.where(is_single, shared, cols)
        span = np.where(is_single, width, candidates.baseline_m + width)
        box = (
            np.maximum(candidates.baseline_m + diameter, span),
            np.maximum(diameter, rows * pitch),
            sensor_m + length,
        )
        worst, nearest, farthest, blur_ok = self._errors(candidates, pitch, sensor_m)
        disparity = sensor_m / pitch * candidates.baseline_m / self.reach_m[0]
        is_possible = (
            (diameter <= candidates.baseline_m)
            & (candidates.baseline_m <= _LONGEST_BASELINE * sensor_m)
            & (opening <= clear * diameter * (1 + 1e-9))
            & (~is_single | (shared >= 0.5 * half))
            & (disparity <= _MOST_SHARED * view)
            & (candidates.middle_dpt - np.abs(candidates.apart_dpt) / 2 > 0)
            & (candidates.middle_dpt * candidates.focal_m * _NEAREST_FOCAL_LENGTHS < 1)
            & blur_ok
        )
        return Merits(
            is_possible=is_possible,
            size_m=np.maximum.reduce(box),
            light_um2=np.square(1e6 * pitch / candidates.f_number),
            field_rad=2 * np.arctan(0.5 * np.maximum(view, 0) * pitch / sensor_m),
            worst=worst,
            nearest_m=nearest,
            farthest_m=farthest,
        )

    def _lenses(self, candidates: CameraCandidates, opening: Array) -> tuple[Array, Array, Array]:
        """Diameter, length and clear share of the lenses."""
        free = opening / CLEAR_SHARE
        if not self.parts.lenses:
            return free, THICKNESS_SHARE * free, np.full(free.shape, CLEAR_SHARE)
        lenses = self.parts.lenses
        diameter = np.array([one.diameter_m for one in lenses])[candidates.lens]
        clear = np.array([one.clear_share for one in lenses])[candidates.lens]
        known = np.array([one.length_m or np.nan for one in lenses])[candidates.lens]
        return diameter, np.where(np.isnan(known), THICKNESS_SHARE * diameter, known), clear

    @property
    def depths_m(self) -> Array:
        """Depths at which errors are looked up: over the reach, then beyond it."""
        near, far = self.reach_m
        within = 1 / np.linspace(1 / near, 1 / far, NODES)
        return np.concatenate([within, far * np.linspace(1, 3, BEYOND + 1)[1:]])

    def _errors(
        self, candidates: CameraCandidates, pitch: Array, sensor_m: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Largest error over its limit; nearest and farthest depth within it; whether known."""
        depths = self.depths_m
        column = (slice(None), np.newaxis)
        aperture = 0.5 * candidates.focal_m / candidates.f_number
        per_dpt = sensor_m * aperture / pitch
        defocus = 1 / depths - candidates.middle_dpt[column]
        half_apart = (0.5 * per_dpt * candidates.apart_dpt)[column]
        radii = (per_dpt[column] * defocus - half_apart, per_dpt[column] * defocus + half_apart)
        cutoff = 2 * aperture * pitch / (WAVELENGTH_M * sensor_m)
        disparity_dpt = sensor_m / pitch * candidates.baseline_m
        # alpha over the disparity per dioptre, as `table.defocus_slope_px`.
        slope = 0.25 * per_dpt**2 * np.abs(candidates.apart_dpt) / disparity_dpt
        errors = self.table.at(radii, cutoff[column], slope[column], self.contrast)
        noise = self.light.noise_sigma(candidates.f_number, pitch)[column]
        model = error_model()
        per_px = depths**2 / disparity_dpt[column]
        sigma_m = model.sigma_px(errors, noise) * per_px
        margin = np.exp(self.sigmas * model.scatter_of(errors))
        # What remains without noise is alike over a frame, and may add to the calibration's.
        left_px = self.calibration_px + model.floor_px
        error_m = np.hypot(margin * MAE_PER_SIGMA * sigma_m, left_px * per_px)
        over = error_m / self.limit.limit_m(depths)
        disparity = disparity_dpt[column] / depths
        over[model.density(errors, noise, disparity) < LEAST_DENSITY] = 1e3
        widest = np.maximum(np.abs(radii[0]), np.abs(radii[1]))
        over[2 * widest > WIDEST_BLUR_PX] = 1e3
        is_known = np.abs(2 * half_apart[:, 0]) <= LARGEST_DIFFERENCE_PX
        is_known &= widest[:, :NODES].max(axis=1) <= LARGEST_RADIUS_PX
        return (over[:, :NODES].max(axis=1), *self._reach(over), is_known)

    def _reach(self, over: Array) -> tuple[Array, Array]:
        """Nearest depth from the far end of the reach, and farthest from its near end."""
        depths = self.depths_m
        is_good = over <= 1
        ahead = np.cumprod(is_good, axis=1).sum(axis=1)
        behind = np.cumprod(is_good[:, NODES - 1 :: -1], axis=1).sum(axis=1)
        farthest = np.where(ahead > 0, depths[np.maximum(ahead - 1, 0)], 1e-3 * depths[0])
        nearest = np.where(
            behind > 0, depths[NODES - np.maximum(behind, 1)], 1e3 * depths[NODES - 1]
        )
        return nearest, farthest
