"""Options of commands: a small layer over typer, and the table of options that commands share.

A command is a function with plain types. Parameters before the star are arguments, the others are
options. One that is a named tuple is an option for each of its fields; one that is
`Annotated[Given, FieldOptions(...)]` for each field of a record, with its name, unit, help and
default: the command gets those that are given. Lines on options are those of the docstring, below
"Options:", or of the table `SHARED`: a name, the form of its value, and the help.
"""

import copy
import functools
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping
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

from d3s.cli import values
from d3s.cli.values import Disparities, Range, Time

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

SHARED = """
as_json: Print the numbers as JSON, and no table.
baseline (LENGTH): And its baseline, such as 193mm.
bayer: Raw frames of a colour sensor: the colours of its first 2 x 2 pixels, as in its data sheet;
    none for a mono sensor that is taken for one.
browser: Open the page in the browser.
depth_range: Nearest and farthest depth, such as 0.25:2.5 or 1.8:inf.
disparity_offset_px: And x_left - x_right of a point at infinity; 0 if left.
disparity_range: Or disparities to look for, in pixels, such as 0:70.
encoding: How files store light: linear, or srgb as photographs. If left, grey files are linear and
    colour files srgb; floats are linear.
exposure: Exposure time: 0.01, 10ms.
focal_length: Any rectified pair, without a rig file: its focal length in pixels, such as 6050px.
force: Replace earlier results.
frames: End after so many frames.
gain: Gain, in the unit of the camera: mostly dB.
host: Address to listen at. Any other than this lets other machines watch and control the camera, if
    they have the printed address, over a connection that is not encrypted.
left_lens: Half of the upright frame that the left lens lights.
lens: Errors of the lenses; typical ones are calibrated.
max_sigma: Keep depths that are as certain, such as 5mm.
method (NAME[:FIELD=VALUE...]): Method to try, with options if you like:
    consensus:min_confidence=0.8. Repeatable, or with commas between: joint,bm.
min_confidence: Keep depths that are as confident, 0 to 1.
option (FIELD=VALUE): Option of the method, such as min_confidence=0.6. Repeatable.
output: Folder for the results.
photos (FOLDER): Folder of photos as textures, in place of patterns.
port: Port to listen at; 0 for any that is free.
quick: Less of all, for a first look.
quiet: Print nothing.
rate (HZ): Frames a second.
raw: Each file is a raw frame of a calibrated rig.
report: Report to write, one page of HTML.
rig (FILE|paper): Rig file of the camera, a calibration file that d3s rig import reads, or paper:
    the paper's prototype as designed.
recording (FILE): A recording (.mcap).
scheduler (ADDRESS): Or the scheduler of a Dask cluster to do the work, such as
    tcp://10.0.0.1:8786.
seconds: End after so many seconds; Ctrl-C if left.
seed: Seed of all that is random; 0 if left.
shape: Size of each picture, such as 902x1802.
side_by_side: Each image has both views, left and right half.
source (SOURCE): A file or folder of images, a video, a recording (.mcap), uvc:0, basler, genicam,
    either with :SERIAL, twin, twin:ROWSxCOLS, or twin:raw.
workers (COUNT): Processes to share the work among, each with one thread; one for each core if
    left and the work is long.
"""

# Options that are not called as their parameter.
_FLAGS = {
    "output": ("--output", "-o"),
    "method": ("--method", "-m"),
    "as_json": ("--json",),
    "formats": ("--format",),
    "list_items": ("--list",),
}


class Light(NamedTuple):
    """How files of frames store light."""

    bayer: Literal["RGGB", "BGGR", "GRBG", "GBRG", "none"] | None = None
    encoding: Literal["srgb", "linear"] | None = None

    @property
    def linear(self) -> bool | None:
        """Whether integers in files are linear; None if that is not said."""
        return None if self.encoding is None else self.encoding == "linear"


class Grab(NamedTuple):
    """Exposure, gain and rate of a camera."""

    rate: float | None = None
    exposure: Time = None
    gain: float | None = None


class Estimate(NamedTuple):
    """The method and its options."""

    method: str = "joint"
    option: list[str] | None = None
    depth_range: Range = None
    disparity_range: Disparities = None


class Address(NamedTuple):
    """Where pages are served."""

    host: str = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0
    browser: bool = True


