"""`d3s demo`: what the paper's prototype can see, as a table and a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.design.limits import DepthLimits

# The paper's working range and a little beyond, in steps that a person can read.
TABLE_DEPTHS_M = (0.25, 0.30, 0.40, 0.50, 0.65, 0.80, 0.85, 1.00, 1.25, 1.64, 2.00, 2.50)


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo"),
    force: Annotated[bool, typer.Option("--force", help="Replace earlier results.")] = False,
) -> None:
    """Show the optics of the paper's prototype, and how well it could know depth at best."""
    import numpy as np
    from rich.console import Console

    from d3s.atomic import make_folder
    from d3s.design.limits import Conditions, depth_limits
    from d3s.optics.psf import diffraction_range_m
    from d3s.rig import Rig
    from d3s.view.optics import plot_optics
    from d3s.view.save import save_figure

    console, conditions = Console(), Conditions()
    rig = Rig.paper_prototype()
    optics = rig.optics
    left_m, right_m = optics.focus_distances_m
    table = depth_limits(optics, TABLE_DEPTHS_M, spread="disk", conditions=conditions)
    diffracted = depth_limits(optics, TABLE_DEPTHS_M, spread="diffraction", conditions=conditions)
    console.print(
        f"The {rig.name}: baseline {1e3 * optics.baseline_m:.2f} mm, sensor distance "
        f"{1e3 * optics.sensor_distance_m:.1f} mm, f/{optics.f_number:.2f}, focused at "
        f"{left_m:.3f} m (left) and {right_m:.3f} m (right)."
    )
    console.print(_table(table, diffracted))
    console.print(
        "Bound: the smallest possible standard deviation of the depth of a "
        f"{conditions.window_px} x {conditions.window_px} px window of natural texture (contrast "
        f"{conditions.contrast:.0%}) with {conditions.noise_sigma:.0%} noise, for the blur disk of "
        "geometric optics, then for a lens limited by diffraction. Defocus: its part of the "
        "information; stereo has the rest. Computed from the optics, not measured."
    )
    for name, camera in (("left", 0), ("right", 1)):
        near_m, far_m = diffraction_range_m(optics.lens(camera), conditions.wavelength_m)
        console.print(
            f"Diffraction, not defocus, sets the size of a point from {near_m:.2f} to "
            f"{far_m:.2f} m ({name} camera, {1e9 * conditions.wavelength_m:.0f} nm)."
        )
    depths = np.linspace(0.25, 2.5, 181)
    figure = plot_optics(
        rig,
        depth_limits(optics, depths, spread="disk", conditions=conditions),
        depth_limits(optics, depths, spread="diffraction", conditions=conditions),
    )
    make_folder(output)
    save_figure(figure, output / "optics.png", overwrite=force)
    rig.save(output / "rig.toml", overwrite=force)
    # Not through rich, which would wrap a long path and read brackets in it as markup.
    typer.echo(f"Plot:     {output / 'optics.png'}\nRig file: {output / 'rig.toml'}")


def _table(limits: "DepthLimits", diffracted: "DepthLimits") -> "Table":
    from rich.table import Table

    table = Table(title="Optics over depth")
    for heading in (
        "depth\n(m)",
        "disparity\n(px)",
        "blur L\n(px)",
        "blur R\n(px)",
        "bound\n(cm)",
        "of it\ndefocus",
        "diffr.\n(cm)",
        "of it\ndefocus",
    ):
        table.add_column(heading, justify="right")
    for i, depth in enumerate(limits.depth_m):
        table.add_row(
            f"{depth:.2f}",
            f"{limits.disparity_px[i]:.2f}",
            f"{limits.blur_sigma_px[0][i]:+.2f}",
            f"{limits.blur_sigma_px[1][i]:+.2f}",
            *_bound_cells(limits, i),
            *_bound_cells(diffracted, i),
        )
    return table


def _bound_cells(limits: "DepthLimits", row: int) -> tuple[str, str]:
    share = limits.information.defocus_share[row]
    return f"{100 * limits.bound.total_m[row]:.3f}", f"{100 * share:.1f} %"
