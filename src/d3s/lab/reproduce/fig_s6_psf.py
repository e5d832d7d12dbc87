"""Fig. S6: point-spread functions of both lenses over depth."""

import numpy as np

from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.view.reproduction import plot_psfs
from d3s.optics.psf import diffraction_psf
from d3s.rig import Optics, Rig
from d3s.types import FloatArray

DEPTHS_M = tuple(round(0.3 + 0.2 * i, 1) for i in range(9))
WAVELENGTH_M = 550e-9
_SPOT_PX = 31  # the widest disk of the range, at 0.3 m, is 27 px across
_FINE = 5  # samples across a pixel
_LENSES = ("left", "right")
_SHARE = 0.838  # share of the light of an Airy disk within its first dark ring
_FOCUS_PRINTED_M = 1.0  # focus distance of the paper when the camera is assembled


def make_psf(context: Context) -> Result:
    """Make the item: spots of the twin's lenses on the pixels, by diffraction and by rays."""
    optics = Rig.paper_prototype().optics
    rows = {
        f"{name}, {kind}": [spot(optics, camera, depth_m, kind) for depth_m in DEPTHS_M]
        for kind in ("diffraction", "disk")
        for camera, name in enumerate(_LENSES)
    }
    depths_m = np.linspace(0.3, 1.9, 33 if context.quick else 161)
    radii = {
        f"{name}, {kind}": np.array([_radius_px(optics, camera, z, kind) for z in depths_m])
        for kind in ("disk", "diffraction")
        for camera, name in enumerate(_LENSES)
    }
    figure = plot_psfs(rows, DEPTHS_M, {name: (depths_m, r) for name, r in radii.items()})
    caption = (
        f"Simulated. Above: spots {_SPOT_PX} px wide on the pixels of the prototype, each from "
        "black to its brightest pixel, and drawn as its root to show what is faint. Diffraction "
        "is a perfect lens at 550 nm, disk is geometric optics. Below: their sizes."
    )
    return Result(
        pictures=[Picture(name="psf", figure=figure, caption=caption)],
        tables=[Table(name="psf", rows=[_row(optics, z) for z in DEPTHS_M])],
        comparisons=[_focus(optics), _smallest(depths_m, radii)],
    )


def spot(optics: Optics, camera: int, depth_m: float, kind: str) -> FloatArray:
    """Light of a point on each pixel, (31, 31); the sum is nearly 1."""
    lens, radius_px = optics.lens(camera), float(optics.blur_radius_px(depth_m, camera))
    place = (np.arange(_SPOT_PX * _FINE) + 0.5) / _FINE - 0.5 * _SPOT_PX
    from_middle = np.hypot(place[:, np.newaxis], place)
    if kind == "disk":
        # Antialiased edge: a sample whose middle is on the edge counts half.
        density = np.clip((abs(radius_px) - from_middle) * _FINE + 0.5, 0.0, 1.0)
        density /= max(density.sum() / _FINE**2, 1.0 / _FINE**2)
    else:
        table_px = np.linspace(0.0, float(from_middle.max()), 40 * _SPOT_PX)
        table = diffraction_psf(table_px, radius_px, lens, WAVELENGTH_M)
        density = np.interp(from_middle, table_px, table)
    fine = density.reshape(_SPOT_PX, _FINE, _SPOT_PX, _FINE)
    return np.asarray(fine.mean(axis=(1, 3)))


def _radius_px(optics: Optics, camera: int, depth_m: float, kind: str) -> float:
    """Radius, in pixels, that encloses the share of light of an Airy disk's first dark ring."""
    radius_px = abs(float(optics.blur_radius_px(depth_m, camera)))
    if kind == "disk":
        return radius_px * float(np.sqrt(_SHARE))
    lens = optics.lens(camera)
    edges_px = np.linspace(0.0, radius_px + 8.0, 161)
    middles_px = 0.5 * (edges_px[1:] + edges_px[:-1])
    light = diffraction_psf(middles_px, radius_px, lens, WAVELENGTH_M)
    held = np.cumsum(2 * np.pi * middles_px * light * np.diff(edges_px))
    return float(np.interp(_SHARE, held, edges_px[1:]))


def _row(optics: Optics, depth_m: float) -> dict[str, Cell]:
    row: dict[str, Cell] = {"depth_m": depth_m}
    for camera, name in enumerate(_LENSES):
        row[f"blur_radius_{name}_px"] = float(optics.blur_radius_px(depth_m, camera))
        for kind in ("disk", "diffraction"):
            row[f"radius_84_{name}_{kind}_px"] = _radius_px(optics, camera, depth_m, kind)
    return row


def _focus(optics: Optics) -> Comparison:
    left_m, right_m = optics.focus_distances_m
    # The sensor distance is printed to 0.1 mm: focus distances at half a unit to either side.
    ends_m = [
        1.0 / (optics.kappa_dpt + 1.0 / optics.sensor_distance_m - 1.0 / distance_m)
        for distance_m in (optics.sensor_distance_m - 5e-5, optics.sensor_distance_m + 5e-5)
    ]
    near_m, far_m = sorted(ends_m)
    return Comparison(
        what="distance in focus",
        paper=f"about {_FOCUS_PRINTED_M:g} m, when it is put together",
        ours=f"{left_m:.2f} m (left) and {right_m:.2f} m (right), by the printed powers",
        why="The sensor distance is printed as 12.1 mm. Half a unit of its last digit moves the "
        f"focus from {near_m:.2f} to {far_m:.2f} m, so that both may be true.",
        agrees=near_m < _FOCUS_PRINTED_M < far_m,
    )


def _smallest(depths_m: FloatArray, radii_px: dict[str, FloatArray]) -> Comparison:
    at_m = {name: depths_m[radii_px[f"{name}, diffraction"].argmin()] for name in _LENSES}
    return Comparison(
        what="order of the two lenses",
        paper="spots shown, no numbers",
        ours=f"smallest spot at {at_m['left']:.2f} m (left) and {at_m['right']:.2f} m (right)",
        why="Spots of the real lenses are photographs, which show aberrations too; ours are those "
        "of perfect ones. By optics, the lens of the larger power, the left, is focused nearer.",
    )


ITEM = Item(
    name="psf",
    title="Point-spread functions of both lenses over depth",
    reference="Fig. S6",
    places=("figs6",),
    what=(
        "How a point of light looks in both views from 0.3 to 1.9 m. The spots of the left lens, "
        "the stronger one, are smallest nearer than those of the right: that difference is the "
        "defocus cue. The paper shows photographs; these are computed for its optics."
    ),
    needs="seconds",
    run=make_psf,
)
