"""Who takes part in a sweep: a method with its options, under a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from d3s.errors import InputError
from d3s.estimate import DepthMap, Options, estimate
from d3s.estimate.images import Image
from d3s.estimate.methods import METHODS
from d3s.record import shown
from d3s.rig import Rig

RIVALS = ("sgbm", "bm")
"""Methods that all others are held against, when they are in the same sweep."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A method of `d3s.estimate` with its options."""

    method: str
    options: Options | Mapping[str, Any] | None = None
    label: str = ""  # in the tables; the method if left

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
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise InputError(f"method={shown(self.method)} must be one of {', '.join(METHODS)}.")
        _, kind = METHODS[self.method].load()
        if self.options is None:
            return kind()
        return self.options if isinstance(self.options, Options) else kind(**self.options)

    def estimate(self, left: Image, right: Image, rig: Rig) -> DepthMap:
        """Depth of a pair by this method."""
        return estimate(left, right, rig, method=self.method, options=self.options)


def as_contenders(methods: str | Contender | Sequence[str | Contender]) -> tuple[Contender, ...]:
    """Contenders from names of methods, checked, each name once.

    Raises
    ------
    InputError, OptionsError
        Naming the method or the option that is unknown, or the label that is there twice.
    """
    given = (methods,) if isinstance(methods, str | Contender) else methods
    contenders = tuple(
        one if isinstance(one, Contender) else Contender(method=one) for one in given
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
