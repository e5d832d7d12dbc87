"""The camera and the source of a command; `d3s rig import`."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from d3s.cli.options import Given, Grab, Light, Telling
from d3s.cli.output import check_suffix, say_json, say_step, value_of
from d3s.cli.values import Pixels, Shape, Unit, has_unit, length_m

if TYPE_CHECKING:
    from d3s.batch.running import Workers
    from d3s.frames import FoundFiles, Source, SourceOptions
    from d3s.rig import Rig

PAPER = "paper"
_TWIN = "twin"
_CALIBRATION = "calib.txt"  # beside the views of Middlebury and ETH3D
_METRE_LONG = 1.0


# Rigs ---------------------------------------------------------------------------------------------


def given_rig(word: str | None, *, quiet: bool = False) -> "Rig | None":
    """Rig of --rig: of a file, of the name `paper`, or None if none was given."""
    from d3s.rig import Rig

    if word is None:
        return None
    if word == PAPER:
        return Rig.paper_prototype()
    path = Path(word)
    if path.suffix.lower() == ".toml" or not path.is_file():
        rig = Rig.load(path)
        remarks: tuple[str, ...] = (rig.doubt,) if rig.doubt else ()
    else:
        from d3s.rig.imports import read_rig

        imported = read_rig([path])
        rig, remarks = imported.rig, imported.remarks
    for remark in () if quiet else remarks:
        say_step(f"Note: {remark}")
    return rig


def rig_or_paper(word: str | None, *, quiet: bool = False) -> "Rig":
    """Rig of --rig; the paper's prototype if none was given."""
    from d3s.rig import Rig

    return given_rig(word, quiet=quiet) or Rig.paper_prototype()


class PairNumbers(NamedTuple):
    """Numbers of a rectified pair.

    Options:
        focal_length: Any rectified pair, without a rig file: its focal length in pixels, such as
            6050px.
        baseline (LENGTH): And its baseline, such as 193mm.
        disparity_offset_px: And x_left - x_right of a point at infinity; 0 if left.
    """

    focal_length: Pixels = None
    baseline: str | None = None
    disparity_offset_px: float | None = None

    @property
    def is_given(self) -> bool:
        """Whether there is any number."""
        return any(value is not None for value in self)

    def rig(self, *, quiet: bool) -> "Rig":
        """Rig of these numbers."""
        from d3s.rig import Rig

        if self.focal_length is None or self.baseline is None:
            raise _no_camera()
        try:
            baseline_m = length_m(self.baseline)
        except typer.BadParameter as error:
            raise typer.BadParameter(str(error), param_hint="--baseline") from error
        text = self.baseline.strip()
        if baseline_m >= _METRE_LONG and not has_unit(text) and not quiet:
            say_step(
                f"Note: --baseline {text} is taken for {text} m. Is it in millimetres? Then say "
                f"{text}mm."
            )
        if self.disparity_offset_px is None and not quiet:
            say_step(
                "Note: --disparity-offset-px is left out, and 0 taken, as after most "
                "rectifications. For a file of Middlebury it is minus its doffs; a wrong one makes "
                "all depths wrong."
            )
        with value_of("--focal-length, --baseline or --disparity-offset-px"):
            return Rig.of_pinhole(
                focal_length_px=self.focal_length,
                baseline_m=baseline_m,
                disparity_offset_px=self.disparity_offset_px or 0.0,
            )


def rig_of_files(
    word: str | None, pinhole: PairNumbers, found: "FoundFiles", *, quiet: bool
) -> "Rig":
    """Camera of files: as it is given, as a recording has it, or of a calibration beside them."""
    if word is not None and pinhole.is_given:
        raise typer.BadParameter(
            "--rig says all of the camera: leave it, or --focal-length, --baseline and "
            "--disparity-offset-px."
        )
    if pinhole.is_given:
        return pinhole.rig(quiet=quiet)
    camera = given_rig(word, quiet=quiet) or _recorded(found)
    if camera is not None:
        return camera
    folders = {one.left.parent for one in found.frames if one.right is not None}
    beside = folders.pop() / _CALIBRATION if len(folders) == 1 else None
    if beside is None or not beside.is_file():
        raise _no_camera()
    if not quiet:
        say_step(f"Note: the camera is that of {beside}.")
    return rig_or_paper(str(beside), quiet=quiet)


def _no_camera() -> typer.BadParameter:
    return typer.BadParameter(
        "which camera took this? Give its rig file or its calibration file with --rig, or --rig "
        "paper for the paper's prototype; for any other rectified pair give --focal-length and "
        "--baseline."
    )


