"""Figure and HTML page of `d3s demo`."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from d3s.atomic import make_folder, write_text
from d3s.estimate.plot.panels import (
    depth_norm,
    draw_bar,
    show_depth,
    show_grey,
    show_scale,
    show_signed,
)
from d3s.estimate.plot.save import save_figure
from d3s.files import write_image
from d3s.lab.demo import NOISE, Demo, MethodResult
from d3s.lab.design.limits import Conditions, depth_limits
from d3s.lab.twin.pair import Pair
from d3s.lab.view.page import render
from d3s.lab.view.plots import plot_optics
from d3s.rig import Rig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

TITLES = {
    "joint": "joint, our method",
    "consensus": "consensus, the paper's method, tuned",
    "sgbm": "SGBM of OpenCV, stereo alone",
}
FILES = (
    *("index.html", "demo.png", "optics.png"),
    *("left.png", "right.png", "rig.toml", "depth.npz", "depth.ply"),
)
"""Names of the files that `write_demo` writes."""

# Ends of the colour scales, shared by all methods so that colours can be compared.
_LARGEST_ERROR_CM, _LARGEST_SIGMA_CM = 3.0, 1.5
_WIDTH_IN = 13.0


def write_demo(demo: Demo, folder: Path, *, overwrite: bool = False) -> dict[str, Path]:
    """Write the page, its pictures, both views, the rig and the depth of our method.

    Returns the paths by the names in `FILES`. What exists is replaced only if told to.
    """
    make_folder(folder)
    files = {name: folder / name for name in FILES}
    rig, ours = demo.pair.rig, demo.results["joint"].depth_map
    rig.save(files["rig.toml"], overwrite=overwrite)
    for name, view in (("left.png", demo.pair.left), ("right.png", demo.pair.right)):
        write_image(files[name], np.clip(view, 0, 1), overwrite=overwrite)
    ours.save(files["depth.npz"], overwrite=overwrite)
    ours.save(files["depth.ply"], overwrite=overwrite)
    save_figure(plot_demo(demo), files["demo.png"], overwrite=overwrite)
    save_figure(_optics(rig), files["optics.png"], overwrite=overwrite)
    write_text(files["index.html"], demo_page(demo), overwrite=overwrite)
    return files


def plot_demo(demo: Demo) -> "Figure":
    """Figure of both views and the true depth, then depth, error and sigma of each method."""
    from matplotlib.figure import Figure

    pair = demo.pair
    rows, cols = pair.left.shape
    tall = rows / cols
    count = len(demo.results)
    height_in = (0.325 * _WIDTH_IN * tall + 0.25) * (count + 1) + 0.95
    figure = Figure(figsize=(_WIDTH_IN, height_in))
    figure.set_layout_engine("constrained", h_pad=0.03, w_pad=0.03, hspace=0, wspace=0)
    figure.suptitle(_headline(pair), fontsize="medium")
    sheet = figure.add_gridspec(count + 2, 3, height_ratios=[1.0] * (count + 1) + [0.05])
    panels = [[figure.add_subplot(sheet[i, j]) for j in range(3)] for i in range(count + 1)]
    norm = depth_norm(pair.depth_m)
    show_grey(panels[0][0], pair.left, "What the left lens sees")
    show_grey(panels[0][1], pair.right, "What the right lens sees")
    show_depth(panels[0][2], pair.depth_m, norm, "True depth, known since this is simulated")
    for axes, (name, result) in zip(panels[1:], demo.results.items(), strict=True):
        shown = _show_result(axes, name, result, pair, norm)
    bars = (("depth (m)", "both"), ("error (cm); red: too far", "both"), ("sigma (cm)", "max"))
    for column, (of_column, (unit, extend)) in enumerate(zip(shown, bars, strict=True)):
        draw_bar(of_column, figure.add_subplot(sheet[-1, column]), unit, extend)
    return figure


def _show_result(
    axes: "list[Axes]", name: str, result: MethodResult, pair: Pair, norm: "Normalize"
) -> "list[AxesImage]":
    """Show depth, error and sigma of a method in three panels."""
    depth_map, found = result.depth_map, result.score
    depth = show_depth(axes[0], depth_map.depth_m, norm, f"Depth by {TITLES[name]}")
    error_cm = 100 * (depth_map.depth_m - pair.depth_m)
    title = f"Error: mean {_cm(found.mae_m)} cm, median {_cm(found.median_m)} cm"
    error = show_signed(axes[1], error_cm, _LARGEST_ERROR_CM, title)
    title = f"Its own sigma: {found.coverage:.0%} of errors are below"
    sigma = show_scale(axes[2], 100 * depth_map.sigma_m, (0, _LARGEST_SIGMA_CM), title)
    return [depth, error, sigma]


def _headline(pair: Pair) -> str:
    rows, cols = pair.left.shape
    return (
        f"One simulated snapshot of the {pair.rig.name}, {rows} x {cols} px, {NOISE:.0%} noise: "
        f"{pair.depth_m.min():.2f} to {pair.depth_m.max():.2f} m. Grey: no depth is given."
    )


def _optics(rig: Rig) -> "Figure":
    """Figure of the optics from 0.25 to 2.5 m."""
    conditions, depths_m = Conditions(), np.linspace(0.25, 2.5, 181)
    disk, diffracted = (
        depth_limits(rig.optics, depths_m, spread=spread, conditions=conditions)
        for spread in ("disk", "diffraction")
    )
    return plot_optics(rig, disk, diffracted)


TABLE_HEADINGS = ("method", "MAE (cm)", "median (cm)", "density", "within sigma", "time (s)")


def table_rows(demo: Demo) -> list[tuple[str, ...]]:
    """Figures of each method as text, one row per method, under `TABLE_HEADINGS`."""
    return [
        (
            name,
            _cm(one.score.mae_m),
            _cm(one.score.median_m),
            f"{one.score.density:.1%}",
            f"{one.score.coverage:.0%}",
            f"{one.time_s:.2f}",
        )
        for name, one in demo.results.items()
    ]


TABLE_WORDS = (
    "MAE and median: of the absolute error, over all pixels that a method gives a depth for. "
    "Density: the share of the textured pixels that have one. Within sigma: the share of the "
    "errors that are below the method's own sigma; 68 % if that is honest. Time: on this machine, "
    "once compiled. Simulated."
)


def demo_page(demo: Demo) -> str:
    """HTML page that explains the pictures; the picture files lie beside it."""
    pair = demo.pair
    return render(
        "demo.html",
        optics=pair.rig.optics,
        near_m=float(pair.depth_m.min()),
        far_m=float(pair.depth_m.max()),
        shape=pair.left.shape,
        noise=NOISE,
        headings=TABLE_HEADINGS,
        rows=table_rows(demo),
        table_words=TABLE_WORDS,
    )


def _cm(metres: float) -> str:
    return f"{100 * metres:.2f}"
