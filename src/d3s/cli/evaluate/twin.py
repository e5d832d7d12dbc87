"""`d3s evaluate twin`: the twin against a path tracer."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.output import Quiet
from d3s.cli.progress import progress_bar
from d3s.cli.units import shape_px

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.evaluate.twin import TwinRow

_Samples = Annotated[int, typer.Option(help="Light paths per pixel.")]
_Pattern = Annotated[str, typer.Option(help="Texture of all surfaces.")]
_Shape = Annotated[
    Any,
    typer.Option(parser=shape_px, metavar="ROWSxCOLS", help="Size of each view; 200x300 if left."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def twin(
    *,
    samples: _Samples = 256,
    pattern: _Pattern = "leaves",
    shape: _Shape = None,
    rig: options.RigFile = None,
    as_json: _Json = False,
    quiet: Quiet = False,
) -> None:
    """Render planes and two layers by the twin and by Mitsuba 3, and compare the views.

    Mitsuba is the extra d3s[render]: pip install 'd3s[render]'.
    """
    from d3s.lab.evaluate.twin import SCENES, compare_twin

    with progress_bar(SCENES, f"Rendering {SCENES} scenes.", quiet=quiet) as progress:
        rows = compare_twin(
            options.rig_of(rig),
            samples=samples,
            pattern=pattern,
            progress=progress,
            **options.given(shape=shape),
        )
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        tables.show(
            _table(rows),
            notes="Of full scale, both views together. RMS: of the difference, without the noise "
            "of the path tracer. Near edges: within 12 px of the outline of the square.",
        )


def _table(rows: "list[TwinRow]") -> "Table":
    from rich.table import Table

    table = Table(title="The twin less the path tracer")
    for name in ("scene", "region"):
        table.add_column(name, no_wrap=True)
    for name in ("pixels", "RMS", "mean", "noise"):
        table.add_column(name, justify="right")
    for row in rows:
        shares = (tables.percent(share, ".2f") for share in (row.rms, row.bias, row.noise))
        table.add_row(row.scene, row.region, str(row.pixels), *shares)
    return table
