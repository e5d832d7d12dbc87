"""`measure`: a raw frame and the design of the camera in, readings of the alignment out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3s.calibrate.fields import Half
from d3s.camera.align.focus import (
    Sharpness,
    both_halves,
    focus_reading,
    measure_focus,
    measure_sharpness,
)
from d3s.camera.align.geometry import (
    HalfTransform,
    Matched,
    axes_frame,
    fit_geometry,
    gain_reading,
    geometry_readings,
    match_halves,
)
from d3s.camera.align.light import FrameLight, light_readings, measure_light
from d3s.camera.align.quantities import Reading, unknown
from d3s.errors import InputError
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.rig.bayer import check_order, luminance
from d3s.rig.split import checked_frame
from d3s.types import FloatArray, Image

SHARPNESS_LIMIT = 0.1
"""Largest loss of sharpness against the best, of the best."""
_SMALLEST_FRAME_PX = 64
_MIDDLE_GROUP = 4.0  # of the ninths of a field
_NO_SHARPNESS = Sharpness(np.empty((0, 2)), np.empty(0), np.empty(0))
_NO_MATCH = Matched(np.empty((0, 2)), np.empty((0, 2)), np.empty(0))
_NEVER_SHARP = "turn the focus through its sharpest point once: the best is not known yet"


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """Alignment of a camera as one frame shows it."""

    readings: Mapping[str, Reading]  # by name, as in `quantities.KINDS`
    shape: tuple[int, int]  # rows and columns of the frame
    light: FrameLight
    matched: Matched
    sharpness: Sharpness
    distance_m: float | None  # of the scene: typed, or from the calibration
    problem: str  # why the halves could not be compared; empty if they could

    def __getitem__(self, name: str) -> Reading:
        return self.readings[name]


def measure(
    raw: Any,
    rig: Rig,
    *,
    distance_m: float | None = None,
    left_lens: Half = "right",
    bayer: str | None = None,
) -> Alignment:
    """Measure the alignment of a camera from one raw frame.

    Parameters
    ----------
    raw
        Raw frame, (rows, cols), with full scale 1, or of whole numbers with theirs.
    rig
        The camera as designed. If it is calibrated, rows, roll and scale should be as calibrated,
        and its disparity tells the distance.
    distance_m
        Distance of the wall or board in the middle of the frame, if it is known.
    left_lens
        Half of the upright frame that the left lens lights.
    bayer
        Order of the colours of a colour sensor, such as "RGGB"; as the rig has it if left.

    Returns
    -------
    Alignment
        Each quantity with its standard deviation, target, state and advice.

    Raises
    ------
    InputError
        If the frame or the distance is no such thing.

    Examples
    --------
    >>> import d3s
    >>> from d3s.camera.align import measure
    >>> optics = d3s.Rig.paper_prototype().optics.replace(pixel_pitch_m=8e-6)
    >>> layout = d3s.RawLayout(rows_px=540, cols_px=960, field_radius_px=265, partition_px=16)
    >>> low = d3s.Mount(shift_y_px=9.0)
    >>> wall = d3s.Plane(depth_m=0.5, texture="leaves")
    >>> rig = d3s.Rig(optics=optics)
    >>> frame = d3s.simulate_raw(wall, rig, layout=layout, mounts=(d3s.Mount(), low), noise=0.01)
    >>> reading = measure(frame.image, rig)["rows_px"]
    >>> print(f"{reading.value:.0f} px: {reading.state}")
    9 px: turn
    """
    if not isinstance(rig, Rig):
        raise InputError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    if distance_m is not None and not 0 < distance_m < 1e4:
        raise InputError(f"distance_m={distance_m!r} must be above 0: it is in metres.")
    image = _grey(raw, rig, bayer)
    light = measure_light(image, left_lens)
    rows, cols = image.shape
    optics = rig.optics
    readings = light_readings(light, (rows, cols), optics.pixel_pitch_m)
    middle = (cols - 1) / 2 if light.shadow is None else light.shadow.column_px
    side = 1 if left_lens == "right" else -1
    frame = axes_frame(optics, rig.calibration, (rows, cols), middle_px=middle, left_side=side)
    matched = _NO_MATCH if light.fields is None else match_halves(image, light.fields)
    geometry = fit_geometry(matched, frame) if matched.size else None
    problem = light.problem or matched.problem
    vergences, is_known, distance_m = _vergences(geometry, rig, distance_m)
    readings += geometry_readings(geometry, frame, optics, problem=problem, distance_m=distance_m)
    readings.append(gain_reading(image, light, matched, geometry, frame))
    sharpness, focus = _NO_SHARPNESS, None
    if light.fields is not None and geometry is not None:
        seen = both_halves(image, light.fields, matched)
        sharpness = measure_sharpness(seen)
        focus = measure_focus(seen, vergences, optics, is_known=is_known)
    readings += sharpness_readings(sharpness, (None, None), problem)
    readings.append(focus_reading(focus, optics, problem))
    return Alignment(
        readings={one.name: one for one in readings},
        shape=(rows, cols),
        light=light,
        matched=matched,
        sharpness=sharpness,
        distance_m=distance_m,
        problem=problem,
    )


def _grey(raw: Any, rig: Rig, bayer: str | None) -> Image:
    """Frame with full scale 1, the luminance of a colour sensor; 0 where there is no number."""
    values, unit = checked_frame(raw)
    if min(values.shape) < _SMALLEST_FRAME_PX:
        raise InputError(
            f"raw has shape {values.shape}: a frame of two views has at least "
            f"{_SMALLEST_FRAME_PX} rows and columns."
        )
    frame = np.multiply(values, np.float32(unit), dtype=np.float32)
    if not np.isfinite(frame.sum(dtype=np.float64)):
        frame = np.nan_to_num(frame, nan=0.0, posinf=1.0, neginf=0.0)
    order = bayer
    if order is None and rig.calibration is not None:
        order = rig.calibration.bayer
    if order is None or order == "none":
        return np.asarray(frame)
    gains = None if rig.calibration is None else rig.calibration.channel_gains
    return luminance(frame, check_order(order), gains)


def _vergences(
    geometry: HalfTransform | None, rig: Rig, distance_m: float | None
) -> tuple[FloatArray, bool, float | None]:
    """1/Z of each match, whether it is known, and the distance of the scene."""
    if geometry is None:
        return np.empty(0), False, distance_m
    optics = rig.optics
    per_dpt = optics.focal_length_px * optics.baseline_m
    # The typed distance is that of what is in the middle of the field.
    in_middle = geometry.groups == _MIDDLE_GROUP
    middle_px = np.median(geometry.disparity_px[in_middle if in_middle.any() else slice(None)])
    away = (geometry.disparity_px - middle_px) / per_dpt
    if distance_m is not None:
        return away + 1 / distance_m, True, distance_m
    if geometry.is_absolute:
        vergences = (geometry.disparity_px - optics.disparity_offset_px) / per_dpt
        middle = float(np.median(vergences))
        return vergences, True, 1 / middle if middle > 0 else None
    return away, False, None


def sharpness_readings(
    sharpness: Sharpness, best: Sequence[float | None], problem: str
) -> list[Reading]:
    """Readings of the sharpness of both halves, as a share of the best so far, if it is known."""
    readings = []
    for camera, name in enumerate(("sharpness_left", "sharpness_right")):
        (value, sigma), top = sharpness.of(camera), best[camera]
        if not np.isfinite(value):
            reason = problem or "no fine texture: show fine print, and add light"
            readings.append(unknown(name, 1.0, SHARPNESS_LIMIT, reason))
        elif top is None:
            reading = unknown(name, 1.0, SHARPNESS_LIMIT, _NEVER_SHARP)
            readings.append(reading._replace(note=f"band ratio {value:.2f}"))
        else:
            share = value / max(top, 1e-12)
            note = f"band ratio {value:.2f}, best {top:.2f}"
            found = Reading(name, share, sigma / value * share, 1.0, SHARPNESS_LIMIT, note=note)
            readings.append(found)
    return readings
