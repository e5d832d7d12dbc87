"""Densified rooms: how much is filled, how wrong it is, whether sigma is true, and other fills.

    .venv/bin/python benchmarks/dense.py ROOMS [--quick] [--patterns tuning] [--without-weak]
        [--picture docs/_static/dense_rooms.png]
    .venv/bin/python benchmarks/dense.py --time

ROOMS is the folder of `d3s evaluate rooms --keep ROOMS`; missing rooms are rendered. With --quick
they are those of `benchmarks/drift.py`, which it keeps in captures/drift/rooms: 400 x 600 px, with
128 light paths a pixel instead of 512. Other fills get the same input, once with weak depths and
once without, and are judged on the pixels that `densify` fills: nearest measured pixel, domain
transform, and both inpaintings of OpenCV, at the better of both inputs and of several widths.

Columns: share of the pixels that are measured with a sigma below 5 cm, and that are filled; gain by
them, and that by a judge who knows which of all filled depths are right to 5 cm; MAE, share off by
more than 15 cm, and within 1 and 3 sigma, of what is filled; MAE, and within 1 and 3 sigma, of all
holes.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

import d3s
from d3s.estimate.methods import estimate_quietly
from d3s.lab.dense import densify
from d3s.lab.dense.evidence import guide_of
from d3s.lab.view.truth import FILLED_COLOUR, MEASURED_COLOUR, OPEN_COLOUR
from d3s.types import FloatArray, Image, Mask
from dense_frames import RIG, THRESHOLD, DenseFrame, report_frames, tuning_frames
from sheets import Sheet, show

WISH_M, OFF_M = 0.05, 0.15
HEADINGS = (
    *("room", "measured with sigma < 5 cm (%)", "filled (%)", "gain", "most", "MAE (cm)"),
    *("> 15 cm (%)", "< 1 sigma (%)", "< 3 sigma (%)"),
    *("all holes: MAE (cm)", "< 1 sigma (%)", "< 3 sigma (%)"),
)
FULL_SHAPE = (902, 1802)
WEAK = (1.0, 0.3, 0.1)  # least confidence of the depths that other fills begin with, above 0.5 none
RADII = (3, 9)  # of OpenCV's inpainting, in pixels
REACHES = (20.0, 80.0)  # of the domain transform, in pixels
RANGES = (2.0, 8.0)  # of the domain transform, in units of contrast


def nearest(inverse: FloatArray, known: Mask) -> FloatArray:
    """Inverse depth of the nearest known pixel."""
    from scipy.ndimage import distance_transform_edt

    place = distance_transform_edt(~known, return_distances=False, return_indices=True)
    return np.asarray(inverse[tuple(place)])


def domain_transform(
    inverse: FloatArray, known: Mask, guide: Image, reach: float, edge: float
) -> FloatArray:
    """Normalised recursive domain transform (Gastal and Oliveira, 2011), three rounds."""
    steps = [1 + reach / edge * np.abs(np.diff(guide, axis=axis)) for axis in (0, 1)]
    value, weight = np.where(known, inverse, 0.0), known.astype(float)
    for turn in range(3):
        sigma = reach * np.sqrt(3) * 2.0 ** (2 - turn) / np.sqrt(4**3 - 1)
        falling = np.exp(-np.sqrt(2) / sigma)
        for axis, step in enumerate(steps):
            value, weight = (_recursive(one, falling**step, axis) for one in (value, weight))
    return np.asarray(value / np.maximum(weight, 1e-30))


def _recursive(image: FloatArray, share: FloatArray, axis: int) -> FloatArray:
    """Recursive filter to and fro along an axis."""
    out, share = np.moveaxis(image.copy(), axis, 0), np.moveaxis(share, axis, 0)
    for row in range(1, len(out)):
        out[row] += share[row - 1] * (out[row - 1] - out[row])
    for row in range(len(out) - 2, -1, -1):
        out[row] += share[row] * (out[row + 1] - out[row])
    return np.moveaxis(out, 0, axis)


def inpainted(inverse: FloatArray, known: Mask, radius: float, kind: int) -> FloatArray:
    """Inpainting of OpenCV, over 16 bit."""
    import cv2

    most = float(inverse[known].max())
    image = np.where(known, inverse / most * 65535, 0).astype(np.uint16)
    found = cv2.inpaint(image, (~known).astype(np.uint8), radius, kind)
    return np.asarray(found, np.float64) * most / 65535


def other_fills(frame: DenseFrame) -> Iterator[tuple[str, FloatArray]]:
    """Depths by other methods, each with every input and setting."""
    import cv2

    found = frame.depth_map
    guide = guide_of(found).max(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 1.0 / found.depth_m.astype(float)
        for least in WEAK:
            known = frame.is_measured | (found.valid & (found.confidence >= least))
            yield "nearest", 1 / nearest(inverse, known)
            for reach in REACHES:
                for edge in RANGES:
                    one = domain_transform(inverse, known, guide, reach, edge)
                    yield "domain transform", 1 / one
            for radius in RADII:
                for name, kind in (("Telea", cv2.INPAINT_TELEA), ("NS", cv2.INPAINT_NS)):
                    yield f"inpaint {name}", 1 / inpainted(inverse, known, radius, kind)


def best_of_others(frame: DenseFrame, *judged: Mask) -> list[dict[str, float]]:
    """Smallest MAE of each other fill in metres, over its settings, for some masks."""
    best: list[dict[str, float]] = [{} for _ in judged]
    for name, depth_m in other_fills(frame):
        error = np.abs(np.clip(depth_m, 0, 10) - frame.true_m)
        for found, mask in zip(best, judged, strict=True):
            found[name] = min(found.get(name, np.inf), float(np.nanmean(error[mask])))
    return best


class Verdict(NamedTuple):
    """Figures of a room as cells of the two tables, and what the picture of it shows."""

    figures: list[str]
    others: list[str]
    name: str
    view: Image
    kind: Image  # 0 open, 1 filled, 2 measured
    error_m: Image  # NaN where there is no depth


def judge(frame: DenseFrame) -> Verdict:
    """Judge a room: the depths that are filled, and other fills."""
    dense = densify(frame.depth_map, max_sigma_m=WISH_M, min_confidence=THRESHOLD)
    closed = densify(frame.depth_map, max_sigma_m=None, min_confidence=THRESHOLD)
    measured = frame.is_measured
    alone = measured & (frame.depth_map.sigma_m < WISH_M)
    filled = dense.valid & ~measured
    error, everywhere = np.abs(dense.depth_m - frame.true_m), np.abs(closed.depth_m - frame.true_m)
    e, s = error[filled], dense.sigma_m[filled]
    a, t = everywhere[~measured], closed.sigma_m[~measured]
    gain, most = (
        (alone.sum() + some.sum()) / max(alone.sum(), 1)
        for some in (filled, ~measured & (everywhere < WISH_M))
    )
    figures = [
        *(frame.name, f"{100 * alone.mean():.1f}", f"{100 * filled.mean():.1f}"),
        *(f"{gain:.2f}", f"{most:.2f}", f"{100 * e.mean():.2f}", f"{100 * np.mean(e > OFF_M):.1f}"),
        *(f"{100 * np.mean(e < s):.0f}", f"{100 * np.mean(e < 3 * s):.1f}"),
        *(
            f"{100 * a.mean():.1f}",
            f"{100 * np.mean(a < t):.0f}",
            f"{100 * np.mean(a < 3 * t):.1f}",
        ),
    ]
    others, of_all = best_of_others(frame, filled, ~measured)
    by_others = [
        *(frame.name, f"{100 * e.mean():.2f}", *(f"{100 * one:.2f}" for one in others.values())),
        *(f"{100 * a.mean():.1f}", *(f"{100 * one:.1f}" for one in of_all.values())),
    ]
    kind = np.where(measured, 2, np.where(filled, 1, 0)).astype(np.float32)
    view = guide_of(frame.depth_map)[..., 0]
    return Verdict(figures, by_others, frame.name, view, kind, error)


def without_weak(frames: Iterator[DenseFrame]) -> Iterator[DenseFrame]:
    """Frames as the estimator gives them by default."""
    for frame in frames:
        found = frame.depth_map.filter(min_confidence=THRESHOLD)
        yield replace(frame, depth_map=found, has_weak=False)


def tables(verdicts: list[Verdict]) -> list[Sheet]:
    """Tables of the rooms, and of other fills."""
    fills = ("nearest pixel", "domain transform", "inpaint, Telea", "inpaint, Navier-Stokes")
    headings = ["room", "densify", *fills, "all holes: densify", *fills]
    return [
        Sheet("rooms", HEADINGS, [one.figures for one in verdicts]),
        Sheet("other fills: MAE (cm)", headings, [one.others for one in verdicts]),
    ]


def draw(verdicts: list[Verdict], path: str) -> None:
    """Draw the left view, what is measured, filled and open, and the error of each room."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.05 * len(verdicts)), layout="constrained")
    colours = ListedColormap([OPEN_COLOUR, FILLED_COLOUR, MEASURED_COLOUR])
    axes = figure.subplots(len(verdicts), 3, squeeze=False)
    for row, one in zip(axes, verdicts, strict=True):
        row[0].imshow(one.view, cmap="gray")
        row[1].imshow(one.kind, cmap=colours, vmin=0, vmax=2, interpolation="nearest")
        shown = row[2].imshow(100 * one.error_m, cmap="viridis", vmin=0, vmax=100 * OFF_M)
        row[0].set_ylabel(one.name)
        for each in row:
            each.set(xticks=[], yticks=[])
    for each, title in zip(axes[0], ("left view", "measured, filled, open", "error"), strict=True):
        each.set_title(title)
    figure.colorbar(shown, ax=axes[:, 2], label="cm", fraction=0.05, aspect=60)
    figure.savefig(path, dpi=60)


