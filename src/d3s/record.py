"""What rigs and scenes are made of: values that are checked when made, and say what is wrong.

A `Record` is a frozen pydantic model whose failures are a `RecordError` with a line for each wrong
field. The unit at the end of a field's name says which remedy to suggest.
"""

import difflib
import json
import math
import re
import reprlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from d3s.errors import RecordError


class Unit(NamedTuple):
    """A unit in words, and what a value in a likely wrong one has to be multiplied with."""

    words: str
    mistaken_for: dict[str, float]


# The first key that ends a field's name holds, so the longer come first.
_UNITS = {
    "focal_length_px": Unit("pixels, the focal length over the pixel pitch", {}),
    "cubic_m_px": Unit("metre pixels, per power of a metre", {}),
    "cubic_m": Unit("metres, per power of a metre", {}),
    "_px": Unit("pixels", {}),
    "_m": Unit("metres", {"millimetres": 1e-3, "micrometres": 1e-6}),
    "_dpt": Unit("dioptres, 1/m", {"1/millimetre, or the focal length": 1e3}),
    "_rad": Unit("radians", {"degrees": math.pi / 180}),
}

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


class Record(BaseModel):
    """A frozen set of named values that raises `error`, every wrong field at once."""

    error: ClassVar[type[RecordError]] = RecordError

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # on first use: it would be a third of the time that the import takes
    )

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self.error(*_problems(error, type(self))) from None

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some values changed, checked anew (`model_copy` does not check)."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**values, **changes})

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        # TOML has lists and calibration has arrays; a record keeps what cannot be changed.
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        return tuple(value) if isinstance(value, list) else value


class FrozenTable(dict[str, Any]):
    """A dictionary that cannot be changed and can be hashed. Unlike a proxy, it pickles."""

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


# As long as a file name may be, and short enough for a line of a rig file.
OneLine = Annotated[str, Field(max_length=255), AfterValidator(_one_line)]


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError("must be 64 lower-case hexadecimal digits, as sha256sum prints them.")
    return text


Sha256 = Annotated[str, AfterValidator(_sha256)]


def unit_remark(field: str, value: Any, limits: dict[str, float]) -> str:
    """Words on the unit of a field that is out of its limits, with the mistake that explains it.

    `limits` has the rules that `value` breaks, by their pydantic names: gt, ge, lt or le.
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
        if isinstance(cause, RecordError):  # a record within this one has said it already
            yield from (f"{name}.{problem}" for problem in cause.problems)
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
        return f"={shown(value)} {context['error']}"
    rule = _RULES[kind].format_map(context) if kind in _RULES else details["msg"]
    limits = {key: limit for key, limit in context.items() if key in ("gt", "ge", "lt", "le")}
    remark = unit_remark(field, value, limits) if limits else "."
    return f"={shown(value)} {rule}{remark or '.'}"


def _suggestion(name: str, record: type[BaseModel]) -> str:
    close = difflib.get_close_matches(name, record.model_fields, n=1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Known are: {', '.join(record.model_fields)}."


def _dotted(location: tuple[int | str, ...]) -> str:
    name = ""
    for part in location:
        if part == "[key]":  # pydantic's mark for what is wrong in a key, not in its value
            continue
        is_bare = re.fullmatch(r"[\w-]+", str(part), re.ASCII)
        name += (
            f"[{part}]" if isinstance(part, int) else f".{part if is_bare else json.dumps(part)}"
        )
    return name.removeprefix(".")


def shown(value: Any) -> str:
    """Return a value as Python writes it, cut short where it is long."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of more digits than Python is willing to write
        return "<huge number>"
