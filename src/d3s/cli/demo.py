"""`d3s demo`: one simulated snapshot, its depth by three methods, a picture and a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from d3s.cli.output import Force, Json, Quiet, check_free, say_json, say_step

if TYPE_CHECKING:
    from d3s.lab.demo import Demo


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "demo"
    ),
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """See what it is: a simulated snapshot, its depth by three methods, and a page about it.

    The first time takes up to a minute, most of it for compiling; later ones some ten seconds.
    """
    from d3s.lab.demo import run_demo
    from d3s.lab.view.demo import FILES, write_demo

    check_free(output, [output / name for name in FILES], force=force)
    made = run_demo(on_step=None if quiet or as_json else say_step)
    files = write_demo(made, output, overwrite=force)
    if as_json:
        say_json(_as_json(made, files))
    elif not quiet:
        _print(made)
        typer.echo(f"Picture: {files['demo.png']}\nPage:    {files['index.html']}")


def _as_json(made: "Demo", files: dict[str, Path]) -> dict[str, object]:
    figures = {
        name: {
            "mae_m": one.score.mae_m,
            "median_m": one.score.median_m,
            "density": one.score.density,
            "coverage": one.score.coverage,
            "time_s": one.time_s,
        }
        for name, one in made.results.items()
    }
    return {"simulated": True, "methods": figures, "files": [str(one) for one in files.values()]}


def _print(made: "Demo") -> None:
    from rich.console import Console
    from rich.table import Table

    from d3s.lab.view.demo import TABLE_HEADINGS, TABLE_WORDS, table_rows

    rig, depth_m = made.pair.rig, made.pair.depth_m
    optics = rig.optics
    left_m, right_m = optics.focus_distances_m
    console = Console()
    console.print(
        f"The {rig.name}: baseline {1e3 * optics.baseline_m:.2f} mm, sensor distance "
        f"{1e3 * optics.sensor_distance_m:.1f} mm, f/{optics.f_number:.2f}, focused at "
        f"{left_m:.3f} m (left) and {right_m:.3f} m (right). The scene is from "
        f"{depth_m.min():.2f} to {depth_m.max():.2f} m."
    )
    table = Table(title="One simulated snapshot")
    for i, heading in enumerate(TABLE_HEADINGS):
        table.add_column(heading, justify="right" if i else "left")
    for row in table_rows(made):
        table.add_row(*row)
    console.print(table)
    console.print(TABLE_WORDS, style="dim", highlight=False)
