"""`calibrate`: the steps of a calibration in their order, then a cross-validation.

The order is in `_run_steps`. Each step is a function of typed arguments that returns a frozen
result. The `Report` collects the results: a failed calibration still reports the steps before.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d3s.calibrate.alignment import AlignedMatches, Setup, align_views, calibration_of, draft_rig
from d3s.calibrate.calibration_report import Report
from d3s.calibrate.captures import captures_of, read_captures
from d3s.calibrate.distance_table import FEWEST_FRAMES
from d3s.calibrate.fields import Box, Fields, Half, find_fields
from d3s.calibrate.frames import Captures, Thumbnails
from d3s.calibrate.sensor_noise import find_noise
from d3s.calibrate.steps import (
    PERCENT,
    Percent,
    cross_validate,
    field_residuals,
    tune_rig,
    with_sigma,
)
from d3s.calibrate.validation import widened_depth_range_m
from d3s.errors import CalibrationError, CapturesError, D3SError, InputError
from d3s.estimate.candidates import default_depth_range_m
from d3s.record import short_repr
from d3s.rig import Optics, Provenance, Rig
from d3s.types import Progress
from d3s.version import __version__


def calibrate(
    captures: str | os.PathLike[str] | Sequence[Any] | NDArray[Any],
    distances_m: Sequence[float] | NDArray[Any] | None = None,
    *,
    design: Rig | None = None,
    left_lens: Half = "right",
    regions: tuple[Box, Box] | None = None,
    fit_ruler: bool | None = None,
    as_printed: bool = False,
    name: str = "calibrated camera",
    bayer: str | None = None,
    linear: bool | None = None,
    progress: Progress | None = None,
) -> tuple[Rig, Report]:
    """Calibrate a camera from raw frames of a board at known distances.

    Parameters
    ----------
    captures
        A folder of raw frames with distances.csv, or raw frames as arrays, (rows, cols) each: uint8
        or uint16 of their full scale, or floats with full scale 1. 5 to 400 frames.
    distances_m
        Distance of the board in each frame, in metres, from near to far or from far to near. Only
        with frames as arrays.
    design
        The camera as built: its pixel pitch, sensor distance and aperture are taken as true.
        Default: the paper's prototype.
    left_lens
        The half of the upright frame that the left lens lights.
    regions
        (row, col, rows, cols) in pixels of the fields of the left and the right lens. Default:
        found from the light in the frames.
    fit_ruler
        True: find the offset of the ruler and apply it. False: do not apply it. None: apply it
        where it exceeds four standard deviations and half a millimetre.
    as_printed
        Whether to find anchors and rectification as the supplement of the paper does, by Eqs. S6
        and S7, for lenses without distortion. It is less accurate.
    name
        Name of the camera in the rig file.
    bayer
        Colours of the first 2 x 2 pixels of a colour sensor, as its data sheet has them: "RGGB",
        "BGGR", "GRBG" or "GBRG". "none" for a mono sensor. Default: a mono sensor, and frames that
        look like those of a colour sensor are refused.
    linear
        Whether integers in files are proportional to the light. Default: those of grey images are;
        of colour images the sRGB curve is undone.
    progress
        Called with the percent that is done, and 100.

    Returns
    -------
    tuple
        The calibrated camera, and the results of all steps with a verdict.

    Raises
    ------
    CapturesError, InputError, RigError
        If the frames, their distances or an argument cannot be used.
    CalibrationError
        If a step found nothing; its `report` says why. A rig with a doubtful measure is returned:
        `report.verdict` is then provisional, and so is the rig's own provenance.

    Examples
    --------
    Simulate a camera with a small sensor before a board at five distances, and calibrate it:

    >>> import d3s
    >>> paper = d3s.Rig.paper_prototype()
    >>> design = paper.replace(optics=paper.optics.replace(pixel_pitch_m=9e-6))
    >>> layout = d3s.RawLayout(rows_px=430, cols_px=860, field_radius_px=212.0, field_edge_px=6.0)
    >>> distances_m = [0.3, 0.36, 0.43, 0.51, 0.6]
    >>> frames = [
    ...     d3s.simulate_raw(
    ...         d3s.Plane(depth_m=distance_m, texture="calibration"),
    ...         design,
    ...         noise=0.01,
    ...         seed=number,
    ...         layout=layout,
    ...     ).image
    ...     for number, distance_m in enumerate(distances_m)
    ... ]
    >>> rig, report = d3s.calibrate(frames, distances_m, design=design)
    >>> print(f"baseline {1e3 * rig.optics.baseline_m:.1f} mm, {report.verdict.grade}")
    baseline 3.8 mm, provisional
    """
    built = _checked_design(design)
    built.replace(name=name)  # refuse a bad name before the work
    percent = Percent(progress, PERCENT)
    frames = _read(captures, distances_m, bayer, linear, percent.of("reading"))
    pictures = Thumbnails(frames)
    provenance = Provenance(
        residuals={},
        input_sha256=pictures.captures().digests,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        d3s_version=__version__,
    )
    setup = Setup(built, fit_ruler, name, provenance, frames.sensor, as_printed=as_printed)
    return _run_steps(pictures, setup, left_lens, regions, progress)


def _run_steps(
    pictures: Thumbnails,
    setup: Setup,
    left_lens: Half,
    regions: tuple[Box, Box] | None,
    progress: Progress | None,
) -> tuple[Rig, Report]:
    """All steps in their order; an error of a later step carries the report of those before."""
    captures, percent = pictures.captures(), Percent(progress, PERCENT)
    seconds: dict[str, float] = {}
    try:
        with _timed("fields", seconds):
            fields = find_fields(captures, left_lens=left_lens, boxes=regions)
        percent.finish("fields")
        with _timed("matches, anchors, rectification, geometry", seconds):
            alignment = align_views(captures, fields, setup, percent.of("matches"))
    except CalibrationError as error:  # other captures are needed
        raise CapturesError(str(error)) from error
    report = _begin_report(pictures, setup, fields, alignment, seconds)
    try:
        with _timed("noise", seconds):
            noise = find_noise(captures, fields)
        report = replace(report, noise=noise)
        draft = draft_rig(setup, alignment, fields, noise, captures.shape)
        report = replace(report, rig=draft)
        with _timed("lenses, tuning, virtual baselines", seconds):
            tuned = tune_rig(captures, alignment, fields, noise, setup, percent)
        alignment = tuned.lenses.alignment
        remarks = report.remarks + _depth_range_remark(alignment.depths_m, tuned.rig.optics)
        report = replace(
            report,
            remarks=remarks,
            rig=tuned.rig,
            illumination=tuned.lenses.illumination,
            defocus=tuned.lenses.defocus,
            focus_map=tuned.lenses.focus_map,
            disparity_map=tuned.lenses.disparity_map,
            tuning=tuned.tuning,
            baselines=tuned.baselines,
            **alignment._asdict(),
        )
        cells = None
        if len(alignment.frames[::2]) >= FEWEST_FRAMES:
            with _timed("cross-validation", seconds):
                coma = tuned.lenses.coma
                tested = cross_validate(captures, alignment, fields, noise, coma, setup, progress)
            cells = tested.cells
            report = replace(
                report,
                validation=tested.validation,
                field_residuals=None if cells is None else field_residuals(cells, alignment),
                remarks=report.remarks + tested.remarks,
            )
        # The rig file has the residuals, by which the calibration can be judged again.
        rig = with_sigma(tuned.lenses, cells)
        calibration = calibration_of(rig)
        provenance = calibration.provenance.replace(
            residuals=report.residuals, verdict=report.verdict.line
        )
        rig = rig.replace(calibration=calibration.replace(provenance=provenance))
        return rig, replace(report, rig=rig, lens_maps=calibration.lenses)
    except D3SError as error:
        raise CalibrationError(str(error), replace(report, problem=str(error))) from error


def _begin_report(
    pictures: Thumbnails,
    setup: Setup,
    fields: Fields,
    alignment: AlignedMatches,
    seconds: dict[str, float],
) -> Report:
    """Report of the steps up to the geometry; its times are filled in as the steps end."""
    captures = pictures.captures()
    return Report(
        name=setup.name,
        version=__version__,
        created=setup.provenance.created,
        names=captures.names,
        distances_m=np.array(captures.distances_m),
        shape=captures.shape,
        not_read=captures.left_out,
        remarks=captures.remarks,
        thumbnails=pictures.thumbnails,
        overview=pictures.overview,
        timings_s=seconds,
        fields=fields,
        **alignment._asdict(),
    )


def _depth_range_remark(depths_m: Sequence[float], optics: Optics) -> tuple[str, ...]:
    """Remark that boards stood outside the default depth range of this camera, if they did."""
    widened_m = widened_depth_range_m(optics, depths_m)
    if widened_m is None:
        return ()
    nearest_m, farthest_m = default_depth_range_m(optics)
    return (
        f"Boards were from {min(depths_m):.2f} to {max(depths_m):.2f} m, and with this camera "
        f"depth is looked for from {nearest_m:.2f} to {farthest_m:.2f} m unless told otherwise: "
        f"the test was told depth_range_m=({widened_m[0]:.2f}, {widened_m[1]:.2f}).",
    )


def _read(
    captures: Any,
    distances_m: Any,
    bayer: str | None,
    linear: bool | None,
    progress: Progress | None,
) -> Captures:
    if isinstance(captures, str | os.PathLike):
        if distances_m is not None:
            raise InputError(
                "distances_m is for frames as arrays: those of a folder are in its distances.csv. "
                "Leave it."
            )
        return read_captures(captures, bayer=bayer, linear=linear, progress=progress)
    if linear is not None:
        raise InputError("linear is for files of a folder: arrays are taken as they are. Leave it.")
    if distances_m is None:
        raise InputError("distances_m must be given with frames as arrays, one for each.")
    return captures_of(captures, distances_m, bayer=bayer, progress=progress)


def _checked_design(design: Any) -> Rig:
    if design is None:
        return Rig.paper_prototype()
    if not isinstance(design, Rig):
        raise InputError(
            f"design={short_repr(design)} must be a Rig. Read a rig file with Rig.load."
        )
    if design.optics.aperture_radius_m == 0:
        raise InputError(
            f"the design {design.name!r} is a pinhole pair, with aperture_radius_m=0: this "
            "calibration is for two lenses in front of one sensor."
        )
    return design


@contextmanager
def _timed(step: str, seconds: dict[str, float]) -> Iterator[None]:
    """Add the wall time of a step to `seconds`."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        seconds[step] = time.perf_counter() - begin
