"""Calibration of filed captures: a rig file and a report beside them, nothing replaced."""

from pathlib import Path

from d3s.calibrate import Report, calibrate
from d3s.calibrate.fields import Half
from d3s.camera.align.filing import CaptureFolder
from d3s.camera.align.session import Calibrate, Calibrated
from d3s.errors import CalibrationError
from d3s.lab.view.calibration import report_page, write_report
from d3s.rig import Rig
from d3s.types import Progress

_STEM = "rig"


def calibration_of(
    design: Rig, *, left_lens: Half = "right", bayer: str | None = None, name: str | None = None
) -> Calibrate:
    """Calibration of a folder of captures, for `Session`.

    It writes rig.toml, rig.html and rig.json into the folder; with a number if they exist.

    Parameters
    ----------
    design
        Rig of the camera as it was built.
    left_lens
        Half of the upright frame that the left lens lights.
    bayer
        Order of the colours of a colour sensor; found if left.
    name
        Name of the camera; that of the folder if left.
    """
    built = Rig(optics=design.optics, name=design.name)

    def run(folder: Path, progress: Progress) -> Calibrated:
        rig, problem = None, ""
        try:
            rig, report = calibrate(
                folder,
                design=built,
                left_lens=left_lens,
                bayer=bayer,
                name=name or folder.resolve().name,
                progress=progress,
            )
        except CalibrationError as error:
            if not isinstance(error.report, Report):
                raise
            problem, report = str(error), error.report
        stem = CaptureFolder(folder).free_path(_STEM, (".toml", ".html", ".json"))
        page_path = stem.with_name(stem.name + ".html")
        rig_path = None if rig is None else stem.with_name(stem.name + ".toml")
        if rig is not None and rig_path is not None:
            rig.save(rig_path)
        write_report(report, page_path)
        return Calibrated(
            values=report.as_json()["verdict"],
            page=report_page(report),
            rig_path=rig_path,
            page_path=page_path,
            problem=problem,
        )

    return run
