"""Parts of figures that several of them have, and the figure of the optics over depth."""

from typing import TYPE_CHECKING, Any

from d3s.lab.design.limits import Conditions, DepthLimits
from d3s.rig import Optics, Rig

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT, ACCENT, PURPLE, GREEN = "#1f6fb4", "#c8442d", "#444444", "#8a63b0", "#2f8f4e"


def new_figure(width_in: float, height_in: float) -> "Figure":
    """Empty figure."""
    from matplotlib.figure import Figure  # not pyplot: no global state, no screen

    return Figure(figsize=(width_in, height_in), layout="constrained")


def new_axes(width_in: float, height_in: float) -> "tuple[Figure, Axes]":
    """Figure of one panel, and the panel."""
    figure = new_figure(width_in, height_in)
    return figure, figure.subplots()


def note(
    axes: "Axes", text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any
) -> None:
    """Write small text at a distance, in points, from a place in a panel."""
    given = {"fontsize": "x-small", **style}
    axes.annotate(text, at, xytext=offset, textcoords="offset points", **given)


def show_grid(axes: "Axes") -> None:
    """Draw the grid behind everything else, and no frame at the top and the right."""
    axes.grid(which="major", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def plot_optics(rig: Rig, limits: DepthLimits, diffracted: DepthLimits) -> "Figure":
    """Figure of the blur of both cameras, the disparity and the Cramér-Rao bound over depth.

    `diffracted` are the limits with diffraction, at the same depths as `limits`.
    """
    figure = new_figure(11, 4.0)
    figure.suptitle(f"{rig.name}: {_assumptions(limits.conditions)}", fontsize="medium")
    blur, disparity, bound = figure.subplots(1, 3)
    _plot_blur(blur, rig.optics, limits)
    disparity.plot(limits.depth_m, limits.disparity_px, color=ACCENT)
    disparity.set(title="Disparity", ylabel="left - right (px)", ylim=(0, None))
    _plot_bound(bound, limits, diffracted)
    for axes in (blur, disparity, bound):
        axes.set(xlabel="depth (m)", xlim=(limits.depth_m[0], limits.depth_m[-1]))
        axes.grid(alpha=0.25)
    return figure


def _assumptions(conditions: Conditions) -> str:
    texture = f"natural texture of {conditions.contrast:.0%} contrast"
    noise = f"{conditions.noise_sigma:.0%} noise, {conditions.window_px} px windows"
    return f"{texture}, {noise}, {1e9 * conditions.wavelength_m:.0f} nm; computed"


def _plot_blur(axes: "Axes", optics: Optics, limits: DepthLimits) -> None:
    for camera, (name, colour) in enumerate((("left", LEFT), ("right", RIGHT))):
        sigma = abs(limits.blur_sigma_px[camera])
        focus_m = optics.focus_distances_m[camera]
        axes.plot(limits.depth_m, sigma, color=colour, label=f"{name}, focus {focus_m:.3f} m")
    axes.set(title="Blur of both cameras", ylabel="size of Gaussian sigma (px)", ylim=(0, None))
    axes.legend(frameon=False)


def _plot_bound(axes: "Axes", limits: DepthLimits, diffracted: DepthLimits) -> None:
    disk = limits.bound
    lines = {
        "both cues, blur disk": (disk.total_m, {"color": ACCENT}),
        "both cues, diffracted": (diffracted.bound.total_m, {"color": ACCENT, "linestyle": "--"}),
        "defocus alone, blur disk": (disk.defocus_m, {"color": PURPLE}),
    }
    for label, (sigma_m, style) in lines.items():
        axes.semilogy(limits.depth_m, 100 * sigma_m, label=label, **style)
    axes.axhline(1.0, color=GREEN, linewidth=1, linestyle=":")
    axes.text(limits.depth_m[-1], 1.05, "1 cm ", color=GREEN, ha="right", va="bottom")
    axes.set(title="Smallest possible depth error", ylabel="standard deviation (cm)")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize="small")
