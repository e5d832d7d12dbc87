"""Styles of methods: the same colour, marker and line style of a method in every chart.

The line style alone tells groups of methods apart, in print and for colour-blind readers: solid for
our method and the paper's, dashed for stereo, dash-dotted for other methods with defocus. Within a
group, colours differ for every kind of colour blindness. A method that is not listed here gets a
spare style.
"""

from collections.abc import Iterable
from itertools import cycle
from typing import Any, NamedTuple

OURS, PAPER = "#c8442d", "#1f6fb4"
"""Colours of our method and of the paper's method."""

Line = str | tuple[int, tuple[float, ...]]
"""Line style as matplotlib takes it."""

_DASHED: Line = (0, (5, 2))
_DASH_DOTTED: Line = (0, (6, 1.5, 1.5, 1.5))
_DOTTED: Line = (0, (1, 1.5))


class Style(NamedTuple):
    """Colour, marker and line style of a method."""

    colour: str
    marker: str = "o"
    line: Line = "-"
    width: float = 1.4
    is_hollow: bool = False  # white markers, for a variant of a method

    @property
    def face(self) -> str:
        """Fill colour of markers and bars."""
        return "white" if self.is_hollow else self.colour

    @property
    def of_line(self) -> dict[str, Any]:
        """Keyword arguments of a matplotlib line; wider lines are drawn on top."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": self.width,
            "zorder": 2 + self.width / 10,
        }

    def of_marks(self, size: float = 6.0) -> dict[str, Any]:
        """Keyword arguments of matplotlib markers without a line; size in points."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": self.face,
            "markersize": 1.4 * size if self.marker == "*" else size,  # a star looks smaller
            "linestyle": "none",
        }


_STYLES = {
    "joint": Style(OURS, "o", width=2.6),
    "consensus": Style(PAPER, "s", width=2.0),
    "consensus, Eq. 10": Style(PAPER, "s", _DASHED, width=2.0, is_hollow=True),
    "sgbm": Style("#1a1a1a", "v", _DASHED),
    "bm": Style("#a3a3a3", "^", _DASHED),
    "phase": Style("#0c7a50", "D", _DASHED),
    "sift": Style("#5b3a1e", "*", _DOTTED),
    "guo2017": Style("#e69f00", "P", _DASH_DOTTED),
    "li2010": Style("#c2558f", "X", _DASH_DOTTED),
    "takeda2013": Style("#56b4e9", "p", _DASH_DOTTED),
}
# Spare styles: for methods that are not listed, and for a second variant of a method.
_MORE = tuple(
    Style(colour, marker, line)
    for line in ("-", _DOTTED)
    for colour, marker in (("#393b79", "h"), ("#637939", "d"), ("#843c39", "<"), ("#7b4173", ">"))
)


def styles_of(names: Iterable[str]) -> dict[str, Style]:
    """Return styles of all methods in a chart, by name.

    A name may have options or a remark after the method: "bm:block_size_px=15", "consensus, tuned".
    """
    more = cycle(_MORE)
    styles: dict[str, Style] = {}
    for name in names:
        method = name.partition(":")[0].partition(",")[0]
        style = _STYLES.get(name) or _STYLES.get(method)
        styles[name] = next(more) if style is None or style in styles.values() else style
    return styles
