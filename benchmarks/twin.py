"""`make twin`: how right the digital twin is, measured on its own pictures.

The rulers are those of the tests and know nothing of the simulator: phases of spectra, moments of
light, rays through the opening. Each figure is the worst over all cases.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "physics"))

import d3s
import test_twin_edges as edges
from d3s.optics.psf import diffraction_otf
from test_twin import _residual_px
from twin_tools import PROTOTYPE, dot_texture, phase_shift_px, second_moment_px2

OPTICS = PROTOTYPE.optics
SPREADS = ("disk", "gaussian", "diffraction")
# Even steps of 1/Z, as disparity and blur are linear in it.
DEPTHS_M = 1 / np.linspace(1 / 0.2, 1 / 3.0, 25)


def disparity_error_px(psf: str, nearest_m: float = 0.0) -> Iterator[float]:
    """Phase of the cross-spectrum against s0 B / (p Z)."""
    for depth_m in DEPTHS_M[nearest_m <= DEPTHS_M]:
        scene = d3s.Plane(depth_m=depth_m, texture="noise")
        pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(600, 900))
        expected = 12.1e-3 * 3.84e-3 / (depth_m * 2e-6)
        yield phase_shift_px(pair.left, pair.right, expected) - expected


def tilted_disparity_error_px() -> Iterator[float]:
    """What is left of the shift on a tilted plane, at nine places of the view."""
    scene = d3s.TiltedPlane(depth_m=0.8, tilt_x_rad=0.9, tilt_y_rad=-0.6, texture="noise_white")
    pair = d3s.simulate(scene, PROTOTYPE, shape=(360, 520))
    for row in (90, 180, 270):
        for col in (150, 260, 400):
            yield _residual_px(pair, row, col)


def moment_error(psf: str) -> Iterator[float]:
    """Second moment that the lens adds to a dot, against a quarter of the radius squared."""
    for depth_m in (0.25, 0.35, 0.6, 1.2, 1.64, 2.5):
        dot = dot_texture(PROTOTYPE, depth_m, size_px=1.0)
        scene = d3s.Plane(depth_m=depth_m, texture=dot)
        pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(220, 400))
        for power, image in ((83.88, pair.left), (83.78, pair.right)):
            added = second_moment_px2(image) - second_moment_px2(pair.all_in_focus)
            radius = 12.1e-3 * 1e-3 * (1 / depth_m - power + 1 / 12.1e-3) / 2e-6
            yield added / (radius**2 / 4) - 1


def transfer_error() -> Iterator[float]:
    """Spectrum of a diffracted dot over that of a sharp one, against the lens' own transfer."""
    for depth_m in (0.3, 0.81, 1.5):
        dot = dot_texture(PROTOTYPE, depth_m, size_px=0.8)
        scene = d3s.Plane(depth_m=depth_m, texture=dot)
        pair = d3s.simulate(scene, PROTOTYPE, psf="diffraction", shape=(256, 256))
        sharp, blurred = (np.fft.rfft2(image)[0, :64] for image in (pair.all_in_focus, pair.left))
        frequency, radius = np.fft.rfftfreq(256)[:64], OPTICS.blur_radius_px(depth_m, 0)
        expected = diffraction_otf(frequency, radius, OPTICS.lens(0), 550e-9)
        yield from (blurred / sharp).real - expected


def energy_error(psf: str) -> Iterator[float]:
    """Light of a dot in each view, against that of the sharp one."""
    scene = d3s.Plane(depth_m=0.5, texture=dot_texture(PROTOTYPE, 0.5))
    pair = d3s.simulate(scene, PROTOTYPE, psf=psf, shape=(240, 420))
    for image in (pair.left, pair.right):
        yield image.sum(dtype=float) / pair.all_in_focus.sum(dtype=float) - 1


def edge_error(psf: str, rays: int) -> Iterator[float]:
    """Root mean square against rays, of full scale; every view of every scene with edges."""
    for boards in edges.SCENES.values():
        yield from _against_rays(boards, psf, rays)


def tilt_error(rays: int) -> Iterator[float]:
    """The same for planes without an edge, tilted by up to 63 degrees."""
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
    """A plane told by its sharp picture and depth map, against the plane: share of contrast.

    A map that is nowhere uneven is one plane. One pixel that is off by a millionth makes it slices.
    """
    plane = d3s.TiltedPlane(depth_m=depth_m, tilt_x_rad=np.arctan(slope_x), texture="leaves")
    direct = d3s.simulate(plane, PROTOTYPE, shape=(300, 420))
    depths = direct.depth_m.astype(float)
    depths[150, 150] *= 1 + 1e-6 * in_slices
    told = d3s.simulate(
        d3s.DepthMapScene(image=direct.all_in_focus, depth_m=depths),
        PROTOTYPE,
    )
    # Beyond its frame a picture goes on mirrored, and not as the texture does.
    side = int(np.ceil(direct.disparity_px.max())) + 20
    inner = np.s_[20:-20, 20:-side]
    for a, b in ((told.left[inner], direct.left[inner]), (told.right[inner], direct.right[inner])):
        yield float(np.sqrt(np.mean((a - b) ** 2)) / b.std())


def figures() -> Iterator[tuple[str, Callable[[], Iterator[float]], float | None, str]]:
    """What is measured, how, what is asked if anything is, and how it is written."""
    rays, full = 400, "{:.2%} of full scale"
    for psf in SPREADS:
        yield f"disparity, {psf}, 0.2 to 3 m", partial(disparity_error_px, psf), 0.01, "{:.4f} px"
    what = "disparity, disk, 0.4 to 3 m"
    yield what, partial(disparity_error_px, "disk", 0.4), 0.01, "{:.4f} px"
    yield "disparity, tilted plane", tilted_disparity_error_px, 0.01, "{:.4f} px"
    for psf in SPREADS[:2]:
        yield f"second moment, {psf}, 0.25 to 2.5 m", partial(moment_error, psf), 0.01, "{:.2%}"
    yield "transfer function, diffraction", transfer_error, 0.004, "{:.4f}"
    for psf, asked in zip(SPREADS, (1e-4, 1e-4, 3e-3), strict=True):
        yield f"light, {psf}", partial(energy_error, psf), asked, "{:.4%}"
    for psf in SPREADS[:2]:
        yield f"edges, {psf}, {rays} rays", partial(edge_error, psf, rays), 0.02, full
    yield f"tilted planes, {rays} rays", partial(tilt_error, rays), 0.02, full
    for name, work in (
        ("plane", partial(depth_map_error, 0.6, 0.0)),
        ("plane in focus, cut in slices", partial(depth_map_error, 0.85, 0.0, in_slices=True)),
        ("tilted plane", partial(depth_map_error, 0.6, 1.5)),
    ):
        yield f"depth map of a {name}", work, None, "{:.2%} of contrast"


def main() -> None:
    table = Table(title=f"d3s {d3s.__version__}: largest error of the twin")
    table.add_column("what")
    table.add_column("worst", justify="right")
    table.add_column("asked", justify="right")
    missed = []
    for what, errors, asked, form in figures():
        worst = max(abs(float(error)) for error in errors())
        limit = "-" if asked is None else form.format(asked).partition(" of")[0]
        is_missed = asked is not None and worst > asked
        missed += [what] if is_missed else []
        table.add_row(what, form.format(worst), limit, style="bold red" if is_missed else None)
    Console(width=100).print(table)
    if missed:
        sys.exit(f"Missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
