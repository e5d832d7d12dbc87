"""`d3s doctor`: check of the installation, with a self-test."""

import dataclasses
import math
import time
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.camera import given_rig
from d3s.cli.output import NOTHING_USABLE, progress_bar, say_json, say_step

if TYPE_CHECKING:
    from d3s.cli.installation import Health


def doctor(
    *, warm: bool = False, rig: str | None = None, quiet: bool = False, as_json: bool = False
) -> None:
    """Check the installation: packages, cores, memory, and a self-test with its error.

    Exit code 1 if the self-test fails. The first run compiles for up to a minute.

    Options:
        warm: First compile all loops that depth maps need, and keep them.
        rig (FILE|paper): Try the camera of a rig file, such as a design, in place of the paper's.
    """
    from d3s.cli.installation import examine

    camera = given_rig(rig)  # refused before anything is compiled
    if warm:
        _warm_up(quiet=quiet or as_json)
    if not (quiet or as_json):
        say_step("Looking at the machine, and trying a simulated plane ...")
    health = examine(camera)
    if as_json:
        say_json(_as_json(health))
    elif not quiet:
        _print(health)
    if not health.self_test.passed:
        raise typer.Exit(NOTHING_USABLE)


def _warm_up(*, quiet: bool) -> None:
    from d3s.cli.installation import warm_up

    with progress_bar(_WARM_STEPS, "Compiling, for some minutes ...", quiet=quiet) as progress:
        started_s = time.monotonic()
        kept = warm_up(progress).writable or "nowhere: no folder can be written"
    if not quiet:
        say_step(f"Compiled or found in {time.monotonic() - started_s:.0f} s. Kept in {kept}.")


_WARM_STEPS = 11  # of d3s.cli.installation


def _as_json(health: "Health") -> dict[str, object]:
    values = dataclasses.asdict(health)
    error_m = health.self_test.error_m
    values["self_test"]["error_m"] = error_m if math.isfinite(error_m) else None
    values["self_test"]["passed"] = health.self_test.passed
    return {**values, "remarks": health.remarks}


def _print(health: "Health") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from d3s.errors import install_command

    console = Console()
    tables: dict[str, Any] = {f"d3s {health.version}": _rows(health), "extras": _extras(health)}
    for title, rows in tables.items():
        table = Table(title=title, show_header=False)
        for row in rows:
            table.add_row(*map(escape, row))
        console.print(table)
    if not all(health.extras.values()):
        console.print(f"To add an extra: {escape(install_command('NAME'))}", highlight=False)
    for remark in health.remarks:
        console.print(escape(remark), highlight=False)
    if not health.remarks:
        console.print("All is well.")


def _rows(health: "Health") -> list[tuple[str, ...]]:
    test = health.self_test
    return [
        ("Python", f"{health.python}, {health.system}"),
        *((name, version or "not installed") for name, version in health.packages.items()),
        ("cores", f"{health.cores}, of which d3s uses {health.threads}"),
        ("vectors", " ".join(health.simd) or "none that is known"),
        ("memory", f"{_gb(health.memory_bytes)}, free {_gb(health.free_memory_bytes)}"),
        ("compiled loops", f"{health.cache}: {health.keeping}"),
        (
            "self-test",
            f"{'passed' if test.passed else 'FAILED'}: plane at {test.depth_m:.3g} m, error "
            f"{1e3 * test.error_m:.2f} mm, density {test.density:.1%}, {1e3 * test.time_s:.0f} ms",
        ),
    ]


def _extras(health: "Health") -> list[tuple[str, ...]]:
    from d3s.cli.installation import EXTRAS

    return [
        (name, EXTRAS[name][1], "yes" if there else "no") for name, there in health.extras.items()
    ]


def _gb(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e9:.1f} GB"
