"""Options: values with units, the table of options that commands share, options of records.

A command is a function. A parameter that is a named tuple of this table becomes an option for each
of its fields; one that is `Annotated[Given, Fields("d3s.module.Record")]` an option for each field
of the record, with its name, unit, help and default, and gets those that are given.
"""

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

# Values with units --------------------------------------------------------------------------------

# Divide by whole numbers, which rounds once: 300 / 1000 is 0.3, and 300 * 0.001 is not.
_PER_METRE = {"m": 1, "cm": 100, "mm": 10**3, "um": 10**6, "µm": 10**6, "nm": 10**9}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "µs": 10**6}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zµ]*)\s*", re.ASCII)
_SHAPE = re.compile(r"\s*(\d{1,9})\s*[x×]\s*(\d{1,9})\s*", re.ASCII)
_FARTHEST_M = 100.0  # beyond what most cameras can measure
_INFINITE = "inf", "infinity", "∞"
_LENGTHS = "Write metres, or a number with its unit: 1.0, 0.3m, 300mm, 25cm"
_TIMES = "Write seconds, or a number with its unit: 0.01, 10ms, 500us"


def length_m(text: str) -> float:
    """Length in metres, from 1.0, 0.3m, 300mm, "12.1 mm" or 25cm."""
    return _quantity(text, {"": 1, **_PER_METRE}, f"length. {_LENGTHS}")


def _time_s(text: str) -> float:
    return _quantity(text, {"": 1, **_PER_SECOND}, f"time. {_TIMES}")


def _quantity(text: str, units: Mapping[str, int], what: str) -> float:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in units:
        raise typer.BadParameter(f"{text!r} is not a {what}.")
    value = float(found[1]) / units[found[2]]
    if not math.isfinite(value):
        raise typer.BadParameter(f"{text!r} is too large for a {what}.")
    return value


def has_unit(text: str) -> bool:
    """Whether a length, such as 193mm, names its unit."""
    found = _NUMBER.fullmatch(text)
    return found is not None and found[2] in _PER_METRE


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


def _shape_px(text: str) -> tuple[int, int]:
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a shape. Write ROWSxCOLS, such as 902x1802.")
    return int(found[1]), int(found[2])


def _depth_range_m(text: str) -> tuple[float, float]:
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


def _focus_m(text: str) -> tuple[float, float]:
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


def _disparity_range_px(text: str) -> tuple[float, float]:
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
    try:
        return tuple(float(one) for one in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be numbers with commas between: 0.6,1,0.7.") from (
            None
        )


def _degrees(text: str) -> float:
    try:
        return math.radians(float(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} must be a number of degrees.") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


# Options of records -------------------------------------------------------------------------------

Given = dict[str, Any]
"""Fields of a record that were given, by name."""

# Parser and form of a field, by the end of its name: the first that matches.
_FORMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "shape": (_shape_px, "ROWSxCOLS"),
    "depth_range_m": (_depth_range_m, "NEAREST:FARTHEST"),
    "reach_m": (_depth_range_m, "NEAREST:FARTHEST"),
    "focus_m": (_focus_m, "LEFT:RIGHT"),
    "depths_m": (distances_m, "DISTANCES"),
    "patterns": (_names, "NAME,NAME..."),
    "channel_shares": (numbers, "R,G,B"),
    "_per_m": (float, "PER_METRE"),
    "_m": (length_m, "LENGTH"),
    "_s": (_time_s, "TIME"),
    "_rad": (_degrees, "DEGREES"),
    "_e": (float, "ELECTRONS"),
    "_lx": (float, "LUX"),
}
_UNIT = re.compile("_(per_m|m|s|rad|e|lx)$")
_IN_UNIT = re.compile(", in (radians|seconds|electrons|lux|metres)")


