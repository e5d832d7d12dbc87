"""Who takes part in a sweep: a method with its options, under a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from d3s.errors import InputError
from d3s.estimate import DepthMap, Options, estimate
from d3s.estimate.methods import checked_options, parse_method
from d3s.evaluate.ranking import Key
from d3s.rig import Rig
from d3s.types import Image

RIVALS = ("sgbm", "bm")
"""Methods that all others are held against, when they are in the same sweep."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A method of `d3s.estimate` with its options."""

    method: str
    options: Options | Mapping[str, Any] | None = None
    label: str = ""  # in the tables; the method if left

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what NAME or NAME:FIELD=VALUE:... says, under that very name.

        A value is JSON: a number, true, [0.3, 2.0]; what is not is a word.

        Raises
        ------
        InputError
            When an option has no value. Whether there is such a method is not checked here.
        """
        method, options = parse_method(text)
        return cls(method=method, options=options or None, label=text)

    @property
    def name(self) -> str:
        """What it is called in the tables."""
        return self.label or self.method

    @property
    def is_rival(self) -> bool:
        """Whether others are held against it."""
        return self.method in RIVALS

    def checked_options(self) -> Options:
        """The options as the method takes them.

        Raises
        ------
        InputError, OptionsError
            When there is no such method, or it cannot be told that.
        """
        return checked_options(self.method, self.options)

    @property
    def ranked_by(self) -> Key:
        """What tells its good pixels from its bad ones, where it has to choose.

        `ranked_by` of the class of its options: the better of the two on the tuning textures. Where
        it says nothing, the confidence.
        """
        key: Key = getattr(type(self.checked_options()), "ranked_by", "confidence")
        return key

    def unfiltered(self) -> Self:
        """The same with all of its own filters off, under the same name.

        `unfiltered` of the class of its options says which values do that; where it says nothing,
        a `min_confidence` of 0.
        """
        options = self.checked_options()
        off = {"min_confidence": 0.0} if hasattr(options, "min_confidence") else {}
        off = getattr(type(options), "unfiltered", off)
        return replace(self, options=options.replace(**off), label=self.name)

    def as_table(self) -> dict[str, Any]:
        """What JSON can hold, with every option as it was checked."""
        options = self.checked_options().model_dump(mode="json")
        return {"name": self.name, "method": self.method, "options": options}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """The contender that `as_table` told."""
        return cls(method=table["method"], options=table["options"], label=table["name"])

    def estimate(self, left: Image, right: Image, rig: Rig) -> DepthMap:
        """Depth of a pair by this method."""
        return estimate(left, right, rig, method=self.method, options=self.options)


def as_contenders(methods: str | Contender | Sequence[str | Contender]) -> tuple[Contender, ...]:
    """Contenders from what `Contender.parse` reads, checked, each name once.

    Raises
    ------
    InputError, OptionsError
        Naming the method or the option that is unknown, or the label that is there twice.
    """
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