class Telling(NamedTuple):
    """Amount of printing, and whether files are replaced."""

    force: bool = False
    quiet: bool = False
    as_json: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether no progress is shown."""
        return self.quiet or self.as_json


# Options of records -------------------------------------------------------------------------------

Given = dict[str, Any]
"""FieldOptions of a record that were given, by name."""

# Type of an option of a field, by the end of its name: the first that matches.
_TYPES: dict[str, Any] = {
    "shape": values.Shape,
    "depth_range_m": values.Range,
    "reach_m": values.Range,
    "focus_m": values.Pair,
    "depths_m": values.Distances,
    "patterns": values.Names,
    "channel_shares": values.Numbers,
    "_per_m": float,
    "_m": values.Length,
    "_s": values.Time,
    "_rad": values.Degrees,
}
_UNIT = re.compile("_(per_m|m|s|rad|e|lx)$")
_IN_UNIT = re.compile(", in (radians|seconds|metres)")


class FieldOptions(NamedTuple):
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
        words = _IN_UNIT.sub("", field.description or "")
        default = field.get_default()
        kind = _type_of(name, field)
        if not ("left" in words or "default" in words or default in (None, 0, (), "")):
            words += _if_left(default, kind)
        words = f"{words[:1].upper()}{words[1:]}."
        return _described(kind | None, None, (self.flag_of(name),), "", words, self.panel)


def _type_of(name: str, field: "FieldInfo") -> Any:
    from d3s.record import plain_type

    found = next((kind for end, kind in _TYPES.items() if name.endswith(end)), None)
    kind = plain_type(field.annotation)
    kinds = [found, kind, *(one for one in get_args(kind) if one is not type(None))]
    choices = [one for one in kinds if get_origin(one) is Literal or one in (int, float, bool)]
    return found or (choices[0] if choices else str)


def _if_left(default: Any, kind: Any) -> str:
    """Words on a default that can be told in a word."""
    if isinstance(default, str):
        return f"; {default} if left"
    if not isinstance(default, int | float):
        return ""
    unit = {values.Length: " m", values.Time: " s"}.get(kind, "")
    if kind is values.Degrees:
        default = math.degrees(default)
    elif unit == " m" and default < 1e-3:
        default, unit = 1e9 * default, " nm"
    return f"; {default:g}{unit} if left"


# The layer over typer -----------------------------------------------------------------------------

_ENTRY = re.compile(r"^(\w+)(?: \((.+?)\))?: (.*(?:\n .*)*)", re.MULTILINE)
_HEADING = "\n\nOptions:\n"


def help_of(command: Callable[..., Any]) -> str:
    """Help text of a command, without its options."""
    text = (inspect.getdoc(command) or "").partition(_HEADING)[0]
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Command as typer reads it: one parameter for each argument and option, with its help."""
    words = _entries(SHARED) | _entries((inspect.getdoc(command) or "").partition(_HEADING)[2])
    parts: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {}  # fields by parameter
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    for one in inspect.signature(command).parameters.values():
        kind = hints[one.name]
        record = next(iter(getattr(kind, "__metadata__", ())), None)
        if isinstance(record, FieldOptions):
            known = record.options()
            parts[one.name] = _given, {name: field for name, (field, _) in known.items()}
            options = {name: (annotation, None) for name, (_, annotation) in known.items()}
        elif isinstance(kind, type) and issubclass(kind, tuple):
            types, group = get_type_hints(kind, include_extras=True), cast("Any", kind)
            parts[one.name] = group, {name: name for name in group._fields}
            own = words | _entries((group.__doc__ or "").partition(_HEADING)[2])
            options = {
                name: (_option(name, types[name], default, own), default)
                for name, default in group._field_defaults.items()
            }
        elif kind is typer.Context:
            options = {one.name: (kind, one.default)}
        else:
            is_argument = one.kind is one.POSITIONAL_OR_KEYWORD
            described = _option(one.name, kind, one.default, words, is_argument=is_argument)
            options = {one.name: (described, one.default)}
        parameters += [
            inspect.Parameter(name, one.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, (make, fields) in parts.items():
            given[name] = make(**{field: given.pop(option) for option, field in fields.items()})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _entries(text: str) -> dict[str, tuple[str, str]]:
    """Form and help of each parameter, by name."""
    return {
        name: (form, " ".join(words.split()))
        for name, form, words in _ENTRY.findall(textwrap.dedent(text))
    }


def _option(
    name: str,
    kind: Any,
    default: Any,
    words: Mapping[str, tuple[str, str]],
    *,
    is_argument: bool = False,
) -> Any:
    form, said = words[name]
    if is_argument:
        return _described(kind, typer.Argument(readable=False), (), form, said)
    flags = _FLAGS.get(name, ())
    if kind is bool and default is False and not flags:
        flags = (f"--{name.replace('_', '-')}",)  # without a --no-
    return _described(kind, None, flags, form, said, shows=default not in (None, False, True, ()))


def _described(
    kind: Any,
    info: Any,
    flags: tuple[str, ...],
    form: str,
    words: str,
    panel: str | None = None,
    *,
    shows: bool = False,
) -> Any:
    """Type with what typer is told of it; a type may have a parser or limits already."""
    plain, told = kind, info
    for one in (kind, *get_args(kind)):
        if get_origin(one) is Annotated and told is None:
            plain, told = get_args(one)[0], copy.copy(get_args(one)[1])
    told = told or typer.Option()
    told.param_decls = flags
    told.help, told.rich_help_panel, told.show_default = words, panel, shows
    told.metavar = form or told.metavar
    told.case_sensitive = not any(get_origin(one) is Literal for one in (kind, *get_args(kind)))
    return Annotated[plain, told]


def _given(**given: Any) -> Given:
    return without_none(given)


def without_none(given: Given) -> Given:
    """Values that are given."""
    return {name: value for name, value in given.items() if value is not None}
