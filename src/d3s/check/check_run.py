"""`check`: a rig and ordinary frames in, a report of what has drifted out."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from d3s.check.check_report import CheckReport, FrameSummary, Map
from d3s.check.compared_blocks import ComparedBlocks, compare_blocks
from d3s.check.drift import (
    MIDDLE_DPT,
    RULER_M,
    WallOffset,
    checked_distances,
    coarse_drift,
    measure_drift,
    measure_walls,
    wall_of,
)
from d3s.check.drift_quantities import KINDS, Quantity
from d3s.check.mend import mended
from d3s.check.noise_and_spots import find_spots, measure_noise
from d3s.errors import InputError
from d3s.estimate.methods import estimate_quietly
from d3s.frames import Frame
from d3s.rig import Rig
from d3s.rig.bayer import MONO, unsaid_warning
from d3s.rig.split import checked_frame
from d3s.types import Image, Progress
from d3s.version import __version__

ROUNDS = 4
"""Most rounds: a drift is taken out before it is measured again, until nothing is left."""

_IN_VIEWS = ("rows_px", "roll_rad", "scale", "gain", "shading_x", "shading_y", "shading_r")
_IN_RIG = (*_IN_VIEWS, "turn_rad", "focus_dpt")


class _Round(NamedTuple):
    """One measurement of all frames."""

    blocks: list[ComparedBlocks]
    walls: list[WallOffset | None]
    densities: list[float]
    shape: tuple[int, int]


def check(
    rig: Rig,
    frames: Iterable[Any],
    *,
    distances_m: Sequence[float] = (),
    distance_sigma_m: float = RULER_M,
    progress: Progress | None = None,
) -> CheckReport:
    """Find what has drifted since a rig was calibrated, from ordinary frames.

    Depth is estimated, and the views are compared at their matches: rows that disagree tell of
    rows, roll and scale, brightness of gain and flat field, blur of focus. All frames count
    together; the standard deviations are from the scatter of the frames.

    Parameters
    ----------
    rig
        The camera, as it was calibrated.
    frames
        Raw frames of the camera, or pairs (left, right) of rectified views; best ten or more, of
        different scenes with texture, near and far.
    distances_m
        If the frames show a wall square to the axis: its distance from the plane of the lenses, or
        one for each frame. One distance tells the disparity of infinity, two the focal length times
        baseline too.
    distance_sigma_m
        Standard deviation of these distances.
    progress
        Called with (frames measured, frames to measure).

    Returns
    -------
    CheckReport
        Each quantity with its standard deviation and state, a verdict, and the mended rig.

    Raises
    ------
    InputError
        If there are no frames, or they do not fit the rig.

    Examples
    --------
    >>> import d3s
    >>> rig = d3s.Rig.paper_prototype()
    >>> scenes = [d3s.RandomScene(seed=seed, patterns=("stone",)) for seed in range(3)]
    >>> pairs = [d3s.simulate(one, rig, noise=0.01, shape=(240, 320)) for one in scenes]
    >>> report = d3s.check(rig, [(pair.left, pair.right) for pair in pairs])
    >>> report["rows_px"].state
    'steady'
    """
    if not isinstance(rig, Rig):
        raise InputError(f"rig={rig!r} must be a Rig. Read a rig file with Rig.load.")
    if not 0 < distance_sigma_m < 1:
        raise InputError(f"distance_sigma_m={distance_sigma_m:g} must be above 0 and below 1 m.")
    given = as_frames(frames)
    distances = checked_distances(distances_m, len(given))
    applied: dict[str, float] = {}
    rounds: list[_Round] = []
    for number in range(ROUNDS):
        done = number * len(given)
        walls = distances, distance_sigma_m
        rounds.append(_measured(rig, given, applied, walls, progress, done))
        found = rounds[-1]
        current = _rig_of(rig, given, applied)
        quantities = measure_drift(found.blocks, current, found.shape)
        step = _to_take_out(quantities, rig, given, current)
        if number == 0 and any(one.name == "rows_px" and one.reason for one in quantities):
            step = coarse_drift([mended_views(frame, rig, applied) for frame in given])
        if not step or number == ROUNDS - 1:
            break
        applied = {name: applied.get(name, 0.0) + step.get(name, 0.0) for name in applied | step}
    if progress is not None:
        progress(ROUNDS * len(given), ROUNDS * len(given))
    if distances:
        quantities += measure_walls(found.walls, current)
    raws = [frame.raw for frame in given if frame.raw is not None]
    quantities += [measure_noise(raws, rig.calibration), find_spots(raws, rig.calibration)]
    return _report(rig, given, applied, quantities, rounds[0], distances)


def _measured(
    rig: Rig,
    frames: list[Frame],
    applied: dict[str, float],
    walls: tuple[tuple[float, ...], float],
    progress: Progress | None,
    done: int,
) -> _Round:
    """Estimate and compare all frames, with what is known of the drift taken out."""
    blocks, found_walls, densities = [], [], []
    shape: tuple[int, int] | None = None
    camera = _rig_of(rig, frames, applied)
    distances, ruler_m = walls
    for number, frame in enumerate(frames):
        left, right = mended_views(frame, rig, applied)
        if shape is not None and left.shape != shape:
            raise InputError(
                f"{frame.name} has views of {left.shape}, and those before have {shape}. Check "
                "frames of one camera and mode together."
            )
        shape = left.shape[0], left.shape[1]
        depth_map = estimate_quietly(left, right, camera, options={"align_views": False})
        blocks.append(compare_blocks(left, right, depth_map, camera))
        densities.append(depth_map.density)
        if distances:
            found_walls.append(wall_of(depth_map, distances[number], ruler_m))
        if progress is not None:
            progress(done + number + 1, ROUNDS * len(frames))
    return _Round(blocks, found_walls, densities, shape or (0, 0))


def _is_raw(frames: list[Frame]) -> bool:
    return all(frame.views is None for frame in frames)


def _rig_of(rig: Rig, frames: list[Frame], applied: dict[str, float]) -> Rig:
    """Rig of the views: that of raw frames is mended, that of views keeps its rectification."""
    if _is_raw(frames):
        return mended(rig, applied)
    return mended(rig, {name: one for name, one in applied.items() if name == "focus_dpt"})


def _to_take_out(
    quantities: list[Quantity], rig: Rig, frames: list[Frame], current: Rig
) -> dict[str, float]:
    """Drifts that are certain, to take out before the next round."""
    names = _IN_RIG if _is_raw(frames) and rig.calibration is not None else _IN_VIEWS
    step = {one.name: one.value for one in quantities if one.state == "drifted"}
    step = {name: value for name, value in step.items() if name in names}
    if "turn_rad" in step:
        step["rows_px"] = step.get("rows_px", 0.0) + _rows_of_turn(step["turn_rad"], current)
    return step


def _rows_of_turn(turn_rad: float, rig: Rig) -> float:
    """Rows to add when a turn is taken out: rows are measured in the middle of the depths."""
    return turn_rad * rig.optics.focal_length_px * rig.optics.baseline_m * MIDDLE_DPT


def _report(
    rig: Rig,
    frames: list[Frame],
    applied: dict[str, float],
    quantities: list[Quantity],
    first: _Round,
    distances: tuple[float, ...],
) -> CheckReport:
    turned = _rows_of_turn(applied.get("turn_rad", 0.0), rig)
    total = {**applied, "rows_px": applied.get("rows_px", 0.0) - turned}
    whole = [one._replace(value=one.value + total.get(one.name, 0.0)) for one in quantities]
    order = list(KINDS)
    whole.sort(key=lambda one: order.index(one.name))
    summaries = tuple(
        FrameSummary(
            frame.name or f"frame {frame.number}",
            blocks.size,
            density,
            float(np.median(blocks.rows_px)) if blocks.size else float("nan"),
            float(np.median(blocks.light)) if blocks.size else float("nan"),
            distances[number] if distances else None,
        )
        for number, (frame, blocks, density) in enumerate(
            zip(frames, first.blocks, first.densities, strict=True)
        )
    )
    parts = [np.concatenate(part) for part in zip(*first.blocks, strict=True)]
    everywhere = ComparedBlocks(*parts)
    turn = next((one.value for one in whole if one.name == "turn_rad"), 0.0)
    return CheckReport(
        rig=rig,
        quantities=tuple(whole),
        frames=summaries,
        shape=first.shape,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        rows_offset_px=_rows_of_turn(turn, rig),
        map=Map(everywhere.x_px, everywhere.y_px, everywhere.rows_px, everywhere.light),
        notes=_notes(rig, frames, has_walls=bool(distances)),
    )


def _notes(rig: Rig, frames: list[Frame], *, has_walls: bool) -> tuple[str, ...]:
    """Remarks on the frames, each once; that colours were not said, and what was not checked."""
    notes = [note for frame in frames for note in frame.remarks]
    if rig.calibration is not None and rig.calibration.bayer is None:
        raws = [frame for frame in frames if frame.raw is not None]
        warned = [note for frame in raws for note in frame.warnings]
        if raws and not warned:
            words = unsaid_warning(np.asarray(raws[0].raw), is_quick=True)
            warned = [f"{raws[0].name or 'the first frame'} {words}"] if words else []
        notes += warned[:1]
    if not has_walls:
        notes.append(
            "Disparity was not checked: only a wall at a known distance shows whether it has "
            "drifted (--distance, or distances_m in Python)."
        )
    return tuple(dict.fromkeys(notes))


def as_frames(frames: Iterable[Any]) -> list[Frame]:
    """Return frames of any of the forms that `check` takes: arrays, pairs, or `Frame`."""
    if isinstance(frames, np.ndarray) and frames.ndim == 2:
        frames = [frames]
    found = [_as_frame(number, one) for number, one in enumerate(frames)]
    if not found:
        raise InputError("there are no frames. Give one or more, best ten of different scenes.")
    return found


def _as_frame(number: int, one: Any) -> Frame:
    if isinstance(one, Frame):
        return one
    name = f"frame {number}"
    is_array = isinstance(one, np.ndarray)
    if not is_array and hasattr(one, "left") and hasattr(one, "right"):
        one = one.left, one.right
    if not is_array and isinstance(one, tuple | list) and len(one) == 2:
        left, right = (_image(view, f"a view of {name}") for view in one)
        if left.shape != right.shape:
            raise InputError(f"{name} has views of {left.shape} and {right.shape}: give one size.")
        return Frame(number=number, name=name, views=(left, right))
    return Frame(number=number, name=name, raw=_image(one, name))


def _image(values: Any, name: str) -> Image:
    scaled = checked_frame(values, name)
    return np.asarray(scaled.values * np.float64(scaled.unit), dtype=np.float32)


def mended_views(frame: Frame, rig: Rig, drift: Mapping[str, float]) -> tuple[Image, Image]:
    """Left and right view of a frame, as the mended rig would make them.

    The drift has the names of `d3s.check.drift_quantities.KINDS`; the rig is as it was before.
    """
    if frame.views is None:
        own = None if rig.calibration is None else rig.calibration.bayer
        return mended(rig, drift).split(frame.raw, bayer=own or MONO)  # a note warns of others
    left, right = frame.views
    return left, _moved(right, drift) if drift else right


def _moved(view: Image, drift: Mapping[str, float]) -> Image:
    """Right view, resampled where it has drifted to, and divided by the change of its light."""
    import cv2  # imported here: slow to load

    rows, cols = view.shape
    middle = np.array([cols - 1, rows - 1]) / 2
    size, roll = 1 + drift.get("scale", 0.0), drift.get("roll_rad", 0.0)
    linear = size * np.array([[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]])
    start = middle - linear @ middle + np.array([0.0, drift.get("rows_px", 0.0)])
    flags = cv2.INTER_LANCZOS4 | cv2.WARP_INVERSE_MAP
    moved = cv2.warpAffine(
        view,
        np.column_stack([linear, start]),
        (cols, rows),
        flags=flags,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=float("nan"),
    )
    x, y = (np.arange(cols) - middle[0])[np.newaxis], (np.arange(rows) - middle[1])[:, np.newaxis]
    half = max(rows, cols) / 2
    light = 1 + drift.get("gain", 0.0) + drift.get("shading_x", 0.0) * x / half
    light = light + drift.get("shading_y", 0.0) * y / half
    light = light + drift.get("shading_r", 0.0) * (x * x + y * y) / half**2
    return np.asarray(moved / light, dtype=np.float32)
