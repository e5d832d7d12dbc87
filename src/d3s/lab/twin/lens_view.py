"""Light on the sensor behind a lens with errors, and the truth that it shows.

The sharp layers are distorted first, then blurred by the spots of their places, then blended. The
light of each point spreads by the spot of its own place: light is divided among nodes of a grid by
weights that fall linearly from 1 at a node to 0 at its neighbours, and the share of a node spreads
by the spot of that node. Between nodes, the spot and its second moments are mixed linearly. Nodes
are as close as the blur changes. Lenses also lose, scatter and leak light.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.lab.twin.blur import BlurredLayer, Canvas, Sheet, blur_sheet
from d3s.lab.twin.geometry import Affine, View, Window
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors
from d3s.lab.twin.point_spread import Diffraction, Psf, disk, transfer
from d3s.lab.twin.render import Front, add_edge_light, blend, front_of, round_spread
from d3s.lab.twin.warp import (
    ViewDistortion,
    distort,
    distortion_of,
    largest_shift_px,
    nearest_pixels,
    undistorted_places,
)
from d3s.optics.lens import Lens
from d3s.optics.wavefront import Aberrations, overlap_share, pixels_per_slope, reach_px
from d3s.runtime.parallel import run_together
from d3s.types import FloatArray, Image, Mask

# Change of the blur radius from one node to the next: in pixels, and as a share of the radius.
_STEP_PX, _STEP_SHARE = 1.0, 0.12
# Difference of the blur radius midway between nodes from the mean of both: in pixels, and as a
# share of the radius.
_SAG_PX, _SAG_SHARE = 0.04, 0.005
_NEAREST_NODES_PX, _FARTHEST_NODES_PX = 12, 96
_PROBES = 33  # places along each axis at which the change of the blur is looked at
# Margin for the tail of a spot, which is limited to the frequencies of the pixels.
_TAIL_PX = 8
# Rings of diffraction, beyond the geometric spot.
_RINGS_PX = 16


@dataclass(frozen=True, kw_only=True)
class FieldLens:
    """A lens with its errors, in the pixels of a view."""

    errors: LensErrors
    lens: Lens
    psf: Psf
    view: View

    @property
    def distortion(self) -> ViewDistortion | None:
        """Distortion in the pixels of the view; None without."""
        return distortion_of(self.errors, self.view) if self.errors.has_distortion else None

    @property
    def spreads(self) -> bool:
        """Whether a point spreads otherwise than through a perfect lens."""
        return self.errors.has_blur and self.lens.aperture_radius_m > 0

    def places(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Places in units of the field radius of pixels of the view."""
        centre_x, centre_y = self.errors.centre_px(self.view)
        radius = self.errors.field_radius_px
        return (x - centre_x) / radius, (y - centre_y) / radius

    def blur_px(self, radius_px: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
        """Tensor (3, ...) of signed blur radii in px, where that on the axis is `radius_px`."""
        lens = self.lens
        per_dpt = lens.reference_distance_m * lens.aperture_radius_m / lens.pixel_pitch_m
        along, mixed, down = per_dpt * self.errors.focus_dpt(*self.places(x, y))
        return np.stack([radius_px - along, -mixed, radius_px - down])

    def spread_at_pixels(
        self, radius_px: Affine, rows: NDArray[np.int64], cols: NDArray[np.int64]
    ) -> FloatArray:
        """Blur at pixels of the view, (3, pixels), without aberrations of higher order.

        `radius_px` is the signed blur radius on the axis, over the pixels of the view.
        """
        x, y = cols.astype(np.float64), rows.astype(np.float64)
        return self.blur_px(radius_px.at(x, y), x, y)

    def aberrations(self, radius_px: Affine, x: float, y: float) -> Aberrations:
        """Wavefront and pupil at a pixel of the view, for a blur radius on the axis."""
        errors = self.errors
        place = np.asarray(x), np.asarray(y)
        along, mixed, down = self.blur_px(radius_px.at(*place), *place)
        across, below = (float(part) for part in self.places(*place))
        wave = errors.wavelength_m
        aperture = self.lens.aperture_radius_m or 1.0
        clip = errors.clip_offset
        return Aberrations(
            blur_px=(float(along), float(mixed), float(down)),
            spherical_m=errors.spherical_waves * wave,
            coma_m=(
                (errors.coma_x_waves + errors.coma_field_waves * across) * wave,
                (errors.coma_y_waves + errors.coma_field_waves * below) * wave,
            ),
            shift=(errors.aperture_shift_x_m / aperture, errors.aperture_shift_y_m / aperture),
            clip=(clip * across, clip * below),
            clip_radius=errors.clipping_radius,
        )

    def free_share(self, window: Window) -> Image:
        """Share of the pupil that clipping leaves to the pixels of a window."""
        x, y = self.places(window.col_numbers, window.row_numbers[:, np.newaxis])
        radius = np.hypot(x, y)
        steps = np.linspace(0.0, float(radius.max()), 2048)
        share = overlap_share(self.errors.clip_offset * steps, self.errors.clipping_radius)
        return np.asarray(np.interp(radius, steps, share), dtype=np.float32)


def field_lenses(
    lenses: tuple[LensErrors, LensErrors], views: tuple[View, View], psf: Psf
) -> tuple[FieldLens, FieldLens]:
    """Left and right lens with their errors."""
    left, right = (
        FieldLens(errors=errors, lens=view.optics.lens(view.camera), psf=psf, view=view)
        for errors, view in zip(lenses, views, strict=True)
    )
    return left, right


def _distorted_sheet(sheet: Sheet, field: FieldLens) -> Sheet:
    """Sheet whose canvas has the pixels of the view, as the lens draws them."""
    canvas = sheet.canvas
    if any(sheet.shift_px):
        whole = canvas.window
        layer = blur_sheet(
            sheet._replace(radius_px=Affine(0.0, 0.0, 0.0)),
            whole._replace(
                row=whole.row - int(np.floor(sheet.shift_px[1])),
                col=whole.col - int(np.floor(sheet.shift_px[0])),
            ),
            replace(field.lens, aperture_radius_m=0.0),
            disk,
        )
        canvas = Canvas(window=layer.window, colour=layer.colour, alpha=layer.alpha)
    if field.distortion is not None:
        colour = distort(canvas.colour, field.distortion, canvas.window)
        alpha = canvas.alpha
        if alpha is not None:
            alpha = np.clip(distort(alpha, field.distortion, canvas.window), 0.0, 1.0)
        canvas = Canvas(window=canvas.window, colour=colour, alpha=alpha)
    return sheet._replace(canvas=canvas, shift_px=(0.0, 0.0))


def _blur_over_field(
    sheet: Sheet, frame: Window, field: FieldLens, lit: Mask | None = None
) -> BlurredLayer:
    """Blur a sheet, each point by the spot of its own place and depth.

    The sheet is on the pixels of the view, without a shift. `lit` are the pixels of the frame that
    are needed; all by default.
    """
    window = sheet.canvas.window
    kept = window.common(frame)
    nodes_y, nodes_x = _nodes(sheet.radius_px, window, field)
    channels = [sheet.canvas.colour]
    if field.errors.clipping:
        channels[0] = sheet.canvas.colour * field.free_share(window)
    if sheet.canvas.alpha is not None:
        channels.append(sheet.canvas.alpha)
    needed = None if lit is None else lit[kept.within(frame)]
    grid = _Grid(sheet, channels, kept, needed, nodes_x, nodes_y, field)
    bands = run_together(
        *(lambda number=number: _band(grid, number) for number in range(len(nodes_y)))
    )
    out = np.zeros((len(channels), *kept.shape), dtype=np.float32)
    for first, band in bands:
        out[:, first : first + band.shape[1]] += band
    return BlurredLayer(kept, out[0], out[1] if len(channels) > 1 else None)


class _Grid(NamedTuple):
    """Layer to blur, node by node, onto the pixels `kept`."""

    sheet: Sheet
    channels: list[Image]
    kept: Window
    needed: Mask | None
    nodes_x: list[FloatArray]
    nodes_y: FloatArray
    field: FieldLens


def _band(grid: _Grid, number: int) -> tuple[int, Image]:
    """Light of one row of nodes, and its first row in the window to fill."""
    tiles = (_tile(grid, number, column) for column in range(len(grid.nodes_x[number])))
    parts = [tile for tile in tiles if tile is not None]
    first = min((window.row for window, _ in parts), default=0)
    last = max((window.row + window.rows for window, _ in parts), default=0)
    band = np.zeros((len(grid.channels), last - first, grid.kept.cols), dtype=np.float32)
    for window, light in parts:
        band[(slice(None), *window.within(Window(first, 0, *band.shape[1:])))] += light
    return first, band


def _tile(grid: _Grid, row: int, column: int) -> tuple[Window, Image] | None:
    """Light of one node, and its window counted from the window to fill; None if out of sight."""
    from scipy import fft

    whole = grid.sheet.canvas.window
    nodes_x = grid.nodes_x[row]
    down, across = _support(grid.nodes_y, row), _support(nodes_x, column)
    patch = Window(down[0], across[0], down[1] - down[0], across[1] - across[0])
    x, y = nodes_x[column], grid.nodes_y[row]
    aberrations = grid.field.aberrations(grid.sheet.radius_px, x, y)
    lens = grid.field.lens
    reach = int(np.ceil(reach_px(aberrations, lens))) + _TAIL_PX
    if grid.field.psf is not disk:
        reach += max(_RINGS_PX, reach)
    landing = patch.grown(reach, reach).common(grid.kept)
    if landing.is_empty:
        return None
    here = landing.within(grid.kept)
    if grid.needed is not None and not grid.needed[here].any():
        return None
    weight = np.outer(
        _hat(grid.nodes_y, row, patch.row_numbers), _hat(nodes_x, column, patch.col_numbers)
    )
    # Even sizes of a fast FFT.
    rows, cols = (
        2 * fft.next_fast_len(size // 2 + reach + size % 2, real=True) for size in patch.shape
    )
    shape = int(rows), int(cols)
    spread = transfer(shape, aberrations, lens, grid.field.psf)
    start = landing.within(patch.grown(reach, reach))
    light = np.empty((len(grid.channels), *landing.shape), dtype=np.float32)
    for channel, values in enumerate(grid.channels):
        padded = np.zeros(shape, dtype=np.float32)
        padded[reach : reach + patch.rows, reach : reach + patch.cols] = (
            values[patch.within(whole)] * weight
        )
        spectrum = fft.rfft2(padded, overwrite_x=True)
        spectrum *= spread
        light[channel] = fft.irfft2(spectrum, s=shape, overwrite_x=True)[start]
    return Window(here[0].start, here[1].start, *landing.shape), light


def _support(nodes: FloatArray, number: int) -> tuple[int, int]:
    """First pixel of the light of a node, and one beyond its last."""
    last = len(nodes) - 1
    first_px = nodes[0] if number == 0 else nodes[number - 1] + 1
    end_px = nodes[last] + 1 if number == last else nodes[number + 1]
    return int(first_px), int(end_px)


def _hat(nodes: FloatArray, number: int, pixels: FloatArray) -> Image:
    """Weight of a node at pixels: 1 at the node, 0 at its neighbours."""
    at_nodes = (np.arange(len(nodes)) == number).astype(np.float64)
    return np.asarray(np.interp(pixels, nodes, at_nodes), dtype=np.float32)


def _steps(
    radius_px: Affine, window: Window, field: FieldLens
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Columns and rows that probe a window, and distances of nodes along x and y at all of them."""
    cols = np.linspace(window.col, window.col + window.cols - 1, _PROBES)
    rows = np.linspace(window.row, window.row + window.rows - 1, _PROBES)
    x, y = np.meshgrid(cols, rows)
    blur = field.blur_px(radius_px.at(x, y), x, y)
    size = np.sqrt(0.5 * (blur[0] ** 2 + 2 * blur[1] ** 2 + blur[2] ** 2))
    errors = field.errors
    others = 3 * abs(errors.coma_field_waves) * errors.wavelength_m
    if others:
        others *= pixels_per_slope(field.lens)
    others = (others + size * abs(errors.clip_offset)) / errors.field_radius_px
    steps = []
    for axis, places in ((2, cols), (1, rows)):
        spacing = max(float(places[1] - places[0]), 1e-9)
        slope = np.gradient(blur, spacing, axis=axis)
        change = np.sqrt(np.sum(slope**2, axis=0)) + others
        bend = np.sqrt(np.sum(np.gradient(slope, spacing, axis=axis) ** 2, axis=0))
        with np.errstate(divide="ignore"):
            step = np.maximum(_STEP_PX, _STEP_SHARE * size) / change
            sag = np.maximum(_SAG_PX, _SAG_SHARE * size)
            step = np.minimum(step, np.sqrt(8 * sag / bend))
        steps.append(np.clip(step, _NEAREST_NODES_PX, _FARTHEST_NODES_PX))
    return cols, rows, steps[0], steps[1]


def _nodes(
    radius_px: Affine, window: Window, field: FieldLens
) -> tuple[FloatArray, list[FloatArray]]:
    """Rows of the nodes, and columns of the nodes of each of these rows.

    They are whole pixels of the view, and include both ends of the window.
    """
    cols, rows, along_x, along_y = _steps(radius_px, window, field)
    nodes_y = _spaced(rows, along_y.min(axis=1))
    nodes_x = []
    for number, node in enumerate(nodes_y):
        first, last = nodes_y[max(number - 1, 0)], nodes_y[min(number + 1, len(nodes_y) - 1)]
        spacing = rows[1] - rows[0]
        near = (rows >= min(first, node - spacing)) & (rows <= max(last, node + spacing))
        nodes_x.append(_spaced(cols, along_x[near].min(axis=0)))
    return nodes_y, nodes_x


def _spaced(places: FloatArray, step: FloatArray) -> FloatArray:
    """Whole pixels from the first place to the last, about `step` apart where they are."""
    count = np.concatenate(
        [[0.0], np.cumsum(np.diff(places) * 0.5 * (1 / step[1:] + 1 / step[:-1]))]
    )
    numbers = np.linspace(0.0, count[-1], 1 + max(1, int(np.ceil(count[-1]))))
    return np.unique(np.rint(np.interp(numbers, count, places)))


def extra_reach_px(field: FieldLens, frame: Window) -> float:
    """Distance that light gets beyond the blur of a perfect lens, for margins."""
    bent = 0.0 if field.distortion is None else largest_shift_px(field.distortion, frame)
    if not field.spreads:
        return bent
    rings = 2 * _RINGS_PX if isinstance(field.psf, Diffraction) else 0
    farthest = max(
        reach_px(field.aberrations(Affine(0.0, 0.0, 0.0), x, y), field.lens)
        for x in np.linspace(frame.col, frame.col + frame.cols, 5)
        for y in np.linspace(frame.row, frame.row + frame.rows, 5)
    )
    return bent + rings + farthest


def render_through(
    sheets: list[Sheet],
    frame: Window,
    field: FieldLens,
    *,
    lit: Mask | None = None,
    edges: Mask | None = None,
) -> Image:
    """Light on the sensor, (rows, cols) of the frame, before the lens takes any away.

    Sheets are those that a perfect lens draws, front to back. `lit` are the pixels that are needed,
    all by default. Edges are corrected where a blurred mask is between 0 and 1, and only at the
    pixels `edges` if these are given.
    """
    lens, psf = field.lens, field.psf
    if field.spreads or field.distortion is not None:
        sheets = [_distorted_sheet(sheet, field) for sheet in sheets]
    if field.spreads:
        layers = (_blur_over_field(sheet, frame, field, lit) for sheet in sheets)
    else:
        layers = (blur_sheet(sheet, frame, lens, psf) for sheet in sheets)
    image, found = blend(layers, frame)
    if edges is not None:
        found &= edges
    spread = field.spread_at_pixels if field.spreads else round_spread
    add_edge_light(image, frame, found, sheets, lens, psf, spread)
    return image


def front_through(
    sheets: list[Sheet], frame: Window, field: FieldLens, *, colour: bool = True
) -> Front:
    """Sharp image, if wanted, and inverse depth that a lens draws, without its blur."""
    if field.distortion is None:
        return front_of(sheets, frame)
    margin = int(np.ceil(largest_shift_px(field.distortion, frame))) + 1
    wide = frame.grown(margin, margin)
    front = front_of(sheets, wide)
    image = front.colour
    if colour:
        image = distort(image, field.distortion, wide)
    image = image[frame.within(wide)]
    return Front(image, _inverse_depth(sheets, front.inverse_depth, wide, frame, field.distortion))


def _inverse_depth(
    sheets: list[Sheet], seen: Image, wide: Window, frame: Window, distortion: ViewDistortion
) -> Image:
    plane = sheets[0].inverse_depth
    if len(sheets) == 1 and isinstance(plane, Affine):
        x, y = undistorted_places(distortion, frame)
        return np.asarray(plane.at(x, y), dtype=np.float32)
    return seen[nearest_pixels(distortion, frame, wide)]


# Light leaks past the partition after reflections, which leave no detail: the standard deviation of
# its blur, over the field radius, and the factor by which images are shrunk to blur them.
_LEAK_WIDTH = 0.12
_SHRINK = 8


def lens_light(
    images: list[Image],
    fields: tuple[FieldLens, FieldLens],
    windows: tuple[Window, Window],
    lit: list[Image] | None = None,
) -> list[Image]:
    """Light behind both lenses, with glare and crosstalk.

    Each image holds the pixels of its window. `lit` is the share of the light that the mount lets
    through to each pixel, all by default; glare spreads over it.
    """
    if all(field.errors == PERFECT_LENS for field in fields):
        return images
    passed = []
    for image, field, window in zip(images, fields, windows, strict=True):
        place = window.col_numbers, window.row_numbers[:, np.newaxis]
        passed.append(image * field.errors.illumination(field.view, *place).astype(np.float32))
    result = []
    for camera, (own, field) in enumerate(zip(passed, fields, strict=True)):
        light, errors = own, field.errors
        if errors.glare:
            mean = np.average(own, weights=None if lit is None else lit[camera])
            light = (1 - np.float32(errors.glare)) * own + np.float32(errors.glare * mean)
        if errors.crosstalk:
            other = 1 - camera
            source = passed[other] if lit is None else passed[other] * lit[other]
            light = light + np.float32(errors.crosstalk) * _leak(source, fields, windows, camera)
        result.append(light)
    return result


def _leak(
    image: Image, fields: tuple[FieldLens, FieldLens], windows: tuple[Window, Window], camera: int
) -> Image:
    """Light of the other lens on the pixels of this one, axis on axis, by a wide Gaussian."""
    import cv2

    rows, cols = image.shape
    size = max(1, cols // _SHRINK), max(1, rows // _SHRINK)
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    sigma = _LEAK_WIDTH * fields[camera].errors.field_radius_px / _SHRINK
    small = cv2.GaussianBlur(small, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    wide = np.asarray(cv2.resize(small, (cols, rows)), dtype=np.float32)
    own, other = windows[camera], windows[1 - camera]
    (x, y), (other_x, other_y) = (fields[one].view.centre_px for one in (camera, 1 - camera))
    row = np.rint(own.row_numbers - y + other_y).astype(np.int64) - other.row
    col = np.rint(own.col_numbers - x + other_x).astype(np.int64) - other.col
    return wide[np.ix_(np.clip(row, 0, other.rows - 1), np.clip(col, 0, other.cols - 1))]
