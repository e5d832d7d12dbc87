"""Catalogue of real sensors and stock lenses: facts with their source, from TOML files."""

import difflib
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from d3s.errors import DesignError, InputError, RecordError
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
