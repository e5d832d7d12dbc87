"""Which methods take part in a sweep, in the same words for every command that has one."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.output import value_of

if TYPE_CHECKING:
    from d3s.evaluate.contender import Contender

_BETWEEN_METHODS = r",(?![^\[]*\])"  # a comma that is not within the brackets of an option


def method_option(if_left: str) -> Any:
    """The option --method; `if_left` says who takes part without it."""
    return typer.Option(
        "--method",
        "-m",
        metavar="NAME[:FIELD=VALUE...]",
        help="Method to try, with options if you like: consensus:min_confidence=0.8. Repeatable, "
        f"or with commas between: joint,bm. {if_left} if left.",
        show_default=False,
    )


def contenders_of(given: Iterable[str] | None, if_left: Iterable[str]) -> "tuple[Contender, ...]":
    """Those who take part, from what --method was given."""
    from d3s.evaluate.contender import as_contenders

    words = [one for text in given or if_left for one in re.split(_BETWEEN_METHODS, text)]
    with value_of("--method"):
        return as_contenders([word.strip() for word in words])
