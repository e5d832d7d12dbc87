"""Values with units on the command line, and the types of options that have them."""

import math
import re
from typing import Annotated, Any

import typer

# Divide by whole numbers, which rounds once: 300 / 1000 is 0.3, and 300 * 0.001 is not.
_PREFIXES = {"": 1, "c": 100, "m": 1000, "u": 1_000_000, "µ": 1_000_000, "n": 1_000_000_000}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zµ]*)\s*", re.ASCII)
_SHAPE = re.compile(r"\s*(\d{1,9})\s*[x×]\s*(\d{1,9})\s*", re.ASCII)
_FARTHEST_M = 100.0  # beyond what most cameras can measure
_INFINITE = "inf", "infinity", "∞"
_LENGTHS = "Write metres, or a number with its unit: 1.0, 0.3m, 300mm, 25cm"
_TIMES = "Write seconds, or a number with its unit: 0.01, 10ms, 500us"


def length_m(text: str) -> float:
    """Length in metres, from 1.0, 0.3m, 300mm, "12.1 mm" or 25cm."""
    return _quantity(text, "m", f"length. {_LENGTHS}")


def time_s(text: str) -> float:
    """Time in seconds, from 0.01, 10ms or 500us."""
    return _quantity(text, "s", f"time. {_TIMES}")


def _quantity(text: str, unit: str, what: str) -> float:
    found = _NUMBER.fullmatch(text)
    per_unit = {"": 1, **{prefix + unit: number for prefix, number in _PREFIXES.items()}}
    if found is None or found[2] not in per_unit:
        raise typer.BadParameter(f"{text!r} is not a {what}.")
    value = float(found[1]) / per_unit[found[2]]
    if not math.isfinite(value):
        raise typer.BadParameter(f"{text!r} is too large for a {what}.")
    return value


def has_unit(text: str) -> bool:
    """Whether a length, such as 193mm, names its unit."""
    found = _NUMBER.fullmatch(text)
    return found is not None and bool(found[2])


def unit_m(text: str) -> float:
    """Unit of lengths in metres, from mm or 0.1mm; a number without a unit is in metres."""
    return length_m(text if any(sign.isdigit() for sign in text) else f"1{text}")


def focal_length_px(text: str) -> float:
    """Focal length in pixels, from 6050px; a length is another quantity."""
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] != "px":
        raise typer.BadParameter(
            f"{text!r} is not in pixels. Write the focal length over the pixel pitch: 6050px."
        )
    return float(found[1])


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
    range_m = length_m(nearest), _maybe_infinite_m(farthest)
    if range_m[0] > _FARTHEST_M and not has_unit(nearest):
        raise typer.BadParameter(
            f"{text!r} begins {range_m[0]:g} m away. A bare number is metres; say the unit, such "
            "as 300mm:2000mm or 300m:2000m."
        )
    return range_m


def _maybe_infinite_m(text: str) -> float:
    return math.inf if text.strip().lower() in _INFINITE else length_m(text)


def focus_m(text: str) -> tuple[float, float]:
    """Two distances in metres, from 0.81:0.88 or 1:inf."""
    left, sign, right = text.partition(":")
    if not sign:
        raise typer.BadParameter(
            f"{text!r} is no pair of distances. Write LEFT:RIGHT, such as 0.81:0.88 or 1:inf."
        )
    return _maybe_infinite_m(left), _maybe_infinite_m(right)


def distances_m(text: str, *, inverse: bool = False) -> tuple[float, ...]:
    """Distances in metres, from 0.5,1m or START:STOP:COUNT: even, or in 1/distance if `inverse`."""
    from d3s.lab.twin.sequence import even_distances_m

    if ":" not in text:
        return tuple(length_m(one) for one in text.split(","))
    first, *rest = text.split(":")
    if len(rest) != 2 or not rest[1].strip().isdecimal():
        raise typer.BadParameter(
            f"{text!r} is no series. Write START:STOP:COUNT, such as 0.25:2.0:25 or 25cm:2m:25, or "
            "distances with commas between, such as 0.5,1.0."
        )
    return even_distances_m(length_m(first), length_m(rest[0]), int(rest[1]), inverse=inverse)


def disparity_range_px(text: str) -> tuple[float, float]:
    """Smallest and largest disparity in pixels, from 0:70."""
    try:
        smallest, largest = map(float, text.split(":"))
    except ValueError:
        smallest, largest = math.nan, math.nan
    if not (math.isfinite(smallest) and math.isfinite(largest)):
        raise typer.BadParameter(
            f"{text!r} is not a range of disparities. Write SMALLEST:LARGEST in pixels, such as "
            "0:70."
        )
    return smallest, largest


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between."""
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be numbers with commas between: 0.6,1,0.7.") from (
            None
        )


def degrees(text: str) -> float:
    """Angle in radians, from degrees."""
    try:
        return math.radians(float(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be a number of degrees.") from None


def names(text: str) -> tuple[str, ...]:
    """Names with commas between."""
    return tuple(name.strip() for name in text.split(","))


# Types --------------------------------------------------------------------------------------------

Length = Annotated[Any, typer.Option(parser=length_m, metavar="LENGTH")]
Unit = Annotated[Any, typer.Option(parser=unit_m, metavar="LENGTH")]
Time = Annotated[Any, typer.Option(parser=time_s, metavar="TIME")]
Pixels = Annotated[Any, typer.Option(parser=focal_length_px, metavar="PIXELS")]
Shape = Annotated[Any, typer.Option(parser=shape_px, metavar="ROWSxCOLS")]
Range = Annotated[Any, typer.Option(parser=depth_range_m, metavar="NEAREST:FARTHEST")]
Disparities = Annotated[Any, typer.Option(parser=disparity_range_px, metavar="SMALLEST:LARGEST")]
Pair = Annotated[Any, typer.Option(parser=focus_m, metavar="LEFT:RIGHT")]
Distances = Annotated[Any, typer.Option(parser=distances_m, metavar="DISTANCES")]
Degrees = Annotated[Any, typer.Option(parser=degrees, metavar="DEGREES")]
Numbers = Annotated[Any, typer.Option(parser=numbers, metavar="NUMBER,NUMBER...")]
Names = Annotated[Any, typer.Option(parser=names, metavar="NAME,NAME...")]
Count = Annotated[int | None, typer.Option(min=1, metavar="COUNT")]
