"""Contender of a sweep: a method with its options, under a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from d3s.errors import InputError
from d3s.estimate import DepthMap, Options
from d3s.estimate.methods import checked_options, estimate_quietly, parse_method
from d3s.lab.evaluate.metrics import Key
from d3s.rig import Rig
from d3s.types import Image

RIVALS = ("sgbm", "bm")
"""Methods that all others of the same sweep are compared with."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A method of `d3s.estimate` with its options."""

    method: str
    options: Options | Mapping[str, Any] | None = None
    label: str = ""  # name in tables; the name of the method if left out

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse NAME or NAME:FIELD=VALUE:..., which also becomes the name in tables.

        A value is JSON (a number, true, [0.3, 2.0]); other text is a string.
        """
        method, options = parse_method(text)
        return cls(method=method, options=options or None, label=text)

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.label or self.method

    @property
    def is_rival(self) -> bool:
        """Whether all others are compared with it."""
        return self.method in RIVALS

    def checked_options(self) -> Options:
        """Options of the class that the method takes."""
        return checked_options(self.method, self.options)

    @property
    def ranked_by(self) -> Key:
        """Quantity that ranks the pixels of the method: `ranked_by` of the class of its options.

        It is the better of the two on the tuning textures; the confidence where the class does not
        say.
        """
        key: Key = getattr(type(self.checked_options()), "ranked_by", "confidence")
        return key

    def unfiltered(self) -> Self:
        """Return the contender with all filters of the method off, under the same name.

        `unfiltered` of the class of its options names the values that do that; a `min_confidence`
        of 0 where the class does not say.
        """
        options = self.checked_options()
        off = {"min_confidence": 0.0} if hasattr(options, "min_confidence") else {}
        off = getattr(type(options), "unfiltered", off)
        return replace(self, options=options.replace(**off), label=self.name)

    def as_table(self) -> dict[str, Any]:
        """Name, method and all checked options, as JSON can hold them."""
        options = self.checked_options().model_dump(mode="json")
        return {"name": self.name, "method": self.method, "options": options}

    def estimate(self, left: Image, right: Image, rig: Rig) -> DepthMap:
        """Estimate the depth of a pair."""
        return estimate_quietly(left, right, rig, method=self.method, options=self.options)


def as_contenders(methods: str | Contender | Sequence[str | Contender]) -> tuple[Contender, ...]:
    """Return contenders from methods as text, with their options checked."""
    given = (methods,) if isinstance(methods, str | Contender) else methods
    contenders = tuple(
        one if isinstance(one, Contender) else Contender.parse(str(one)) for one in given
    )
    if not contenders:
        raise InputError("methods is empty: name at least one.")
    names = [contender.name for contender in contenders]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"methods has {twice!r} twice. Give one of them another label.")
    for contender in contenders:
        contender.checked_options()
    return contenders
