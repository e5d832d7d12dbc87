"""Fig. 5c, explained: labels, windows, gain and focus of all methods, one at a time."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from d3s.batch.running import results
from d3s.calibrate.validation import working_range_m
from d3s.lab.evaluate import Contender, PlaneSweep, SweepTable
from d3s.lab.evaluate.cameras import FAR_M, NEAR_M, NOISE, QUICK_FAR_M, QUICK_NEAR_M
from d3s.lab.evaluate.evaluation import Job, Rows, common_parameters, contenders_of, join_rows
from d3s.lab.evaluate.metrics import finite_mean
from d3s.lab.evaluate.sweep import make_trial
from d3s.lab.evaluate.truth import Truth
from d3s.lab.reproduce.fig5_accuracy import QUICK_TEXTURES, TEXTURES, ends_text, length_m
from d3s.lab.reproduce.item import Cell, Comparison, Context, Item, Picture, Result, Table
from d3s.lab.reproduce.protocol import ACCURACY_THRESHOLD, PRINTED_RANGE_M
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.sequence import even_distances_m
from d3s.lab.twin.textures import Photo, Texture
from d3s.lab.view.reproduction_accuracy import ErrorPanel, plot_panels
from d3s.rig import Optics, Rig
from d3s.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WINDOWS_PX, _QUICK_WINDOWS_PX = (11, 21, 31, 41), (21, 41)
_EQUAL_PX = 31  # window of all methods where gain and focus are varied
_GAINS = (0.0, 0.01, 0.02, 0.03)
_FOCUS_DPT = (0.0, 0.05, 0.1, 0.3)
_SHAPE = (160, 360)
_FAR_PART_M = (0.9, PRINTED_RANGE_M[1])
_RIGHT_M = 0.05  # a period of the repetition is farther away than that
_WEAK_CONTRAST = 0.06  # at which a window of 31 px just has enough texture at 1 m
_TEXEL_M, _TEXELS = 0.125e-3, 1601
_PERIOD_M, _PERIOD_DOWN_M = 3e-3, 5e-3

_SCENES = {
    "planes": "textured planes",
    "weak": "weak texture",
    "repetition": "repetition",
    "rows": "rows without texture along x",
}
_WINDOW_OPTIONS = {"bm": "block_size_px", "sgbm": "block_size_px", "joint": "windows_px"}
_LARGEST_SGBM_PX = 21  # beyond, OpenCV's sums overflow
_HAVE_LABELS = ("li2010", "takeda2013")  # an option; disparities of the others are rounded
_WITHOUT_LABELS = ("guo2017", "sift")  # a ratio; the places of keypoints

_CONSENSUS = {"min_confidence": ACCURACY_THRESHOLD}
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "consensus": ("consensus", _CONSENSUS),
    "consensus, as printed": ("consensus", {**_CONSENSUS, "as_printed": True}),
    "consensus, mean kept": ("consensus", {**_CONSENSUS, "local_mean_px": 0.0}),
    "joint, no defocus": ("joint", {"use_defocus": False}),
}
_RIVALS = ("li2010", "takeda2013", "bm")
_LABELLED = (*list(_VARIANTS)[:2], *_RIVALS, "sgbm", "phase", "guo2017", "joint")


def _contender(name: str, window_px: int = 0, labels: str = "subpixel") -> Contender:
    """Return a method or a variant with a window, if any, under a name that says all three."""
    method, options = _VARIANTS.get(name, (name, {}))
    if window_px:
        option = _WINDOW_OPTIONS.get(method, "window_px")
        options = {**options, option: (window_px,) if method == "joint" else window_px}
    if labels == "whole":
        options = {**options, "labels": labels}
    return Contender(method=method, options=options, label=f"{name}|{window_px}|{labels}")


def make_order(context: Context) -> Result:
    """Make the item: three experiments on planes, a figure, tables and what follows."""
    jobs = _jobs(context)
    rows = join_rows(results(_measure, jobs, **context.run(context.progress)), "rows")
    labels, gain, focus = (
        SweepTable(row for row in rows if row["experiment"] == name)
        for name in ("labels", "gain", "focus")
    )
    return Result(
        pictures=[
            Picture(name="order", figure=_figure(labels, gain, focus), caption=_caption(context))
        ],
        tables=[
            Table(name="order_rows", rows=rows),
            Table(
                name="order_labels",
                rows=_label_rows(labels),
                caption=f"Mean error (cm) over {ends_text(_FAR_PART_M)} by window, and the best "
                "working range and its window. Whole: disparities are whole pixels. guo2017 and "
                "sift have no labels, sift has no window.",
                shown=True,
            ),
            Table(
                name="order_gain",
                rows=_gain_rows(gain),
                caption=f"Mean error (cm) over {ends_text(_FAR_PART_M)} where the right view is "
                f"brighter, windows of {_EQUAL_PX} px.",
                shown=True,
            ),
            Table(
                name="order_focus",
                rows=_focus_rows(focus),
                caption="By the difference in focus of the lenses (0.1 dpt is the prototype's), "
                f"windows of {_EQUAL_PX} px: mean error (cm) on textured planes, and the share of "
                f"all pixels (%) with a depth that is right within {100 * _RIGHT_M:g} cm, and with "
                "one that is not.",
                shown=True,
            ),
        ],
        comparisons=_comparisons(labels),
        remarks=_remarks(labels, gain, focus),
        sweeps=[
            {
                **common_parameters(Rig.paper_prototype()),
                "sweep": jobs[0]["sweep"],
                "methods": {one["name"]: one for job in jobs for one in job["methods"]},
            }
        ],
    )


# The pairs ----------------------------------------------------------------------------------------


def _jobs(context: Context) -> list[Job]:
    """Return a job for each simulated pair."""
    quick = context.quick
    sweep = PlaneSweep(
        patterns=QUICK_TEXTURES if quick else TEXTURES,
        shape=_SHAPE,
        noise=NOISE,
        seed=context.seed,
        photos=context.photos,
    )
    common: Job = {"work": "order", "sweep": sweep.model_dump(mode="json"), "scene": "planes"}
    windows = _QUICK_WINDOWS_PX if quick else _WINDOWS_PX
    sized = [
        _contender(name, window, labels)
        for name, window, labels in product(_LABELLED, windows, ("subpixel", "whole"))
        if not (name == "sgbm" and window > _LARGEST_SGBM_PX)
        and (labels == "subpixel" or name in _HAVE_LABELS)
    ]
    of_gain = ("consensus", "consensus, mean kept", *_RIVALS, "joint")
    of_focus = ("consensus", *_RIVALS, "joint", "joint, no defocus", "guo2017")
    depths_m = (QUICK_NEAR_M + QUICK_FAR_M) if quick else (NEAR_M + FAR_M)
    far_m = even_distances_m(*_FAR_PART_M, 3 if quick else 8)
    all_m = even_distances_m(0.4, PRINTED_RANGE_M[1], 4 if quick else 8)
    by_gain = product(_GAINS[::3] if quick else _GAINS, far_m)
    by_focus = product(_SCENES, _FOCUS_DPT[::2] if quick else _FOCUS_DPT, all_m)
    gained = [_contender(name, _EQUAL_PX) for name in of_gain]
    # Differential defocus divides by the difference in focus.
    focused = {
        dpt: [_contender(name, _EQUAL_PX) for name in of_focus if dpt or name != "guo2017"]
        for dpt in _FOCUS_DPT
    }
    jobs: list[tuple[str, list[Contender], Job]] = [
        *(("labels", [*sized, _contender("sift")], {"depth_m": z}) for z in depths_m),
        *(("gain", gained, {"depth_m": z, "gain": gain}) for gain, z in by_gain),
        *(
            ("focus", focused[dpt], {"scene": scene, "depth_m": z, "focus_dpt": dpt})
            for scene, dpt, z in by_focus
        ),
    ]
    return [
        {**common, "gain": 0.0, "focus_dpt": 0.1, **cells, "experiment": name, "number": number}
        | {"methods": [one.as_table() for one in some]}
        for number, (name, some, cells) in enumerate(jobs)
    ]


def _measure(job: Job) -> Rows:
    """Simulate the pair of a job, and measure all contenders on it."""
    sweep, number = PlaneSweep(**job["sweep"]), job["number"]
    rig = _focused(Rig.paper_prototype(), job["focus_dpt"])
    # Pairs that differ in gain or focus only have the same texture.
    textures = list(sweep.textures.values())
    texture = _texture(job["scene"], textures[round(100 * job["depth_m"]) % len(textures)])
    scene = Plane(depth_m=job["depth_m"], texture=texture)
    trial = make_trial(scene, rig, sweep, sweep.shape, (sweep.seed, number))
    right = np.asarray(trial.right * np.float32(1 + job["gain"]))
    rows = []
    for contender in contenders_of(job):
        name, window_px, labels = contender.name.split("|")
        found = contender.estimate(trial.left, right, rig).depth_m.astype(np.float64)
        key = {name: job[name] for name in ("experiment", "scene", "depth_m", "gain", "focus_dpt")}
        key |= {"method": name, "window_px": int(window_px), "labels": labels}
        rows.append(key | _errors(found, trial.truth))
        if job["experiment"] == "labels" and name not in (*_WITHOUT_LABELS, *_HAVE_LABELS):
            rounded = rig.optics.depth_m(np.rint(rig.optics.disparity_px(found)))
            rows.append(key | {"labels": "whole"} | _errors(rounded, trial.truth))
    return {"rows": rows}


def _errors(depth_m: FloatArray, truth: Truth) -> dict[str, float]:
    """Mean error of the judged pixels with a depth, and shares of all judged pixels."""
    error_m = np.abs(depth_m - truth.depth_m)[truth.judged]
    count = max(error_m.size, 1)
    return {
        "mae_m": finite_mean(error_m.tolist()),
        "density": float(np.isfinite(error_m).sum() / count),
        "right": float((error_m < _RIGHT_M).sum() / count),
        "wrong": float((error_m >= _RIGHT_M).sum() / count),
    }


def _focused(rig: Rig, difference_dpt: float) -> Rig:
    """Camera whose lenses differ in power by so much, with the same mean."""
    optics: Optics = rig.optics
    mean_dpt = (optics.optical_power_left_dpt + optics.optical_power_right_dpt) / 2
    return rig.replace(
        optics=optics.replace(
            optical_power_left_dpt=mean_dpt + difference_dpt / 2,
            optical_power_right_dpt=mean_dpt - difference_dpt / 2,
        )
    )


def _texture(scene: str, texture: Texture | Photo) -> Texture | Photo:
    """Texture of a plane: the given one, a weak one, a periodic one, or one of rows."""
    if scene == "planes":
        return texture
    if scene == "weak":
        return texture.replace(contrast=_WEAK_CONTRAST)
    x = 2 * np.pi * np.arange(_TEXELS) * _TEXEL_M
    if scene == "repetition":
        across = 0.18 * np.cos(x / _PERIOD_M) + 0.1 * np.cos(2 * x / _PERIOD_M)
        image = 0.5 + across + 0.15 * np.cos(x / _PERIOD_DOWN_M)[:, np.newaxis]
    else:
        steps = np.random.default_rng(0).random(_TEXELS // 8 + 1)
        image = np.tile(np.repeat(steps, 8)[:_TEXELS, np.newaxis], (1, _TEXELS))
    return Photo(image=image, width_m=_TEXELS * _TEXEL_M)


# Tables -------------------------------------------------------------------------------------------


def _far_cm(rows: Sequence[Any]) -> float:
    """Mean error over the far part of the paper's range, in cm."""
    near_m, far_m = _FAR_PART_M
    return 100 * finite_mean(one["mae_m"] for one in rows if near_m <= one["depth_m"] <= far_m)


