"""`make twin`: accuracy of the digital twin, measured on simulated images.

The measurements are those of the tests and do not use the simulator: phases of cross-spectra,
moments of light, rays through the lens opening. Each figure is the largest error of all cases.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sheets import Sheet, show

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "physics"))

import d3s
import test_twin_edges as edges
from d3s.lab.twin.lens_errors import TYPICAL_LENS, LensErrors
from d3s.optics.psf import diffraction_otf
from twin_tools import PROTOTYPE, dot_texture, phase_shift_px, second_moment_px2

OPTICS = PROTOTYPE.optics
PSFS = ("disk", "gaussian", "diffraction")
# Even steps of 1/Z: disparity and blur are linear in 1/Z.
DEPTHS_M = 1 / np.linspace(1 / 0.2, 1 / 3.0, 25)


def disparity_error_px(psf: str) -> Iterator[float]:
    """Shift from the phase of the cross-spectrum, minus s0 B / (p Z)."""
    for depth_m in DEPTHS_M:
        scene = d3s.Plane(depth_m=depth_m, texture="noise")
        pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(600, 900))
        expected = 12.1e-3 * 3.84e-3 / (depth_m * 2e-6)
        yield phase_shift_px(pair.left, pair.right, expected) - expected


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


def edge_error(psf: str) -> Iterator[float]:
    """RMS difference from traced rays, of full scale, for every view of every scene with edges."""
    shape = (edges.SIZE, edges.SIZE)
    for boards in edges.SCENES.values():
        scene = d3s.Layered(layers=[board.layer() for board in boards])
        pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=shape)
        for camera, image in enumerate((pair.left, pair.right)):
            error = image - edges.traced(boards, camera, psf, rays=400)
            yield float(np.sqrt(np.mean(error[4:-4, 4:-4] ** 2)))


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


class Check(NamedTuple):
    """One figure: its name, the errors of all cases, their limit, and its format."""

    name: str
    errors: Iterable[float]
    limit: float
    form: str


def checks() -> Iterator[Check]:
    """Make all figures."""
    px, share = "{:.4f} px", "{:.2%}"
    for psf in PSFS:
        yield Check(f"disparity, 0.2 to 3 m, {psf}", disparity_error_px(psf), 0.01, px)
    for psf in PSFS[:2]:
        name = f"second moment of a point, 0.25 to 2.5 m, {psf}"
        yield Check(name, moment_error(psf), 0.01, share)
        yield Check(f"edges, RMS of full scale, {psf}", edge_error(psf), 0.02, share)
    name = "transfer function to 0.25 cycles/px, diffraction"
    yield Check(name, transfer_error(), 0.004, "{:.4f}")
    yield Check("lens, second moments over the field", field_moment_error(), 0.03, share)
    yield Check("lens, places of dots over the field", field_place_error_px(), 0.02, px)


def main() -> None:
    """Show the largest errors; exit with an error if one exceeds its limit."""
    lines, missed = [], []
    for check in checks():
        worst = max(abs(float(error)) for error in check.errors)
        lines.append((check.name, check.form.format(worst), check.form.format(check.limit)))
        if worst > check.limit:
            missed.append(check.name)
    title = f"d3s {d3s.__version__}: largest errors of the digital twin"
    show([Sheet(title, ("quantity", "largest error", "limit"), lines)])
    if missed:
        sys.exit(f"Missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
