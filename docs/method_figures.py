"""Figures of docs/method.md, computed by the code that they explain; run by `make pictures`."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

import d3s
from d3s.estimate.consensus.smoothing import smoothed
from d3s.estimate.joint.smoothing import noise_gains
from d3s.lab.evaluate import REPORT_PATTERNS
from d3s.lab.evaluate.truth import truth_of
from d3s.lab.twin.sensor import expose_pair
from d3s.lab.view.plots import ACCENT, GREEN, LEFT, PURPLE, RIGHT
from d3s.optics.consensus import confidence
from d3s.optics.d3 import PairDerivatives, d3_windowed_depth_m, finite_differences
from d3s.optics.stereo import alignment_shift_px, depth_error_m
from d3s.optics.thin_lens import conjugate_distance_m
from d3s.optics.windows import shifted_right
from d3s.types import FloatArray

RIG = d3s.Rig.paper_prototype()
NOISE = 0.01
SMOOTHING_PX = 1.0  # prefilter of both methods
COLOURS = (ACCENT, GREEN, LEFT, PURPLE, RIGHT)
WINDOW_PX = 31
TEXTURE = "gravel"  # not one of the tuning textures
DEPTH_M = 1.2
VIRTUAL_BASELINES_M = (0.45e-3, 0.50e-3, 0.55e-3)  # the paper's


def new_figure(width_in: float, height_in: float) -> Figure:
    return Figure(figsize=(width_in, height_in), layout="constrained")


# Thin lenses --------------------------------------------------------------------------------------


def lenses() -> Figure:
    """Rays of one point through two lenses, and its spots at several depths."""
    figure = new_figure(11, 4.1)
    rays, spots = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _draw_rays(rays)
    _draw_spots(spots)
    return figure


class _Sketch:
    """Camera that is large enough to draw; lengths relative to the distance of the sensor."""

    sensor = 1.0
    radius = 0.3
    centres = (0.55, -0.55)
    focus = (1.25, 2.6)  # focus distances of the left and right lens
    point = (-2.6, 0.0)


def _draw_rays(axes: Axes) -> None:
    cam = _Sketch
    far, height = cam.point
    axes.axvline(cam.sensor, color="black", linewidth=2)
    for centre, focus, colour, name in zip(
        cam.centres, cam.focus, (LEFT, RIGHT), ("left lens", "right lens"), strict=True
    ):
        power = 1 / cam.sensor + 1 / focus
        image = float(conjugate_distance_m(-far, power))
        target = centre + (centre - height) * image / -far  # the ray through the centre is straight
        ends = []
        for edge in (-cam.radius, cam.radius):
            start = centre + edge
            slope = (target - start) / image
            ends.append(start + slope * cam.sensor)
            axes.plot([far, 0], [height, start], color=colour, linewidth=1)
            axes.plot([0, image], [start, target], color=colour, linewidth=1, alpha=0.35)
            axes.plot([0, cam.sensor], [start, ends[-1]], color=colour, linewidth=1)
        lens = np.linspace(-1, 1, 50)
        bulge = 0.07 * (1 - lens**2)
        axes.fill_betweenx(
            centre + 1.1 * cam.radius * lens, -bulge, bulge, color=colour, alpha=0.35
        )
        axes.plot([cam.sensor] * 2, ends, color=colour, linewidth=7, solid_capstyle="butt")
        axes.axhline(centre, xmin=0.5, color="0.6", linewidth=0.8, linestyle=":")
        side = 1 if centre > 0 else -1
        axes.text(-0.12, centre + side * 0.42, name, color=colour, ha="right", va="center")
    axes.plot(*cam.point, "o", color="black")
    axes.text(far, height - 0.45, "a point\nat depth Z", ha="left", va="top")
    axes.text(cam.sensor + 0.1, 1.3, "sensor", ha="left", va="center")
    axes.set(xlim=(-2.75, 1.75), ylim=(-1.35, 1.55), aspect="equal")
    axes.axis("off")
    axes.set_title("two positions, two focus distances (not to scale)", fontsize="medium")


def _draw_spots(axes: Axes) -> None:
    depths_m = (0.35, 0.5, 0.7, 0.84, 1.2, 2.0)
    place, last = 0.0, 0.0
    ticks = []
    for depth_m in depths_m:
        radii = [abs(float(RIG.optics.blur_radius_px(depth_m, camera))) for camera in (0, 1)]
        place += last + max(radii) + 5.5 if ticks else 0
        last = max(radii)
        ticks.append(place)
        for row, radius, colour in zip((11, -11), radii, (LEFT, RIGHT), strict=True):
            axes.add_patch(Circle((place, row), max(radius, 0.5), color=colour, alpha=0.8))
            axes.text(place, row - 13 * np.sign(-row), f"{radius:.1f}", ha="center", va="center")
    axes.set(
        xlim=(-12, ticks[-1] + 12),
        ylim=(-28, 28),
        aspect="equal",
        yticks=(11, -11),
        yticklabels=("left", "right"),
        xticks=ticks,
        xticklabels=[f"{depth:g}" for depth in depths_m],
        xlabel="depth (m)",
    )
    axes.set_title("spot of a point, with its radius in pixels", fontsize="medium")


# Lines over inverse depth -------------------------------------------------------------------------


def lines() -> Figure:
    """Disparity, blur radius and difference of blur variances over 1/Z."""
    optics = RIG.optics
    vergence = np.linspace(0.4, 4.0, 200)
    depth_m = 1 / vergence
    figure = new_figure(11, 3.5)
    shift, blur, spread = figure.subplots(1, 3)
    shift.plot(vergence, optics.disparity_px(depth_m), color=ACCENT)
    shift.set(title="disparity", ylabel="left - right (px)", ylim=(0, None))
    for camera, (name, colour) in enumerate((("left", LEFT), ("right", RIGHT))):
        blur.plot(vergence, optics.blur_radius_px(depth_m, camera), color=colour, label=name)
    blur.axhline(0, color="0.6", linewidth=0.8)
    blur.set(title="blur radius, signed", ylabel="px")
    blur.legend(frameon=False)
    half = optics.alpha_px2_m * (vergence - optics.kappa_dpt)
    spread.plot(vergence, half, color=PURPLE)
    spread.axhline(0, color="0.6", linewidth=0.8)
    spread.axvline(optics.kappa_dpt, color="0.6", linewidth=0.8, linestyle=":")
    spread.annotate(
        f"equal blur at {1 / optics.kappa_dpt:.2f} m",
        (optics.kappa_dpt, 0),
        xytext=(14, -22),
        textcoords="offset points",
    )
    spread.set(title="half the difference of blur variances", ylabel="right - left (px²)")
    for axes in (shift, blur, spread):
        axes.set(xlabel="1 / depth (1/m)", xlim=(0.4, 4.0))
        axes.grid(alpha=0.25)
        above = axes.secondary_xaxis("top", functions=(_inverse, _inverse))
        marks_m = (0.25, 0.3, 0.4, 0.5, 0.7, 1, 2)
        above.set_xticks(marks_m, [f"{depth:g}" for depth in marks_m])
        above.set_xlabel("depth (m)")
    return figure


def _inverse(values: FloatArray) -> FloatArray:
    return 1 / np.maximum(np.asarray(values, dtype=np.float64), 1e-3)


# One pixel ----------------------------------------------------------------------------------------

_RADIUS_PX = 30  # half of the largest window, with its derivatives
_SPLINE_MARGIN_PX = 8  # keeps the spline away from the cut


class Pixel(NamedTuple):
    """One pixel of a simulated pair, at the middle row of its smoothed views."""

    left: FloatArray
    right: FloatArray
    col: int
    depth_m: float

    def aligned(self, shift_px: float) -> PairDerivatives:
        """Difference and derivatives around the pixel, with the right view shifted to the right."""
        whole = int(np.floor(shift_px))
        first, last = self.col - _RADIUS_PX, self.col + _RADIUS_PX + 1
        wide = self.right[:, first - whole - _SPLINE_MARGIN_PX : last - whole + _SPLINE_MARGIN_PX]
        moved = shifted_right(wide, shift_px - whole)[:, _SPLINE_MARGIN_PX:-_SPLINE_MARGIN_PX]
        return finite_differences(self.left[:, first:last], moved)

    def residual_energy(
        self,
        depths_m: FloatArray,
        side_px: int,
        *,
        aligned_at_m: float | None = None,
        use_defocus: bool = True,
    ) -> FloatArray:
        """Mean squared residual of docs/estimator_method.md over a window, at each depth.

        Parameters
        ----------
        depths_m
            Depths (n,) in metres.
        side_px
            Side of the window in px, odd.
        aligned_at_m
            Depth at which the views stay aligned, so that only the defocus term changes; by default
            they are aligned at each depth.
        use_defocus
            Whether the residual has the defocus term.
        """
        alpha = RIG.optics.alpha_px2_m if use_defocus else 0.0
        fixed = None if aligned_at_m is None else self._at(aligned_at_m)
        energies = []
        for depth_m in depths_m:
            one = fixed or self._at(float(depth_m))
            blur = alpha * (1 / depth_m - RIG.optics.kappa_dpt)
            residual = _window(one.difference + blur * one.mean_laplacian, side_px)
            energies.append(np.square(residual).mean())
        return np.array(energies)

    def noise_energy(self, side_px: int) -> float:
        """Variance of the noise along g in least squares over a window.

        Smoothed noise is correlated between neighbours. Smoothing g gives the same variance.
        """
        g = self.gradient(side_px)
        return 2 * NOISE**2 * float(np.square(smoothed(g, SMOOTHING_PX)).sum() / np.square(g).sum())

    def gradient(self, side_px: int) -> FloatArray:
        """Derivative g of the residual with respect to disparity, with both cues."""
        one = self._at(self.depth_m)
        per_px = RIG.optics.alpha_px2_m / (RIG.optics.focal_length_px * RIG.optics.baseline_m)
        return _window(one.mean_grad_x + per_px * one.mean_laplacian, side_px)

    def _at(self, depth_m: float) -> PairDerivatives:
        return self.aligned(float(RIG.optics.disparity_px(depth_m)))


def _window(image: FloatArray, side_px: int) -> FloatArray:
    """Values of the central window minus their mean."""
    rows, cols = (size // 2 for size in image.shape)
    half = side_px // 2
    values = image[rows - half : rows + half + 1, cols - half : cols + half + 1]
    return np.asarray(values - values.mean())


def pixel_of(texture: str | d3s.Photo, depth_m: float) -> Pixel:
    """Pixel of a simulated wall with noise."""
    scene = d3s.Plane(depth_m=depth_m, texture=texture)
    pair = d3s.simulate(scene, RIG, noise=NOISE, shape=(2 * _RADIUS_PX + 1, 400))
    left, right = (smoothed(view, SMOOTHING_PX) for view in (pair.left, pair.right))
    return Pixel(left, right, 260, depth_m)


def waves(depth_m: float, period_px: float) -> d3s.Photo:
    """Texture that is periodic in both directions."""
    period_m = period_px * depth_m / RIG.optics.focal_length_px
    wave = np.sin(2 * np.pi * np.arange(64 * 32) / 32)
    image = (0.5 + 0.25 * wave + 0.15 * wave[:, np.newaxis]).astype(np.float32)
    return d3s.Photo(image=image, width_m=64 * period_m, encoding="linear")


def cues() -> Figure:
    """Residual of stereo, defocus and both, for a common and a periodic texture."""
    figure = new_figure(11, 3.9)
    plain, repeating = figure.subplots(1, 2, sharey=True)
    _draw_cues(plain, pixel_of(TEXTURE, DEPTH_M))
    plain.set_title(f"one pixel of a wall of {TEXTURE} at {DEPTH_M:g} m", fontsize="medium")
    plain.set_ylabel("mean squared residual (1: noise)")
    _draw_cues(repeating, pixel_of(waves(2.0, 12.0), 2.0))
    repeating.set_title("one pixel of a periodic texture at 2 m", fontsize="medium")
    return figure


def _draw_cues(axes: Axes, pixel: Pixel) -> None:
    vergence = np.linspace(0.4, 4.0, 241)
    noise = 2 * NOISE**2 * noise_gains(SMOOTHING_PX).smoothed
    for label, colour, settings in (
        ("stereo alone", LEFT, {"use_defocus": False}),
        ("defocus alone, views aligned", PURPLE, {"aligned_at_m": pixel.depth_m}),
        ("both", "black", {}),
    ):
        energy = pixel.residual_energy(1 / vergence, WINDOW_PX, **settings)
        axes.semilogy(vergence, energy / noise, color=colour, label=label)
    axes.axvline(1 / pixel.depth_m, color=GREEN, linestyle=":", label="truth")
    axes.set(xlabel="1 / depth (1/m)", xlim=(0.4, 4.0))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize="small", loc="lower right")


# The paper's consensus ----------------------------------------------------------------------------


def consensus() -> Figure:
    """Depth predicted at each candidate by the depth equation, and the confidence."""
    pixel = pixel_of(TEXTURE, DEPTH_M)
    candidates_m = 1 / np.linspace(1 / 0.7, 1 / 2.4, 161)
    predictions = np.array(
        [[_predicted_m(pixel, float(z), dx) for z in candidates_m] for dx in VIRTUAL_BASELINES_M]
    )
    figure = new_figure(11, 3.7)
    depths, agreement = figure.subplots(1, 2)
    for baseline_m, predicted_m, shade in zip(
        VIRTUAL_BASELINES_M, predictions, (0.45, 0.7, 1), strict=True
    ):
        label = f"defocus equation, {1e3 * baseline_m:.2f} mm"
        depths.plot(candidates_m, predicted_m, color=PURPLE, alpha=shade, label=label)
    depths.plot(candidates_m, candidates_m, color=LEFT, label="stereo: the candidate itself")
    depths.set(ylabel="depth (m)", ylim=(0, 4), title="depth by each cue")
    sure = confidence(candidates_m, predictions)
    best_m = candidates_m[sure.argmax()]
    agreement.plot(candidates_m, sure, color=ACCENT)
    agreement.plot(best_m, sure.max(), "v", color="black", label=f"chosen: {best_m:.2f} m")
    agreement.set(ylabel="confidence", ylim=(0, 1.05), title="agreement of the cues (Eq. 14)")
    for axes in (depths, agreement):
        axes.axvline(DEPTH_M, color=GREEN, linestyle=":", label=f"truth: {DEPTH_M:g} m")
        axes.set(xlabel="candidate depth (m)", xlim=(0.7, 2.4))
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize="small", loc="upper right")
    return figure


def _predicted_m(pixel: Pixel, candidate_m: float, virtual_baseline_m: float) -> float:
    """Depth in metres by Eq. 10 over a window, at the shift of Eq. 12."""
    optics = RIG.optics
    shift_px = alignment_shift_px(
        candidate_m,
        virtual_baseline_m,
        focal_length_px=optics.focal_length_px,
        baseline_m=optics.baseline_m,
        disparity_offset_px=optics.disparity_offset_px,
    )
    predicted_m = d3_windowed_depth_m(
        pixel.aligned(float(shift_px)),
        virtual_baseline_m,
        focal_length_px=optics.focal_length_px,
        alpha_px2_m=optics.alpha_px2_m,
        kappa_dpt=optics.kappa_dpt,
        window_px=21,
    )
    middle = predicted_m.shape[0] // 2, predicted_m.shape[1] // 2
    return float(predicted_m[middle])


# The error bar ------------------------------------------------------------------------------------


def sigma() -> Figure:
    """Likelihood of depth for three windows, and errors divided by sigma."""
    figure = new_figure(11, 3.7)
    likelihood, errors = figure.subplots(1, 2)
    _draw_likelihood(likelihood, pixel_of(TEXTURE, DEPTH_M))
    _draw_pulls(errors)
    return figure


def _draw_likelihood(axes: Axes, pixel: Pixel) -> None:
    depths_m = np.linspace(DEPTH_M - 0.03, DEPTH_M + 0.03, 241)
    for side_px, colour in ((9, LEFT), (23, PURPLE), (57, ACCENT)):
        energy = pixel.residual_energy(depths_m, side_px)
        chi_squared = side_px**2 * (energy - energy.min()) / pixel.noise_energy(side_px)
        squares = np.square(pixel.gradient(side_px)).sum()
        sigma_m = float(
            depth_error_m(
                np.sqrt(pixel.noise_energy(side_px) / squares),
                DEPTH_M,
                focal_length_px=RIG.optics.focal_length_px,
                baseline_m=RIG.optics.baseline_m,
            )
        )
        label = f"{side_px} px: sigma {1e3 * sigma_m:.1f} mm"
        axes.plot(depths_m, np.exp(-0.5 * chi_squared), color=colour, label=label)
    axes.axvline(DEPTH_M, color=GREEN, linestyle=":", label="truth")
    axes.set(xlabel="depth (m)", ylabel="likelihood (maximum 1)", ylim=(0, 1.5))
    axes.set_xlim(depths_m[0], depths_m[-1])
    axes.set_title("one pixel, three windows", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper center")
    axes.grid(alpha=0.25)


def _draw_pulls(axes: Axes) -> None:
    """Draw a histogram of errors divided by sigma, each wall with its own texture and noise."""
    pulls = []
    for seed in range(24):
        texture = d3s.Texture(pattern=REPORT_PATTERNS[seed % len(REPORT_PATTERNS)], seed=seed)
        scene = d3s.Plane(depth_m=DEPTH_M, texture=texture)
        pair = d3s.simulate(scene, RIG, noise=NOISE, shape=(96, 180), seed=seed)
        est = d3s.estimate(pair.left, pair.right, RIG)
        # Neighbours share their window: take one pixel in 16.
        pulls.append(((est.depth_m - pair.depth_m) / est.sigma_m)[8::16, 8::16].ravel())
    values = np.concatenate(pulls)
    values = values[np.isfinite(values)]
    bins = np.linspace(-4, 4, 33)
    axes.hist(values, bins, density=True, color="0.75", label=f"{values.size} pixels of walls")
    fine = np.linspace(-4, 4, 200)
    bell = np.exp(-0.5 * fine**2) / np.sqrt(2 * np.pi)
    axes.plot(fine, bell, color="black", label="normal distribution")
    share = np.mean(np.abs(values) < 1)
    axes.axvspan(-1, 1, color=GREEN, alpha=0.12, label=f"{share:.0%} within one sigma")
    axes.set(xlabel="error / sigma", ylabel="density", xlim=(-4, 4), ylim=(0, 0.62))
    axes.set_title(f"errors of joint divided by sigma, {DEPTH_M:g} m", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", loc="upper center", ncols=2)


# The limit ----------------------------------------------------------------------------------------


def limit() -> Figure:
    """Errors over depth beside the Cramér-Rao bound of the same views."""
    depths_m = (0.3, 0.4, 0.5, 0.65, 0.85, 1.05, 1.3, 1.6, 2.0)
    found = np.array([_errors_m(depth_m) for depth_m in depths_m])
    figure = new_figure(8, 4)
    axes = figure.subplots()
    for values, label, style in zip(
        found.T,
        (
            f"bound of a window of {WINDOW_PX} px",
            f"joint, only windows of {WINDOW_PX} px",
            "joint, default windows",
            "consensus, as printed",
        ),
        (
            {"color": "black", "linestyle": "--"},
            {"color": PURPLE, "marker": "o"},
            {"color": RIGHT, "marker": "o"},
            {"color": LEFT, "marker": "s"},
        ),
        strict=True,
    ):
        axes.loglog(depths_m, 100 * values, label=label, **style)
    axes.axhline(1, color=GREEN, linestyle=":", linewidth=1)
    axes.text(depths_m[0], 1.06, "1 cm", color=GREEN)
    axes.set(xlabel="depth (m)", ylabel="root mean square error (cm)")
    axes.set_xticks(depths_m, [f"{depth:g}" for depth in depths_m])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(f"walls of {TEXTURE}, {NOISE:.0%} noise, simulated", fontsize="medium")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize="small")
    return figure


def _errors_m(depth_m: float) -> tuple[float, ...]:
    """RMS bound, and RMS errors of joint with fixed windows, joint and consensus, in metres."""
    cols = int(RIG.optics.disparity_px(depth_m)) + 260
    scene = d3s.Plane(depth_m=depth_m, texture=TEXTURE)
    clean = d3s.simulate(scene, RIG, shape=(140, cols))
    truth = truth_of(clean, NOISE)
    left, right = expose_pair(clean.left, clean.right, NOISE, seed=0)
    found = [
        d3s.estimate(left, right, RIG, method=method, options=options)
        for method, options in (
            ("joint", {"windows_px": (WINDOW_PX,)}),
            ("joint", {}),
            ("consensus", {}),
        )
    ]
    errors = [(one.depth_m - depth_m)[truth.textured & one.valid] for one in found]
    return _rms(truth.bound_m[truth.textured]), *(_rms(error) for error in errors)


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


FIGURES = {
    "method_lens": lenses,
    "method_lines": lines,
    "method_cues": cues,
    "method_consensus": consensus,
    "method_sigma": sigma,
    "method_limit": limit,
}
