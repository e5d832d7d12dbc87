"""Frozen, validated records: the base of rigs, scenes and options.

A `Record` is a pydantic model with keyword-only fields. Wrong values raise one `RecordError` that
lists every wrong field, the rule it breaks and the likely remedy. The unit at the end of a field's
name (`_m`, `_px`, ...) decides which remedy is suggested.
"""

import difflib
import functools
import inspect
import json
import math
import operator
import re
import reprlib
from collections.abc import Iterator
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    NoReturn,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from d3s.errors import RecordError


class Unit(NamedTuple):
    """Unit of a field, in words, and the units it is often confused with.

    `mistaken_for` maps each wrong unit to the factor that converts it to the right one.
    """

    words: str
    mistaken_for: dict[str, float]


# Suffixes of field names. The first that matches is used, so longer suffixes come first.
_UNITS = {
    "focal_length_px": Unit("pixels, the focal length over the pixel pitch", {}),
    "cubic_m_px": Unit("metre pixels, per power of a metre", {}),
    "cubic_m": Unit("metres, per power of a metre", {}),
    "_px": Unit("pixels", {}),
    "_m": Unit("metres", {"millimetres": 1e-3, "micrometres": 1e-6}),
    "_dpt": Unit("dioptres, 1/m", {"1/millimetre, or the focal length": 1e3}),
    "_rad": Unit("radians", {"degrees": math.pi / 180}),
}

# Rule in words for each pydantic error type.
_RULES = {
    "float_type": "must be a finite number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "string_type": "must be text",
    "string_unicode": "must be text",
    "tuple_type": "must be a list",
    "is_instance_of": "must be a list",  # of the fields that are a sequence
    "dict_type": "must be a table",
    "model_type": "must be {class_name}, or a table of its fields",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be at most {le:g}",
    "too_long": "must have at most {max_length} values",
    "string_too_long": "must have at most {max_length} characters",
}


if TYPE_CHECKING:
    _Kept = TypeVar("_Kept")

    class Converted(Generic[_Kept]):
        """Type of a tuple field that also accepts a list or an array.

        `Converted[tuple[float, ...]]` reads as `tuple[float, ...]`; the constructor converts. A
        default needs ``validate_default=True``, without which type checkers reject it.
        """

        def __get__(self, record: object, owner: type | None = None) -> _Kept: ...
        def __set__(self, record: object, value: _Kept | list[Any] | NDArray[Any]) -> None: ...

else:

    class Converted:
        """At run time, `Converted[T]` is T: the distinction is for type checkers only."""

        def __class_getitem__(cls, kept: Any) -> Any:
            return kept


class _FieldSignature:
    """Descriptor of `__signature__`: keyword-only fields with plain types and defaults.

    Computed on access, because pydantic's own signature exists only after the model is built and
    shows every constraint (`Annotated[float, Gt(gt=0), ...]`) in place of the type.
    """

    def __get__(self, record: object, owner: type["Record"]) -> inspect.Signature:
        if record is not None:
            raise AttributeError("__signature__")  # an instance is not called
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if field.is_required() else field.default,
                    annotation=plain_type(field.annotation),
                )
                for name, field in owner.model_fields.items()
            ]
        )


_SIGNATURE: Any = _FieldSignature()


class Record(BaseModel):
    """Base of all records: a frozen set of named values, validated when made.

    Raises `error` with one line for each wrong field. Subclasses get a Parameters section in their
    docstring, made from the descriptions, limits and defaults of their fields.
    """

    error: ClassVar[type[RecordError]] = RecordError

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # build on first use: building takes a third of the import time
    )

    if not TYPE_CHECKING:  # type checkers derive the constructor from the fields

        def __init__(self, /, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise self.error(*_problems(error, type(self))) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Add the fields to the docstring and to the signature."""
        super().__pydantic_init_subclass__(**kwargs)
        cls.__doc__ = _with_parameters(cls)
        cls.__signature__ = _SIGNATURE

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        """Replace the signature that pydantic sets when it builds the model.

        Versions before 2.12 do not call this method: they show their own signature after first use.
        """
        cls.__signature__ = _SIGNATURE

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; validates, which `model_copy` does not."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**values, **changes})

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        # Lists (from TOML) and arrays (from calibration) become tuples, which are immutable.
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        return tuple(value) if isinstance(value, list) else value


class FrozenTable(dict[str, Any]):
    """Immutable, hashable dictionary. Unlike `types.MappingProxyType`, it can be pickled."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this table does not change; make another.")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line of text, and not empty.")
    return text


