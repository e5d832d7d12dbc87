"""Settings of the pipeline that change while it runs: method, options and filter."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from d3s.errors import InputError
from d3s.estimate import DepthMap, Options
from d3s.estimate.depth_map import check_limits
from d3s.estimate.methods import checked_options
from d3s.record import short_repr

FAST = {"finest_scale": 2, "search_scale": 4}
"""Options of "joint" for more frames a second; docs/estimator.md has what they cost."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Depths that are shown, as in `DepthMap.filter`."""

    min_confidence: float | None = None
    max_sigma_m: float | None = None
    carried: bool = True  # whether depths that rest on texture elsewhere in the window are shown

    def __post_init__(self) -> None:
        """Check the limits."""
        check_limits(min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m)
        if not isinstance(self.carried, bool):
            raise InputError(f"carried={short_repr(self.carried)} must be true or false.")

    def apply(self, depth_map: DepthMap) -> DepthMap:
        """Depth map without the depths beyond the limits."""
        if self == Filter():
            return depth_map
        return depth_map.filter(
            min_confidence=self.min_confidence, max_sigma_m=self.max_sigma_m, carried=self.carried
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Method and options of the estimate, and the filter of what is shown.

    Parameters
    ----------
    method
        Name of a method of `d3s.estimate`.
    options
        Options of the method; the default of every field if None.
    shown
        Filter of the depths that are shown.
    version
        Number of changes until now: a page that has drawn another version draws again.
    """

    method: str = "joint"
    options: Options | None = None
    shown: Filter = Filter()
    version: int = 0

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Settings with some values replaced, checked."""
        filters = {name: changes[name] for name in Filter.__dataclass_fields__ if name in changes}
        unknown = set(changes) - set(filters) - {"options"}
        if unknown:
            known = ", ".join(("options", *Filter.__dataclass_fields__))
            raise InputError(f"{short_repr(min(unknown))} is no setting. There are {known}.")
        options, given = self.options, changes.get("options", {})
        if not isinstance(given, Mapping):
            raise InputError(f"options={short_repr(given)} must be a table of fields and values.")
        if given:
            before = {} if options is None else options.model_dump(exclude_unset=True)
            merged = {**before, **given}
            kept = {name: value for name, value in merged.items() if value is not None}
            options = checked_options(self.method, kept)
        return replace(
            self,
            options=options,
            shown=replace(self.shown, **filters),
            version=self.version + 1,
        )