def show_time() -> None:
    """Print the time of two full frames, against that of their estimates."""
    weak = d3s.RandomScene(seed=1000, surfaces="weak", nearest_m=0.4)
    mask = np.zeros(FULL_SHAPE, np.float32)
    mask[300:600, 500:900] = 1
    box = d3s.Layer(depth_m=0.8, mask=mask, texture=d3s.Texture(pattern="gravel", seed=1))
    wall = d3s.Layer(depth_m=1.4, texture=d3s.Texture(pattern="gravel", seed=2, contrast=0.01))
    for name, scene in (("weak", weak), ("plain", d3s.Layered(layers=[box, wall]))):
        pair = d3s.simulate(scene, RIG, shape=FULL_SHAPE, noise=0.01)
        times: dict[str, list[float]] = {"estimate": [], "densify": []}
        for _ in range(6):
            started = perf_counter()
            found = estimate_quietly(pair.left, pair.right, RIG, options={"min_confidence": 0.0})
            between = perf_counter()
            densify(found)
            times["estimate"].append(between - started)
            times["densify"].append(perf_counter() - between)
        best = {kind: min(one) for kind, one in times.items()}
        print(
            f"{name}: {found.filter(min_confidence=THRESHOLD).density:.0%} measured; estimate "
            f"{best['estimate']:.3f} s, densify {best['densify']:.3f} s: "
            f"{best['densify'] / best['estimate']:.2f} times",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="?")
    parser.add_argument("--patterns", choices=("report", "tuning"), default="report")
    parser.add_argument("--quick", action="store_true", help="Rooms with few light paths.")
    parser.add_argument("--without-weak", action="store_true")
    parser.add_argument("--picture", help="PNG file to draw the rooms into.")
    parser.add_argument("--time", action="store_true")
    given = parser.parse_args()
    if given.time:
        show_time()
        return
    if given.rooms is None:
        parser.error("name the folder of the rooms, or --time.")
    frames = report_frames(given.rooms, quick=given.quick)
    if given.patterns == "tuning":
        frames = (one for one in tuning_frames(given.rooms, scenes=False) if one.has_weak)
    verdicts = []
    for frame in without_weak(frames) if given.without_weak else frames:
        verdicts.append(judge(frame))
        print(" | ".join(verdicts[-1].figures), flush=True)
    show(tables(verdicts))
    if given.picture is not None:
        draw(verdicts, given.picture)


if __name__ == "__main__":
    main()