def _range_m(rows: SweepTable) -> tuple[float, float] | None:
    at = rows.by_depth()
    accurate = [finite_mean(planes.column("mae_m")) < 0.01 for planes in at]
    return working_range_m([planes[0]["depth_m"] for planes in at], accurate)


def _label_rows(labels: SweepTable) -> list[dict[str, Cell]]:
    windows = sorted(set(labels.column("window_px")) - {0})
    rows = []
    for some in labels.groups("labels", "method"):
        by_window = {one[0]["window_px"]: one for one in some.groups("window_px")}
        ranges = {window: _range_m(one) for window, one in by_window.items()}
        best = max(ranges, key=lambda window: length_m(ranges[window]))
        cells: dict[str, Cell] = {"method": some[0]["method"], "labels": some[0]["labels"]}
        for window in windows:
            # A method without a window has the same error in all columns.
            at = by_window.get(window, by_window.get(0))
            cells[f"{window}_px_cm"] = None if at is None else _far_cm(at)
        cells |= {"best_range": ends_text(ranges[best]), "with_px": best or None}
        cells["density"] = finite_mean(by_window[best].column("density"))
        rows.append(cells)
    return rows


def _gain_rows(gain: SweepTable) -> list[dict[str, Cell]]:
    return [
        {"method": some[0]["method"]}
        | {f"{100 * at[0]['gain']:g} %": _far_cm(at) for at in some.groups("gain")}
        for some in gain.groups("method")
    ]