def _recorded(found: "FoundFiles") -> "Rig | None":
    """Rig that is attached to all recordings; None if there is none."""
    from d3s.camera.recording import Recording
    from d3s.errors import InputError
    from d3s.frames.source_names import RECORDING_SUFFIX

    rigs = []
    for path in dict.fromkeys(one.left for one in found.frames):
        if path.suffix.lower() != RECORDING_SUFFIX:
            return None
        with Recording(path) as recording:
            rigs.append(recording.rig())
    if any(rig != rigs[0] for rig in rigs):
        raise InputError("the recordings are of several cameras. Name one with --rig, or do each.")
    return rigs[0] if rigs else None


# Sources and places -------------------------------------------------------------------------------


def is_twin(word: str) -> bool:
    """Whether a source is the simulated camera."""
    return word.partition(":")[0] == _TWIN


def source_options(light: Light, grab: Grab, **more: Any) -> "SourceOptions":
    """Options of a source; `more` are further fields."""
    from d3s.frames import SourceOptions

    return SourceOptions(
        linear=light.linear,
        bayer=light.bayer,
        rate_hz=grab.rate,
        exposure_s=grab.exposure,
        gain=grab.gain,
        **more,
    )


def name_of(source: "Source", word: str) -> str:
    """Name of a camera for people; the word of any other source."""
    from d3s.camera.capture import LiveCamera

    return source.name or word if isinstance(source, LiveCamera) else word


def chosen_place(workers: int | None, scheduler: str | None) -> "Workers":
    """Place that --workers or --scheduler names; an impossible one is wrong use."""
    from d3s.batch.running import checked_workers

    if scheduler is not None:
        if workers is not None:
            raise typer.BadParameter(
                "--workers is for this machine and --scheduler for a cluster: leave one of them."
            )
        return scheduler
    with value_of("--workers"):
        checked_workers(workers)
    return workers


# d3s rig import -----------------------------------------------------------------------------------


def import_rig(
    files: list[Path],
    *,
    telling: Telling,
    output: Path = Path("rig.toml"),
    rectified: bool = False,
    swap: bool = False,
    unit: Unit = None,
    shape: Shape = None,
    fisheye: bool = False,
    name: str | None = None,
) -> None:
    """Make a rig file of the calibration of a stereo camera.

    Reads calib.txt of Middlebury, ETH3D and KITTI, YAML and XML of OpenCV, camchain YAML of Kalibr,
    CameraInfo YAML of ROS, and JSON of RealSense and OAK cameras. Lengths have the unit of the
    format; those of OpenCV are metres, unless --unit says otherwise.

    Options:
        files (FILE...): Calibration: one file, or those of the left and of the right camera, and of
            their rotation and translation.
        output (FILE): Rig file to write.
        rectified: The pictures are rectified already, by P of the files.
        swap: The first camera of the file is the right one.
        unit: Unit of lengths in the files, such as mm.
        fisheye: Files of OpenCV: distortion of cv2.fisheye.
        name: Name of the camera; that of the file if left.
    """
    from d3s.rig.imports import read_rig

    check_suffix(output, "--output", ".toml")
    found = read_rig(
        files, rectified=rectified, swap=swap, unit_m=unit, shape=shape, fisheye=fisheye
    )
    camera = found.rig if name is None else found.rig.replace(name=name)
    camera.save(output, overwrite=telling.force)
    for remark in found.remarks:
        say_step(f"Note: {remark}")
    facts = _facts(camera)
    if telling.as_json:
        remarks = list(found.remarks)
        say_json({"file": str(output), "format": found.format, **facts, "remarks": remarks})
    elif not telling.quiet:
        _print(found.format, facts)
        typer.echo(f"Rig file {output}: d3s depth LEFT RIGHT --rig {output}")


def _facts(camera: "Rig") -> Given:
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


def _print(kind: str, facts: Given) -> None:
    pictures = "rectified"
    if facts["rectifies"]:
        turns = " and ".join(f"{one:.2f}" for one in facts["turned_deg"])
        models = " and ".join(dict.fromkeys(facts["models"]))
        pictures = f"raw, {models}: to be rectified, by turns of {turns} degrees"
    point, shape = facts["principal_point_px"], facts["shape"]
    lines = {
        "focal length": f"{facts['focal_length_px']:.3f} px",
        "baseline": f"{1e3 * facts['baseline_m']:.3f} mm",
        "principal point": point and f"{point[0]:.3f}, {point[1]:.3f} px (left view)",
        "at infinity": f"{facts['disparity_offset_px']:.3f} px of disparity",
        "views": shape and f"{shape[0]} x {shape[1]} px (rows x columns)",
        "pictures": pictures,
    }
    typer.echo(f"{facts['name']}: {kind}")
    for name, value in lines.items():
        if value:
            typer.echo(f"  {name:16} {value}")
