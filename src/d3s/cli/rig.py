"""`d3s rig`: rig files of stereo cameras, from calibrations of other programs."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.options import length_m, shape_px
from d3s.cli.output import Force, Json, Quiet, check_suffix, say_json

if TYPE_CHECKING:
    from d3s.rig import Rig

rig = typer.Typer(
    add_completion=False,
    help="Rig files of stereo cameras, from calibrations of other programs.",
    no_args_is_help=True,
)


def _unit_m(text: str) -> float:
    """Unit of lengths in metres, from mm or 1mm."""
    return length_m(text if any(sign.isdigit() for sign in text) else f"1{text}")


@rig.callback()
def _group() -> None:
    """Keep `import` a command of its own: typer runs a single command without its name."""


@rig.command("import")
def import_rig(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Calibration: one file, or those of the left and of the right camera, and of "
            "their rotation and translation.",
            metavar="FILE...",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Rig file to write.")
    ] = Path("rig.toml"),
    rectified: Annotated[
        bool,
        typer.Option("--rectified", help="The pictures are rectified already, by P of the files."),
    ] = False,
    swap: Annotated[
        bool, typer.Option("--swap", help="The first camera of the file is the right one.")
    ] = False,
    unit: Annotated[
        float | None,
        typer.Option(
            parser=_unit_m, metavar="UNIT", help="Unit of lengths in the files, such as mm."
        ),
    ] = None,
    shape: Annotated[
        Any,
        typer.Option(
            parser=shape_px,
            metavar="ROWSxCOLS",
            help="Size of the pictures, if the files do not say it.",
            show_default=False,
        ),
    ] = None,
    fisheye: Annotated[
        bool, typer.Option("--fisheye", help="Files of OpenCV: distortion of cv2.fisheye.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the camera; that of the file if left.")
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a rig file of the calibration of a stereo camera.

    Reads calib.txt of Middlebury, ETH3D and KITTI, YAML and XML of OpenCV, camchain YAML of Kalibr,
    CameraInfo YAML of ROS, and JSON of RealSense and OAK cameras. Lengths have the unit of the
    format; those of OpenCV are metres, unless --unit says otherwise.
    """
    from d3s.rig.imports import read_rig

    check_suffix(output, "--output", ".toml")
    found = read_rig(
        files, rectified=rectified, swap=swap, unit_m=unit, shape=shape, fisheye=fisheye
    )
    camera = found.rig if name is None else found.rig.replace(name=name)
    camera.save(output, overwrite=force)
    for remark in found.remarks:
        typer.echo(f"Note: {remark}", err=True)
    if as_json:
        values = {
            "file": str(output),
            "format": found.format,
            **_facts(camera),
            "remarks": list(found.remarks),
        }
        say_json(values)
    elif not quiet:
        _print(found.format, camera, output)


def _facts(camera: "Rig") -> dict[str, Any]:
    """Numbers of the rectified views, and how far the cameras are turned."""
    stereo, optics = camera.stereo, camera.optics
    cameras = None if stereo is None else stereo.raw_cameras
    return {
        "name": camera.name,
        "focal_length_px": optics.focal_length_px,
        "baseline_m": optics.baseline_m,
        "disparity_offset_px": optics.disparity_offset_px,
        "principal_point_px": camera.principal_point_px,
        "shape": None if stereo is None else stereo.shape,
        "disparity_range_px": None if stereo is None else stereo.disparity_range_px,
        "rectifies": cameras is not None,
        "models": None if cameras is None else [one.model for one in cameras],
        "turned_deg": None if cameras is None else [_angle_deg(one.rotation) for one in cameras],
    }


def _angle_deg(rotation: tuple[tuple[float, ...], ...]) -> float:
    """Angle of a rotation, in degrees."""
    trace = sum(rotation[axis][axis] for axis in range(3))
    return math.degrees(math.acos(min(max((trace - 1) / 2, -1.0), 1.0)))


def _print(kind: str, camera: "Rig", output: Path) -> None:
    facts = _facts(camera)
    shape, point = facts["shape"], facts["principal_point_px"]
    typer.echo(f"{camera.name}: {kind}")
    typer.echo(f"  focal length     {facts['focal_length_px']:.3f} px")
    typer.echo(f"  baseline         {1e3 * facts['baseline_m']:.3f} mm")
    if point is not None:
        typer.echo(f"  principal point  {point[0]:.3f}, {point[1]:.3f} px (left view)")
    typer.echo(f"  at infinity      {facts['disparity_offset_px']:.3f} px of disparity")
    if shape is not None:
        typer.echo(f"  views            {shape[0]} x {shape[1]} px (rows x columns)")
    if facts["rectifies"]:
        left, right = facts["turned_deg"]
        models = " and ".join(dict.fromkeys(facts["models"]))
        typer.echo(
            f"  pictures         raw, {models}: to be rectified, by turns of {left:.2f} and "
            f"{right:.2f} degrees"
        )
    else:
        typer.echo("  pictures         rectified")
    typer.echo(f"Rig file {output}: d3s depth LEFT RIGHT --rig {output}")