def _focus_rows(focus: SweepTable) -> list[dict[str, Cell]]:
    rows = []
    for some in focus.groups("scene", "method"):
        cells: dict[str, Cell] = {"scene": _SCENES[some[0]["scene"]], "method": some[0]["method"]}
        for dpt in dict.fromkeys(focus.column("focus_dpt")):
            at = some.where(focus_dpt=dpt)
            cells[f"{dpt:g} dpt: right"] = _percent(at, "right")
            cells[f"{dpt:g} dpt: wrong"] = _percent(at, "wrong")
            cells[f"{dpt:g} dpt: mae_cm"] = _percent(at, "mae_m")
        rows.append(cells)
    return rows


def _percent(rows: SweepTable, column: str) -> float:
    """A hundred times the mean of a column: shares in percent, metres in cm."""
    return 100 * finite_mean(rows.column(column))


# What follows -------------------------------------------------------------------------------------


def _at(labels: SweepTable, method: str, kind: str) -> SweepTable:
    """Rows of a method with the window that has the least far error."""
    some = labels.where(method=method, labels=kind)
    return min(some.groups("window_px"), key=_far_cm)


def _comparisons(labels: SweepTable) -> list[Comparison]:
    own = _at(labels, "consensus", "subpixel")
    rows = []
    for kind, words in (("whole", "whole labels"), ("subpixel", "a parabola between labels")):
        for name in _HAVE_LABELS:
            rival = _at(labels, name, kind)
            rows.append(
                Comparison(
                    what=f"{name} with {words} against the consensus, {ends_text(_FAR_PART_M)}, "
                    "each with its best window",
                    paper="much less accurate",
                    ours=f"{_far_cm(rival):.2f} cm, {ends_text(_range_m(rival))}; the consensus "
                    f"{_far_cm(own):.2f} cm, {ends_text(_range_m(own))}",
                    why="The paper does not say whether its rivals refine their labels; here they "
                    "differ in that alone.",
                    agrees=_far_cm(rival) > _far_cm(own)
                    and length_m(_range_m(rival)) < length_m(_range_m(own)),
                )
            )
    return rows


