"""`d3s doctor`: check of the installation, with a self-test."""

import dataclasses
import math
import time
from typing import TYPE_CHECKING

from d3s.cli.camera import given_rig
from d3s.cli.output import NOTHING_USABLE, end, progress_bar, say_json, say_step, show, table

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
    from d3s.cli.installation import examine, warm_up

    is_silent = quiet or as_json
    camera = given_rig(rig)  # refused before anything is compiled
    if warm:
        words = "Compiling, for some minutes ..."
        started_s = time.monotonic()
        with progress_bar(1, words, quiet=is_silent) as progress:
            kept = warm_up(progress).writable or "nowhere: no folder can be written"
        if not is_silent:
            say_step(f"Compiled or found in {time.monotonic() - started_s:.0f} s. Kept in {kept}.")
    if not is_silent:
        say_step("Looking at the machine, and trying a simulated plane ...")
    health = examine(camera)
    if as_json:
        values = dataclasses.asdict(health)
        error_m = health.self_test.error_m
        values["self_test"]["error_m"] = error_m if math.isfinite(error_m) else None
        values["self_test"]["passed"] = health.self_test.passed
        say_json({**values, "remarks": health.remarks})
    elif not quiet:
        _print(health)
    if not health.self_test.passed:
        end(NOTHING_USABLE)


def _print(health: "Health") -> None:
    from d3s.cli.installation import EXTRAS
    from d3s.errors import install_command

    extras = [
        (name, EXTRAS[name][1], "yes" if has else "no") for name, has in health.extras.items()
    ]
    is_whole = all(health.extras.values())
    show(
        table(("", ""), _rows(health), title=f"d3s {health.version}"),
        table(("", "", ""), extras, title="extras"),
        *([] if is_whole else [f"To add an extra: {install_command('NAME')}"]),
        *(health.remarks or ["All is well."]),
    )


def _rows(health: "Health") -> list[tuple[str, str]]:
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


def _gb(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e9:.1f} GB"