class Fields(NamedTuple):
    """Options of the fields of a record, which is named so that help pages load only their own."""

    record: str
    panel: str | None = None
    leave: tuple[str, ...] = ()  # fields that are no options
    names: Mapping[str, str] = {}  # options that are not called as their field

    def options(self) -> dict[str, tuple[str, Any]]:
        """Field and annotation of each option, by the name of its parameter."""
        fields: dict[str, FieldInfo] = resolve_name(self.record).model_fields
        return {
            self.flag_of(name)[2:].replace("-", "_"): (name, self._option(name, field))
            for name, field in fields.items()
            if name not in self.leave
        }

    def flag_of(self, name: str) -> str:
        """Option of a field on the command line."""
        return "--" + self.names.get(name, _UNIT.sub("", name)).replace("_", "-")

    def _option(self, name: str, field: "FieldInfo") -> Any:
        kind, form = _kind_of(name, field)
        words = _IN_UNIT.sub("", field.description or "")
        default = field.get_default()
        if not ("left" in words or "default" in words or default in (None, 0, (), "")):
            words += _if_left(default, form)
        more: dict[str, Any] = {"case_sensitive": False} if get_origin(kind) is Literal else {}
        if kind is None:
            more["metavar"] = form
            more["parser"] = _FORMS[next(end for end in _FORMS if name.endswith(end))][0]
        return Annotated[
            Any if kind is None else kind | None,
            typer.Option(
                self.flag_of(name),
                help=f"{words[:1].upper()}{words[1:]}.",
                rich_help_panel=self.panel,
                show_default=False,
                **more,
            ),
        ]


def _if_left(default: Any, form: str) -> str:
    """Words on a default that can be told in a word."""
    if isinstance(default, str):
        return f"; {default} if left"
    if not isinstance(default, int | float):
        return ""
    value = math.degrees(default) if form == "DEGREES" else default
    unit = {"LENGTH": " m", "TIME": " s"}.get(form, "")
    if form == "LENGTH" and value * _PER_METRE["mm"] < 1:
        value, unit = value * _PER_METRE["nm"], " nm"
    return f"; {value:g}{unit} if left"


def _kind_of(name: str, field: "FieldInfo") -> tuple[Any, str]:
    """Type of the value of an option; None, and its form, if it has a parser."""
    from d3s.record import plain_type

    for end, (_, form) in _FORMS.items():
        if name.endswith(end):
            return None, form
    kind = plain_type(field.annotation)
    kinds = [kind, *(one for one in get_args(kind) if one is not type(None))]
    choices = [one for one in kinds if get_origin(one) is Literal or one in (int, float, bool)]
    return (choices[0] if choices else str), ""


# Options that commands share ----------------------------------------------------------------------


def described(words: str, *flags: str, **more: Any) -> Any:
    """Option whose default is told by its words; `flags` name it otherwise than its parameter."""
    return typer.Option(*flags, help=words, show_default=False, **more)


def parsed(words: str, parser: Callable[[str], Any], form: str, *flags: str) -> Any:
    """Option whose text is parsed; `form` is what the help shows for the value."""
    return described(words, *flags, parser=parser, metavar=form)