def _remarks(labels: SweepTable, gain: SweepTable, focus: SweepTable) -> list[str]:
    def far(name: str, kind: str) -> str:
        return f"{name} {_far_cm(_at(labels, name, kind)):.2f} cm"

    own = _far_cm(_at(labels, "consensus", "whole"))
    strongest = max(gain.column("gain"))
    unlike = gain.where(gain=strongest)
    whole = ", ".join(far(name, "whole") for name in (*_HAVE_LABELS, "bm"))
    refined = ", ".join(far(name, "subpixel") for name in (*_HAVE_LABELS, "bm", "joint"))
    return [
        f"The order is that of the labels, not of the cues. Over {ends_text(_FAR_PART_M)}, each "
        f"with its best window: {far('consensus', 'subpixel')}. Rivals with whole labels: {whole}, "
        f"the paper's order; and the consensus rounded to whole pixels has {own:.2f} cm too. With "
        f"a parabola between labels: {refined}, our order.",
        f"With {100 * strongest:g} % of gain between the lenses the consensus has "
        f"{_far_cm(unlike.where(method='consensus')):.2f} cm, and "
        f"{_far_cm(unlike.where(method='consensus, mean kept')):.2f} cm if the local mean is kept.",
        "A difference in focus costs on textured planes and adds nothing on weak texture. It "
        "resolves a repetition and rows without texture along x for methods that blur whole views "
        "as each depth would, takeda2013 above all.",
    ]


