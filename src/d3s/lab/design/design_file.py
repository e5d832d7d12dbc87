"""File of a design: a rig file, which says at its top how it was designed."""

import os
import textwrap
from collections.abc import Sequence

from d3s.atomic import write_text
from d3s.lab.design.camera import Camera
from d3s.rig.rig import RIG_FILE


def design_text(camera: Camera, remarks: Sequence[str] = ()) -> str:
    """Text of a rig file of a camera, with remarks as comments; `Rig.load` reads it."""
    lines = [f"# {camera.name}, designed by d3s design."]
    rows, cols = camera.sensor_px
    box = " x ".join(f"{1e3 * side:.2f}" for side in camera.box_m)
    facts = [
        f"{camera.sensors} sensor{'s' if camera.sensors > 1 else ''} of {cols} x {rows} px; "
        f"lenses of {1e3 * camera.focal_length_m:.2f} mm at f/{camera.f_number:.2f}; one of them "
        f"moved by {1e6 * camera.focus_difference_m:.1f} um for the focus difference; lenses and "
        f"sensor take {box} mm.",
        *remarks,
    ]
    for fact in facts:
        lines += textwrap.wrap(fact, 98, initial_indent="# ", subsequent_indent="# ")
    values = camera.rig.model_dump(exclude_none=True)
    return "\n".join(lines) + "\n\n" + RIG_FILE.format(values)


def save_design(
    path: str | os.PathLike[str],
    camera: Camera,
    remarks: Sequence[str] = (),
    *,
    overwrite: bool = False,
) -> None:
    """Write the rig file of a design, completely or not at all.

    Parameters
    ----------
    path
        File to write.
    camera
        Camera on paper.
    remarks
        Sentences for the top of the file.
    overwrite
        Replace a file that exists.

    Raises
    ------
    OutputError
        If the file cannot be written, or has other content and `overwrite` is not set.
    """
    write_text(path, design_text(camera, remarks), overwrite=overwrite)
