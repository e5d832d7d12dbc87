"""Changes of the light of the right view: gain, gamma, or a ramp over the columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from d3s.errors import InputError
from d3s.record import short_repr
from d3s.types import Image

_LIMITS = {"gain": (0.0, 10.0), "gamma": (0.0, 10.0), "ramp": (-1.0, 1.0)}
_LEVELS = 255  # the change is rounded to 8 bits again, as a camera would store it
AS_STORED = "as stored"
"""Name of the trials in which nothing is changed."""


@dataclass(frozen=True)
class Light:
    """Change of the right view before it is matched.

    Parameters
    ----------
    kind
        "gain" multiplies intensities by `value`, "gamma" raises them to the power `value`, and
        "ramp" multiplies them by 1 - `value` at the left end up to 1 + `value` at the right end.
        The default changes nothing.
    value
        Strength of the change.
    """

    kind: str = ""
    value: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse gain=0.6, gamma=1.3 or ramp=0.3.

        Raises
        ------
        InputError
            When it is none of these, or the number is out of range.
        """
        if text == AS_STORED:
            return cls()
        kind, _, word = text.partition("=")
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        low, high = _LIMITS.get(kind, (np.inf, -np.inf))
        if not low < value < high:
            raise InputError(
                f"light {short_repr(text)} must be gain=NUMBER or gamma=NUMBER, above 0 and below "
                "10, or ramp=NUMBER, above -1 and below 1: gain=0.6, gamma=1.3, ramp=0.3."
            )
        return cls(kind, value)

    @property
    def name(self) -> str:
        """Name in tables, which `parse` reads."""
        return f"{self.kind}={self.value:g}" if self.kind else AS_STORED

    def apply(self, view: Image) -> Image:
        """Return the view in the changed light, clipped at full scale and rounded to 8 bits."""
        if not self.kind:
            return view
        if self.kind == "gamma":
            changed = view.astype(np.float64) ** self.value
        elif self.kind == "ramp":
            changed = view * np.linspace(1 - self.value, 1 + self.value, view.shape[1])
        else:
            changed = view * np.float64(self.value)
        stored = np.rint(np.clip(changed, 0, 1) * _LEVELS) / _LEVELS
        return np.asarray(stored, dtype=np.float32)
