"""Options that several commands share: values with units, colour sensors, groups of options.

Lengths, shapes and ranges on the command line are parsed to SI units. A group is a named tuple of
options, which a command has as one parameter.
"""

import functools
import inspect
import math
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer

_METRES = {"": 1.0, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "µm": 1e-6, "nm": 1e-9}
# Divide by whole numbers, which rounds once: 300 / 1000 is 0.3, and 300 * 0.001 is not.
_PER_METRE = {unit: round(1 / metres) for unit, metres in _METRES.items()}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LENGTH = re.compile(rf"\s*({_NUMBER})\s*([a-zµ]*)\s*", re.ASCII)
_SHAPE = re.compile(r"\s*(\d{1,9})\s*[x×]\s*(\d{1,9})\s*", re.ASCII)
_FARTHEST_M = 100.0  # beyond what most cameras can measure
_INFINITE = "inf", "infinity", "∞"
_LENGTH_FORMS = "Write metres, or a number with its unit: 1.0, 0.3m, 300mm, 25cm"


def length_m(text: str) -> float:
    """Length in metres, from 1.0, 0.3m, 300mm, "12.1 mm" or 25cm."""
    found = _LENGTH.fullmatch(text)
    if found is None or found[2] not in _PER_METRE:
        raise typer.BadParameter(f"{text!r} is not a length. {_LENGTH_FORMS}.")
    metres = float(found[1]) / _PER_METRE[found[2]]
    if not math.isfinite(metres):
        raise typer.BadParameter(f"{text!r} is too large for a length. {_LENGTH_FORMS}.")
    return metres


def shape_px(text: str) -> tuple[int, int]:
    """Rows and columns, from 902x1802."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a shape. Write ROWSxCOLS, such as 902x1802.")
    return int(found[1]), int(found[2])


def depth_range_m(text: str) -> tuple[float, float]:
    """Nearest and farthest depth in metres, from 0.25:2.5, 25cm:2.5m or 1.8:inf."""
    nearest, sign, farthest = text.partition(":")
    if not sign:
        raise typer.BadParameter(
            f"{text!r} is not a range of depths. Write NEAREST:FARTHEST, such as 0.25:2.5, "
            "25cm:2.5m or 1.8:inf."
        )
    is_open = farthest.strip().lower() in _INFINITE
    range_m = length_m(nearest), math.inf if is_open else length_m(farthest)
    if range_m[0] > _FARTHEST_M and not has_unit(nearest):
        raise typer.BadParameter(
            f"{text!r} begins {range_m[0]:g} m away. A bare number is metres; say the unit, such "
            "as 300mm:2000mm or 300m:2000m."
        )
    return range_m


def series_m(text: str, others: str, *, inverse: bool = False) -> tuple[float, ...]:
    """Even lengths in metres, from START:STOP:COUNT; `others` is what else can be given.

    If `inverse`, they are even in 1/length.
    """
    from d3s.lab.twin.sequence import even_distances_m

    first, *rest = text.split(":")
    if len(rest) != 2 or not rest[1].strip().isdecimal():
        raise typer.BadParameter(
            f"{text!r} is no series. Write START:STOP:COUNT, such as 0.25:2.0:25 or 25cm:2m:25, or "
            f"{others}."
        )
    ends_m = length_m(first), length_m(rest[0])
    return even_distances_m(*ends_m, int(rest[1]), inverse=inverse)


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between; none if one of them is no number."""
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError:
        return ()


def has_unit(text: str) -> bool:
    """Whether a length, such as 193mm, names its unit."""
    found = _LENGTH.fullmatch(text)
    return found is not None and bool(found[2])


def disparity_range_px(text: str) -> tuple[float, float]:
    """Smallest and largest disparity in pixels, from 0:70."""
    smallest, sign, largest = text.partition(":")
    try:
        range_px = float(smallest), float(largest)
    except ValueError:
        range_px = math.nan, math.nan
    if not sign or not all(map(math.isfinite, range_px)):
        raise typer.BadParameter(
            f"{text!r} is not a range of disparities. Write SMALLEST:LARGEST in pixels, such as "
            "0:70."
        )
    return range_px


class BayerName(StrEnum):
    """Values of --bayer where frames are read."""

    RGGB = "RGGB"
    BGGR = "BGGR"
    GRBG = "GRBG"
    GBRG = "GBRG"
    NONE = "none"


class Encoding(StrEnum):
    """Values of --encoding."""

    SRGB = "srgb"
    LINEAR = "linear"


Bayer = Annotated[
    BayerName | None,
    typer.Option(
        "--bayer",
        case_sensitive=False,
        help="Raw frames of a colour sensor: the colours of its first 2 x 2 pixels, as in its data "
        "sheet; none for a mono sensor that is taken for one.",
        show_default=False,
    ),
]
FileEncoding = Annotated[
    Encoding | None,
    typer.Option(
        "--encoding",
        help="How files store light: linear, or srgb as photographs. If left, grey files are "
        "linear and colour files srgb; floats are linear.",
        show_default=False,
    ),
]


def is_linear(encoding: Encoding | None) -> bool | None:
    """Whether integers in files are linear; None if that is not said."""
    return None if encoding is None else encoding == Encoding.LINEAR


def order_of(bayer: BayerName | None) -> str | None:
    """Order of the colours for the library."""
    return None if bayer is None else bayer.value


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Command whose parameters that are named tuples become one option for each of their fields.

    A field is an option as typer has it, an annotated type with a default:
    ``class Address(NamedTuple): port: Port = 0``.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for one in inspect.signature(command).parameters.values():
        kind = one.annotation
        if not (isinstance(kind, type) and issubclass(kind, tuple)):
            parameters.append(one)
            continue
        groups[one.name] = kind
        types = get_type_hints(kind, include_extras=True)
        defaults = kind._field_defaults  # type: ignore[attr-defined]
        parameters += [
            one.replace(name=name, default=defaults[name], annotation=types[name]) for name in types
        ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(*(values.pop(field) for field in kind._fields))
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
