"""Options that the commands of `d3s evaluate` share, and the library's objects made from them.

An option that is not given is None: the library has the default, and checks the value.
"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli import sweep
from d3s.cli.options import length_m, series_m, shape_px
from d3s.cli.simulate_recipe import PsfName

if TYPE_CHECKING:
    from d3s.lab.evaluate.contender import Contender
    from d3s.rig import Rig

_DEFAULT_METHODS = ("joint", "sgbm", "bm")  # our method, and the two of OpenCV


def _depths_m(text: str) -> tuple[float, ...]:
    if ":" not in text:
        return tuple(length_m(one) for one in text.split(","))
    return series_m(text, "depths with commas between, such as 0.5,1.0")


def _patterns(text: str) -> tuple[str, ...]:
    from d3s.lab.evaluate.sweep import REPORT_PATTERNS, TUNING_PATTERNS

    sets = {"report": REPORT_PATTERNS, "tuning": TUNING_PATTERNS}
    return sets.get(text, tuple(name.strip() for name in text.split(",")))


Method = Annotated[list[str] | None, sweep.method_option(if_left=", ".join(_DEFAULT_METHODS))]
Depths = Annotated[
    Any,
    typer.Option(
        "--depths",
        parser=_depths_m,
        metavar="DEPTHS",
        help="START:STOP:COUNT, or depths with commas between; 0.25:2.0:25 if left.",
    ),
]
Patterns = Annotated[
    Any,
    typer.Option(
        parser=_patterns,
        metavar="NAME,NAME...",
        help="Textures, or one word: report (those that nothing was tuned on), or tuning.",
        show_default=False,
    ),
]
Photos = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of photos as textures, in place of --patterns: as many, the first by name; "
        "in random scenes all.",
        show_default=False,
    ),
]
Noise = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the noise, of full scale; 0.01 if left."),
]
Shape = Annotated[
    Any,
    typer.Option(
        parser=shape_px, metavar="ROWSxCOLS", help="Size of each view, 300x640 for instance."
    ),
]
Psf = Annotated[PsfName | None, typer.Option(help="Shape of a blurred point; disk if left.")]
Lens = Annotated[
    sweep.LensName | None,
    typer.Option(
        help="Lenses of the camera; perfect if left. Typical ones are calibrated, unless --rig "
        "names another rig for that camera."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of the scenes and of the noise; 0 if left.")]
RigFile = Annotated[
    Path | None, typer.Option(help="Rig file; the paper's prototype if left.", show_default=False)
]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="A small sweep for a first look, of half a minute.")
]


def contenders_of(method: list[str] | None) -> "tuple[Contender, ...]":
    """Return the contenders that --method names, or the default ones."""
    return sweep.contenders_of(method, _DEFAULT_METHODS)


def rig_of(path: Path | None) -> "Rig":
    """Load the rig file, or return the paper's prototype."""
    from d3s.rig import Rig

    return Rig.paper_prototype() if path is None else Rig.load(path)


def given(**values: Any) -> dict[str, Any]:
    """Values that are not None, and the text of a choice."""
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in values.items()
        if value is not None
    }