def _lines(
    rows: SweepTable, across: str, up: Callable[[SweepTable], float]
) -> dict[str, list[tuple[float, float]]]:
    """Points of each method over a column."""
    return {
        some[0]["method"]: [(one[0][across], up(one)) for one in some.groups(across)]
        for some in rows.groups("method")
    }


def _figure(labels: SweepTable, gain: SweepTable, focus: SweepTable) -> "Figure":
    sized = SweepTable(row for row in labels if row["window_px"])
    refined, whole = (
        _lines(sized.where(labels=kind), "window_px", _far_cm) for kind in ("subpixel", "whole")
    )
    # The consensus chooses a label too, of those that it has: the paper's order.
    whole["consensus, rounded"] = whole.pop("consensus")
    del whole["consensus, as printed"]
    whole = {"consensus": refined["consensus"], **whole}
    far = f"mean error (cm), {ends_text(_FAR_PART_M)}"
    panels = [
        ErrorPanel("a  whole labels", "window (px)", far, whole, is_log=True),
        ErrorPanel("b  refined labels", "window (px)", far, refined, is_log=True),
        ErrorPanel(
            "c  the right view is brighter", "gain", far, _lines(gain, "gain", _far_cm), True
        ),
    ]
    for letter, scene in zip("def", ("planes", "repetition", "rows"), strict=True):
        is_error = scene == "planes"
        column, unit = ("mae_m", "mean error (cm)") if is_error else ("right", "right pixels (%)")
        up = partial(_percent, column=column)
        curves = _lines(focus.where(scene=scene), "focus_dpt", up)
        title = f"{letter}  {_SCENES[scene]}"
        panels.append(ErrorPanel(title, "difference in focus (dpt)", unit, curves, is_log=is_error))
    return plot_panels(panels)


def _caption(context: Context) -> str:
    return (
        f"Simulated, perfect lenses, {NOISE:.0%} noise, views of {_SHAPE[0]} x {_SHAPE[1]} px. "
        "a: rivals with disparities of whole pixels, the consensus with its own candidates, and "
        "rounded. b: all with refined disparities. c: the right view is brighter. d to f: lenses "
        f"of other powers. a and b on the planes of Fig. 5, c to f with windows of {_EQUAL_PX} px. "
        f"The consensus at C > {ACCURACY_THRESHOLD:g}, all others with their own filters."
    ) + " A quick run: fewer depths, windows, gains and focuses." * context.quick


ITEM = Item(
    name="order",
    title="Why the order of methods is what it is",
    reference="Fig. 5c, explained",
    places=("fig5order",),
    what=(
        "The paper finds its rivals less accurate, and this package finds two of them more "
        "accurate. Here all methods see the same planes with one thing changed at a time: whole or "
        "refined labels, the window, a gain between the lenses, and their difference in focus, the "
        "last also on a repetition, on weak texture, and on rows without texture along x."
    ),
    needs="minutes",
    run=make_order,
)
