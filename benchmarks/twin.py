"""`make twin`: accuracy of the digital twin, measured on simulated images.

The measurements are those of the tests and do not use the simulator: phases of cross-spectra,
moments of light, rays through the lens opening. Each figure is the largest error of all cases.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sheets import Sheet, show

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "physics"))

import d3s
import test_twin_edges as edges
from d3s.lab.twin.lens_errors import LensErrors
from d3s.lab.twin.typical_lenses import TYPICAL_LENS
from d3s.optics.psf import diffraction_otf
from test_twin import _residual_px
from twin_tools import PROTOTYPE, dot_texture, phase_shift_px, second_moment_px2

OPTICS = PROTOTYPE.optics
PSFS = ("disk", "gaussian", "diffraction")
# Even steps of 1/Z: disparity and blur are linear in 1/Z.
DEPTHS_M = 1 / np.linspace(1 / 0.2, 1 / 3.0, 25)


def disparity_error_px(psf: str, nearest_m: float = 0.0) -> Iterator[float]:
    """Shift from the phase of the cross-spectrum, minus s0 B / (p Z)."""
    for depth_m in DEPTHS_M[nearest_m <= DEPTHS_M]:
        scene = d3s.Plane(depth_m=depth_m, texture="noise")
        pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(600, 900))
        expected = 12.1e-3 * 3.84e-3 / (depth_m * 2e-6)
        yield phase_shift_px(pair.left, pair.right, expected) - expected


def tilted_disparity_error_px() -> Iterator[float]:
    """Remaining shift after the true disparity is removed, at nine places of a tilted plane."""
    scene = d3s.TiltedPlane(depth_m=0.8, tilt_x_rad=0.9, tilt_y_rad=-0.6, texture="noise_white")
    pair = d3s.simulate(scene, PROTOTYPE, shape=(360, 520))
    for row in (90, 180, 270):
        for col in (150, 260, 400):
            yield _residual_px(pair, row, col)


def moment_error(psf: str) -> Iterator[float]:
    """Second moment that the blur adds to a dot, relative to a quarter of the squared radius."""
    for depth_m in (0.25, 0.35, 0.6, 1.2, 1.64, 2.5):
        dot = dot_texture(PROTOTYPE, depth_m, size_px=1.0)
        scene = d3s.Plane(depth_m=depth_m, texture=dot)
        pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(220, 400))
        for power, image in ((83.88, pair.left), (83.78, pair.right)):
            added = second_moment_px2(image) - second_moment_px2(pair.all_in_focus)
            radius = 12.1e-3 * 1e-3 * (1 / depth_m - power + 1 / 12.1e-3) / 2e-6
            yield added / (radius**2 / 4) - 1


def transfer_error() -> Iterator[float]:
    """Spectrum of a blurred dot over that of the sharp dot, minus the transfer function."""
    for depth_m in (0.3, 0.81, 1.5):
        dot = dot_texture(PROTOTYPE, depth_m, size_px=0.8)
        scene = d3s.Plane(depth_m=depth_m, texture=dot)
        pair = d3s.simulate(scene, PROTOTYPE, psf="diffraction", shape=(256, 256))
        sharp, blurred = (np.fft.rfft2(image)[0, :64] for image in (pair.all_in_focus, pair.left))
        frequency, radius = np.fft.rfftfreq(256)[:64], OPTICS.blur_radius_px(depth_m, 0)
        expected = diffraction_otf(frequency, radius, OPTICS.lens(0), 550e-9)
        yield from (blurred / sharp).real - expected


def energy_error(psf: str) -> Iterator[float]:
    """Light of a dot in each view, relative to the sharp dot."""
    scene = d3s.Plane(depth_m=0.5, texture=dot_texture(PROTOTYPE, 0.5))
    pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(240, 420))
    for image in (pair.left, pair.right):
        yield image.sum(dtype=float) / pair.all_in_focus.sum(dtype=float) - 1


def edge_error(psf: str, rays: int) -> Iterator[float]:
    """RMS difference from traced rays, of full scale, for every view of every scene with edges."""
    for boards in edges.SCENES.values():
        yield from _against_rays(boards, psf, rays)


def tilt_error(rays: int) -> Iterator[float]:
    """RMS difference from traced rays, of full scale, for planes tilted by up to 63 degrees."""
    for slope_x, slope_y in ((2.0, 0.0), (0.0, -2.0), (1.0, 1.0)):
        board = edges.Board(0.5, slope_x, slope_y, 7, None)
        yield from _against_rays([board], "disk", rays)


def _against_rays(boards: list[edges.Board], psf: str, rays: int) -> Iterator[float]:
    scene = d3s.Layered(layers=[board.layer() for board in boards])
    shape = (edges.SIZE, edges.SIZE)
    pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=shape)
    for camera, image in enumerate((pair.left, pair.right)):
        error = image - edges.traced(boards, camera, psf, rays=rays)
        yield float(np.sqrt(np.mean(error[4:-4, 4:-4] ** 2)))


def depth_map_error(depth_m: float, slope_x: float, *, in_slices: bool = False) -> Iterator[float]:
    """RMS difference between a plane and the same plane as a depth map, relative to its contrast.

    A constant depth map is rendered as a plane. With `in_slices`, one pixel differs by 1e-6,
    so that the map is cut into slices.
    """
    plane = d3s.TiltedPlane(depth_m=depth_m, tilt_x_rad=np.arctan(slope_x), texture="leaves")
    direct = d3s.simulate(plane, PROTOTYPE, shape=(300, 420))
    depths = direct.depth_m.astype(float)
    depths[150, 150] *= 1 + 1e-6 * in_slices
    as_map = d3s.simulate(
        d3s.DepthMapScene(image=direct.all_in_focus, depth_m=depths),
        PROTOTYPE,
    )
    # Beyond the frame an image is mirrored, unlike the texture: compare the inner part.
    side = int(np.ceil(direct.disparity_px.max())) + 20
    inner = np.s_[20:-20, 20:-side]
    for a, b in (
        (as_map.left[inner], direct.left[inner]),
        (as_map.right[inner], direct.right[inner]),
    ):
        yield float(np.sqrt(np.mean((a - b) ** 2)) / b.std())


# Field curvature, astigmatism and distortion of the typical lens, without what else it does.
CURVED = TYPICAL_LENS.replace(
    spherical_waves=0.0, coma_field_waves=0.0, clipping=0.0, glare=0.0, crosstalk=0.0
)
DOTS_PX = 150


def dots_behind_a_lens(
    lens: LensErrors, depth_m: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Dots over the left view: places from the axis over the field radius, as drawn, and moments.

    Moments are those that the lens adds to a sharp dot, (along x, mixed, along y).
    """
    shape, half = (902, 1802), DOTS_PX // 2
    texels = 2 * np.array([shape[0] + 300, shape[1] + 300])
    across, down = (
        np.exp(-0.5 * ((np.mod(place, DOTS_PX) - half) / 1.5) ** 2)
        for place in ((np.arange(size) - size // 2) / 2 + half for size in texels[::-1])
    )
    width_m = texels[1] / 2 * depth_m / OPTICS.focal_length_px
    scene = d3s.Plane(
        depth_m=depth_m, texture=d3s.Photo(image=np.outer(down, across), width_m=width_m)
    )
    pair = d3s.simulate(scene, PROTOTYPE, shape=shape, lenses=(lens, lens))
    axis = np.array([(shape[1] - 1) / 2, (shape[0] - 1) / 2])
    for x in range(-5 * DOTS_PX, 6 * DOTS_PX, DOTS_PX):
        for y in range(-2 * DOTS_PX, 3 * DOTS_PX, DOTS_PX):
            col, row = int(axis[0] + x) - half, int(axis[1] + y) - half
            part = np.s_[row : row + DOTS_PX, col : col + DOTS_PX]
            centre, moments = _moments(pair.left[part].astype(float))
            _, sharp = _moments(pair.all_in_focus[part].astype(float))
            place = (centre + np.array([col, row]) - axis) / lens.field_radius_px
            yield np.array([x, y]) / lens.field_radius_px, place, moments - sharp


def _moments(light: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centroid (x, y) and second moments of light."""
    y, x = np.indices(light.shape)
    total = light.sum()
    centre = np.array([(light * x).sum(), (light * y).sum()]) / total
    a, b = x - centre[0], y - centre[1]
    return centre, np.array([(light * form).sum() for form in (a * a, a * b, b * b)]) / total


def field_moment_error() -> Iterator[float]:
    """Second moments of dots over the field, relative to the larger of both directions.

    Relative to 4 px² if both are less: a radius of 4 px. Expected are those of an ellipse, a
    quarter of the square of 6.05 px per dioptre of (u I - K).
    """
    for depth_m in (0.5, 1.0):
        on_axis = 1 / depth_m - 83.88 + 1 / 12.1e-3
        for place, _, moments in dots_behind_a_lens(CURVED, depth_m):
            radius = np.hypot(*place)
            out = place / (radius or 1.0)
            radial = np.outer(out, out)
            focus = radius**2 * (
                CURVED.focus_sagittal_dpt * (np.eye(2) - radial)
                + CURVED.focus_tangential_dpt * radial
            )
            blur = 6.05 * (on_axis * np.eye(2) - focus)
            expected = blur @ blur / 4
            difference = moments - expected[[0, 0, 1], [0, 1, 1]]
            yield float(np.abs(difference).max() / max(expected.max(), 4.0))


def field_place_error_px() -> Iterator[float]:
    """Distance of dots from where distortion draws them."""
    for place, drawn, _ in dots_behind_a_lens(CURVED, 0.5):
        square = place @ place
        factor = 1 + CURVED.distortion_third * square + CURVED.distortion_fifth * square**2
        yield float(np.hypot(*(drawn - factor * place)) * CURVED.field_radius_px)


def no_error_left() -> Iterator[float]:
    """RMS difference between lenses with errors of next to nothing and none, over the contrast."""
    scene = d3s.Plane(depth_m=0.5, texture="leaves")
    perfect = d3s.simulate(scene, PROTOTYPE, shape=(300, 420)).left
    for error in ("focus_tilt_x_dpt", "spherical_waves", "distortion_third"):
        lens = LensErrors(**{error: 1e-9})
        view = d3s.simulate(scene, PROTOTYPE, shape=(300, 420), lenses=(lens, lens)).left
        yield float((view - perfect).std() / perfect.std())


class Check(NamedTuple):
    """One figure: its name, the errors of all cases, their limit (None: no limit), its format."""

    name: str
    errors: Callable[[], Iterator[float]]
    limit: float | None
    form: str


def checks() -> list[Check]:
    rays, px, of_full_scale = 400, "{:.4f} px", "{:.2%} of full scale"
    in_focus = partial(depth_map_error, 0.85, 0.0, in_slices=True)
    return [
        *(
            Check(f"disparity, 0.2 to 3 m, `{psf}`", partial(disparity_error_px, psf), 0.01, px)
            for psf in PSFS
        ),
        Check("disparity, 0.4 to 3 m, `disk`", partial(disparity_error_px, "disk", 0.4), 0.01, px),
        Check("disparity, plane tilted by 55°", tilted_disparity_error_px, 0.01, px),
        *(
            Check(
                f"second moment of a point, 0.25 to 2.5 m, `{psf}`",
                partial(moment_error, psf),
                0.01,
                "{:.2%}",
            )
            for psf in PSFS[:2]
        ),
        Check(
            "transfer function to 0.25 cycles/px, `diffraction`", transfer_error, 0.004, "{:.4f}"
        ),
        *(
            Check(f"light of a point, `{psf}`", partial(energy_error, psf), limit, "{:.4%}")
            for psf, limit in zip(PSFS, (1e-4, 1e-4, 3e-3), strict=True)
        ),
        *(
            Check(f"edges, RMS, `{psf}`", partial(edge_error, psf, rays), 0.02, of_full_scale)
            for psf in PSFS[:2]
        ),
        Check("planes tilted by up to 63°, RMS", partial(tilt_error, rays), 0.02, of_full_scale),
        *(
            Check(name, errors, None, "{:.2%} of contrast")
            for name, errors in (
                ("depth map of a plane, RMS", partial(depth_map_error, 0.6, 0.0)),
                ("depth map of a plane in focus, cut into slices, RMS", in_focus),
                ("depth map of a plane tilted by 56°, RMS", partial(depth_map_error, 0.6, 1.5)),
            )
        ),
        Check("lens, second moments over the field", field_moment_error, 0.03, "{:.2%}"),
        Check("lens, places of dots over the field", field_place_error_px, 0.02, px),
        Check("lens without errors, RMS", no_error_left, 0.002, "{:.2%} of contrast"),
    ]


def measure(wanted: list[Check]) -> tuple[Sheet, list[str]]:
    """Table of the largest errors, and the names of the checks that exceed their limit."""
    lines, missed = [], []
    for check in wanted:
        worst = max(abs(float(error)) for error in check.errors())
        limit = "" if check.limit is None else check.form.format(check.limit).partition(" of")[0]
        if check.limit is not None and worst > check.limit:
            missed.append(check.name)
        lines.append((check.name, check.form.format(worst), limit))
    headings = ("quantity", "largest error", "limit")
    title = f"d3s {d3s.__version__}: largest errors of the digital twin"
    return Sheet(title, headings, lines), missed


def main() -> None:
    sheet, missed = measure(checks())
    show([sheet])
    if missed:
        sys.exit(f"Missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