RIG_FORM = "FILE|paper"
RigWord = Annotated[
    str | None,
    described(
        "Rig file of the camera, a calibration file that d3s rig import reads, or paper: the "
        "paper's prototype as designed.",
        "--rig",
        metavar=RIG_FORM,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace earlier results.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON, and no table.")]
Quick = Annotated[bool, typer.Option("--quick", help="Less of all, for a first look.")]
Raw = Annotated[bool, typer.Option("--raw", help="Each file is a raw frame of a calibrated rig.")]
SideBySide = Annotated[
    bool,
    typer.Option("--side-by-side", help="Each image has both views, left and right half."),
]
Shape = Annotated[Any, parsed("Size of each picture, such as 902x1802.", _shape_px, "ROWSxCOLS")]
DepthRange = Annotated[
    Any,
    parsed("Nearest and farthest depth: 0.25:2.5, 1.8:inf.", _depth_range_m, "NEAREST:FARTHEST"),
]
Seed = Annotated[int | None, described("Seed of all that is random; 0 if left.")]
Seconds = Annotated[float | None, described("End after so many seconds; Ctrl-C if left.", min=0)]
FrameCount = Annotated[int | None, described("End after so many frames.", "--frames", min=1)]
LensErrors = Annotated[
    Literal["perfect", "typical"],
    typer.Option("--lens", help="Errors of the lenses; typical ones are calibrated."),
]
HalfOfLeft = Annotated[
    Literal["left", "right"],
    typer.Option("--left-lens", help="Half of the upright frame that the left lens lights."),
]
Photos = Annotated[
    str | None,
    described("Folder of photos as textures, in place of patterns.", metavar="FOLDER"),
]
Methods = Annotated[
    list[str] | None,
    described(
        "Method to try, with options if you like: consensus:min_confidence=0.8. Repeatable, or "
        "with commas between: joint,bm.",
        "--method",
        "-m",
        metavar="NAME[:FIELD=VALUE...]",
    ),
]
Page = Annotated[
    Path | None,
    described("Report to write, one page of HTML.", "--report"),
]


class Light(NamedTuple):
    """How files of frames store light."""

    bayer: Annotated[
        Literal["RGGB", "BGGR", "GRBG", "GBRG", "none"] | None,
        described(
            "Raw frames of a colour sensor: the colours of its first 2 x 2 pixels, as in its data "
            "sheet; none for a mono sensor that is taken for one.",
            case_sensitive=False,
        ),
    ] = None
    encoding: Annotated[
        Literal["srgb", "linear"] | None,
        described(
            "How files store light: linear, or srgb as photographs. If left, grey files are linear "
            "and colour files srgb; floats are linear."
        ),
    ] = None

    @property
    def linear(self) -> bool | None:
        """Whether integers in files are linear; None if that is not said."""
        return None if self.encoding is None else self.encoding == "linear"


class Grab(NamedTuple):
    """What cameras are set to."""

    rate: Annotated[float | None, described("Frames a second.", metavar="HZ")] = None
    exposure: Annotated[Any, parsed("Exposure time: 0.01, 10ms.", _time_s, "TIME")] = None
    gain: Annotated[float | None, described("Gain, in the unit of the camera: mostly dB.")] = None


class Estimate(NamedTuple):
    """The method and its options."""

    method: Annotated[
        str, typer.Option("--method", "-m", help="joint, consensus, sgbm, or another of compare.")
    ] = "joint"
    option: Annotated[
        list[str] | None,
        described(
            "Option of the method, such as min_confidence=0.6. Repeatable.", metavar="FIELD=VALUE"
        ),
    ] = None
    depth_range: DepthRange = None
    disparity_range: Annotated[
        Any,
        parsed(
            "Or disparities to look for, in pixels, such as 0:70.",
            _disparity_range_px,
            "SMALLEST:LARGEST",
        ),
    ] = None


class Kept(NamedTuple):
    """Which depths are kept."""

    min_confidence: Annotated[
        float | None, described("Keep depths that are as confident, 0 to 1.")
    ] = None
    max_sigma: Annotated[
        Any, parsed("Keep depths that are as certain, such as 5mm.", length_m, "LENGTH")
    ] = None


Workers = Annotated[
    int | None,
    described(
        "Processes to share the work among, each with one thread; one for each core if left and "
        "the work is long.",
        metavar="COUNT",
    ),
]
Scheduler = Annotated[
    str | None,
    described(
        "Or the scheduler of a Dask cluster to do the work, such as tcp://10.0.0.1:8786.",
        metavar="ADDRESS",
    ),
]


class Place(NamedTuple):
    """Where work is done."""

    workers: Workers = None
    scheduler: Scheduler = None


class Address(NamedTuple):
    """Where pages are served."""

    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at. Any other than this lets other machines watch and control "
            "the camera, if they have the printed address, over a connection that is not encrypted."
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any that is free.")
    ] = 0
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True


class Telling(NamedTuple):
    """What is printed, and whether files are replaced."""

    force: Force = False
    quiet: Quiet = False
    as_json: Json = False

    @property
    def is_silent(self) -> bool:
        """Whether no progress is shown."""
        return self.quiet or self.as_json


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Command whose groups and records are one option for each of their fields."""
    parts: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {}  # fields by parameter
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for one in inspect.signature(command).parameters.values():
        kind = hints[one.name]
        record = next(iter(getattr(kind, "__metadata__", ())), None)
        options = {one.name: (kind, one.default)}
        if isinstance(record, Fields):
            known = record.options()
            parts[one.name] = _given, {name: field for name, (field, _) in known.items()}
            options = {name: (annotation, None) for name, (_, annotation) in known.items()}
        elif isinstance(kind, type) and issubclass(kind, tuple):
            types, group = get_type_hints(kind, include_extras=True), cast("Any", kind)
            parts[one.name] = group, {name: name for name in group._fields}
            options = {name: (types[name], group._field_defaults[name]) for name in group._fields}
        parameters += [
            inspect.Parameter(name, one.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, (make, fields) in parts.items():
            values[name] = make(**{field: values.pop(option) for option, field in fields.items()})
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _given(**values: Any) -> Given:
    return without_none(values)


def without_none(values: Given) -> Given:
    """Values that are given."""
    return {name: value for name, value in values.items() if value is not None}