# 255 characters: the longest file name, and short enough for a line of a rig file.
OneLine = Annotated[str, Field(max_length=255), AfterValidator(_one_line)]


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError("must be 64 lower-case hexadecimal digits, as sha256sum prints them.")
    return text


Sha256 = Annotated[str, AfterValidator(_sha256)]


def unit_remark(field: str, value: Any, limits: dict[str, float]) -> str:
    """Remark on the unit of a field that is out of its limits, and the likely wrong unit.

    The suffix of the field is its unit, and `limits` have their pydantic names: gt, ge, lt or le.
    Empty for a field without a unit.
    """
    unit = next((unit for end, unit in _UNITS.items() if field.endswith(end)), None)
    if unit is None:
        return ""
    for words, factor in unit.mistaken_for.items():
        if _is_within(value * factor, limits):
            return f": it is in {unit.words}. Did you pass {words}?"
    return f": it is in {unit.words}."


def _is_within(value: float, limits: dict[str, float]) -> bool:
    is_above = value > limits.get("gt", -math.inf) and value >= limits.get("ge", -math.inf)
    return is_above and value < limits.get("lt", math.inf) and value <= limits.get("le", math.inf)


def _problems(error: ValidationError, record: type[BaseModel]) -> Iterator[str]:
    for details in error.errors(include_url=False):
        name = _dotted(details["loc"])
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, RecordError):  # raised by a nested record: keep its lines
            within = f"{name}." if name else ""  # no name: a rule of the whole record
            yield from (f"{within}{problem}" for problem in cause.problems)
        else:
            yield f"{name}{_problem(details, record)}"


def _problem(details: ErrorDetails, record: type[BaseModel]) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    field = str(details["loc"][0])
    if kind == "extra_forbidden":
        return f" is unknown. {_suggestion(field, record)}"
    if kind == "missing" or value is None:
        return f" is missing: {record.model_fields[field].description}."
    if kind == "value_error":
        return f"={short_repr(value)} {context['error']}"
    rule = _RULES[kind].format_map(context) if kind in _RULES else details["msg"]
    limits = {key: limit for key, limit in context.items() if key in ("gt", "ge", "lt", "le")}
    remark = unit_remark(field, value, limits) if limits else "."
    return f"={short_repr(value)} {rule}{remark or '.'}"


def _suggestion(name: str, record: type[BaseModel]) -> str:
    close = difflib.get_close_matches(name, record.model_fields, n=1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Known are: {', '.join(record.model_fields)}."


def _dotted(location: tuple[int | str, ...]) -> str:
    name = ""
    for part in location:
        if part == "[key]":  # pydantic's mark for an error in a key rather than in its value
            continue
        is_bare = re.fullmatch(r"[\w-]+", str(part), re.ASCII)
        name += (
            f"[{part}]" if isinstance(part, int) else f".{part if is_bare else json.dumps(part)}"
        )
    return name.removeprefix(".")


def short_repr(value: Any) -> str:
    """`repr` of a value, abbreviated if long, for error messages."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer with more digits than Python converts to text
        return "<huge number>"


def _with_parameters(record: type[Record]) -> str:
    """Docstring of a record with a Parameters section, before the Examples if it has some."""
    text = inspect.cleandoc(record.__dict__.get("__doc__") or "")
    fields = record.model_fields.items()
    if not fields or "\nParameters\n---" in text:
        return text
    entries = "\n".join(_field_entry(name, field) for name, field in fields)
    before, examples, after = text.partition("\n\nExamples\n---")
    return f"{before}\n\nParameters\n----------\n{entries}{examples}{after}".lstrip()


def _field_entry(name: str, field: FieldInfo) -> str:
    """Entry of a field in numpydoc: type, limits and default, then the description."""
    annotation = inspect.formatannotation(plain_type(field.annotation))
    default = "" if field.is_required() else f"default {field.default!r}"
    heading = ", ".join(part for part in (annotation, field_limits(field), default) if part)
    description = field.description or ""
    return f"{name} : {heading}\n    {description[:1].upper()}{description[1:]}."


def field_limits(field: FieldInfo) -> str:
    """Numeric limits of a field in words, such as ``> 0, <= 10``; empty if it has none."""
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    return ", ".join(
        f"{sign} {getattr(limit, name):g}"
        for limit in field.metadata
        for name, sign in signs.items()
        if getattr(limit, name, None) is not None
    )


def plain_type(annotation: Any) -> Any:
    """Type without the constraints that `Annotated` adds to it or to its parts."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain_type(parts[0])
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, (plain_type(part) for part in parts))
    if isinstance(origin, type):  # tuple, dict, Sequence; Literal has values, not types
        kind: Any = origin
        return kind[tuple(plain_type(part) for part in parts)]
    return annotation
