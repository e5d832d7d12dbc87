"""Light of a raw frame: exposure of both halves, the shadow of the partition, and both fields."""

from typing import NamedTuple

import numpy as np

from d3s.calibrate.fields import DARKEST_SHARE, Fields, Half, find_fields
from d3s.calibrate.frames import Captures
from d3s.camera.align.quantities import Reading, unknown
from d3s.errors import CalibrationError
from d3s.types import FloatArray, Image

# Brightness of white parts, of full scale: room for noise above, and little noise below.
WHITE, WHITE_LIMIT = 0.6, 0.32
CLIPPED_LIMIT = 0.005  # share of clipped pixels: a lamp or a screw may clip a few
PARTITION_SHARE = 0.005  # of the width of the frame: largest distance from the middle
FIELDS_LIMIT = 0.1  # difference of the areas of both fields
_FULL = 0.998  # of full scale: a pixel from here on is clipped
_STEP_PX = 4  # every fourth row is enough for statistics of light
_WHITE_PERCENT = 99.0
_COLUMN_PERCENT = 98.0  # over the rows of a column: the light on white parts
_REACH_SHARE = 0.05  # of the width: columns beside the shadow that tell the full light
_SMOOTH_PX = 4.0  # sigma of the smoothing along the columns of the profile
_SHADOW_SIGMA_PX = 0.5  # least standard deviation of its place: texture changes the light
_SHADOW_SIGMA_SHARE = 0.04  # and this share of its width, from frames of tuning textures
# Columns beside the shadow that tell the full light, as shares of the reach.
_BESIDE = (0.2, 0.85)
_DARKNESS_SIGMA = 0.02
_FIELDS_SIGMA = 0.02


class HalfLight(NamedTuple):
    """Exposure of the half of one lens, of full scale."""

    white: float  # brightness of white parts
    clipped: float  # share of pixels


class Shadow(NamedTuple):
    """Shadow of the partition."""

    column_px: float  # its middle in the frame
    width_px: float  # between the places of half light
    light: float  # in its darkest column, of the light beside it


class FrameLight(NamedTuple):
    """Light of one frame; fields and shadow are None if there are not two fields."""

    halves: tuple[HalfLight, HalfLight]  # left and right lens
    fields: Fields | None
    shadow: Shadow | None
    problem: str  # why there are no two fields


def measure_light(image: Image, left_lens: Half = "right") -> FrameLight:
    """Measure exposure, fields and partition of a raw frame."""
    rows, cols = image.shape
    one = Captures(
        names=("frame",), distances_m=(1.0,), shape=(rows, cols), source=lambda _number: image
    )
    fields, shadow, problem = None, None, ""
    middle = cols / 2
    try:
        fields = find_fields(one, left_lens=left_lens)
        shadow = _shadow(image, fields)
        middle = shadow.column_px
    except CalibrationError as error:
        problem = str(error)
    split = int(np.clip(round(middle), 1, cols - 1))
    halves = [_half(part) for part in (image[:, :split], image[:, split:])]
    if left_lens == "right":
        halves.reverse()
    return FrameLight((halves[0], halves[1]), fields, shadow, problem)


def _half(part: Image) -> HalfLight:
    some = part[::_STEP_PX]
    white = float(np.percentile(some[:, ::_STEP_PX], _WHITE_PERCENT))
    top = max(float(some.max()), 1e-9)
    # A sensor may clip below full scale: then many pixels have exactly the largest value.
    level = _FULL if top >= _FULL else top
    share = float(np.count_nonzero(some >= level)) / some.size
    is_clipped = top >= _FULL or share > CLIPPED_LIMIT
    return HalfLight(white, share if is_clipped else 0.0)


def _shadow(image: Image, fields: Fields) -> Shadow:
    """Shadow from the light of its columns, to a pixel or two; `fields` has it to a cell."""
    from scipy.ndimage import gaussian_filter1d

    rough = fields.partition_px or image.shape[1] / 2
    reach = max(round(_REACH_SHARE * image.shape[1]), 16)
    first = max(round(rough) - 2 * reach, 0)
    last = min(round(rough) + 2 * reach, image.shape[1])
    low = max(fields.left.row, fields.right.row)
    high = min(fields.left.row + fields.left.rows, fields.right.row + fields.right.rows)
    part = image[low : high : _STEP_PX // 2, first:last]
    black = float(np.percentile(image[::16, ::16], 1))
    light = np.maximum(np.percentile(part, _COLUMN_PERCENT, axis=0) - black, 0)
    light = gaussian_filter1d(light, min(_SMOOTH_PX, reach / 8))
    centre = round(rough) - first
    near = slice(max(centre - reach // 2, 0), centre + reach // 2 + 1)
    darkest = near.start + int(np.argmin(light[near]))
    edges = [_edge(light[: darkest + 1][::-1], reach), _edge(light[darkest:], reach)]
    beside = min(edge[1] for edge in edges)
    left, right = darkest - edges[0][0], darkest + edges[1][0]
    share = float(light[darkest]) / max(beside, 1e-9)
    return Shadow(first + (left + right) / 2, right - left, share)


def _edge(light: FloatArray, reach: int) -> tuple[float, float]:
    """Columns from the darkest one to half of the light beside the shadow, and this light."""
    first, last = (round(share * reach) for share in _BESIDE)
    beside = float(np.median(light[first:last])) if light.size > last else 0.0
    half = (float(light[0]) + beside) / 2
    above = np.flatnonzero(light > half)
    if not above.size or above[0] == 0:
        return 0.0, beside
    stop = int(above[0])
    before, after = float(light[stop - 1]), float(light[stop])
    return stop - 1 + (half - before) / max(after - before, 1e-12), beside


def light_readings(
    light: FrameLight, shape: tuple[int, int], pixel_pitch_m: float
) -> list[Reading]:
    """Readings of exposure, partition and fields."""
    found = []
    for name, half in zip(("left", "right"), light.halves, strict=True):
        found.append(Reading(f"white_{name}", half.white, 0.01, WHITE, WHITE_LIMIT))
        found.append(Reading(f"clipped_{name}", half.clipped, 1e-4, 0.0, CLIPPED_LIMIT))
    limit_px = PARTITION_SHARE * shape[1]
    if light.shadow is None or light.fields is None:
        reason = light.problem
        return [
            *found,
            unknown("partition_px", 0.0, limit_px, reason),
            unknown("partition_light", 0.0, DARKEST_SHARE, reason),
            unknown("fields", 0.0, FIELDS_LIMIT, reason),
        ]
    off = light.shadow.column_px - (shape[1] - 1) / 2
    sigma = max(_SHADOW_SIGMA_PX, _SHADOW_SIGMA_SHARE * light.shadow.width_px)
    boxes = light.fields.left, light.fields.right
    sizes = [box.rows * box.cols for box in boxes]
    left, right = (f"{box.cols} x {box.rows} px" for box in boxes)
    return [
        *found,
        Reading(
            "partition_px",
            off,
            sigma,
            0.0,
            limit_px,
            note=f"column {light.shadow.column_px:.0f}, {light.shadow.width_px:.0f} px wide",
            amount=f"{abs(off) * pixel_pitch_m * 1e6:.0f} µm",
        ),
        Reading("partition_light", light.shadow.light, _DARKNESS_SIGMA, 0.0, DARKEST_SHARE),
        Reading(
            "fields",
            float(np.log(sizes[1] / sizes[0])),
            _FIELDS_SIGMA,
            0.0,
            FIELDS_LIMIT,
            note=f"left lens {left}, {right} right lens",
        ),
    ]
