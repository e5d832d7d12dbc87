"""`d3s evaluate planes`, `scenes` and `thresholds`: sweeps over simulated pairs.

All three have the same options but for those that choose the pairs, and do the same: make the
sweep, run the evaluation, write its files, print its summary.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from d3s.cli.evaluate import options, tables
from d3s.cli.options import length_m, numbers
from d3s.cli.output import Force, Quiet, value_of
from d3s.cli.simulate_recipe import SurfaceName
from d3s.cli.sweep import Scheduler, Workers, say_files, sweep_run

if TYPE_CHECKING:
    from rich.table import Table

    from d3s.lab.evaluate.evaluation import Evaluation

Option = tuple[Any, Any]
"""Annotation of an option, and its default."""

_BEFORE: dict[str, Option] = {"method": (options.Method, None)}
_AFTER: dict[str, Option] = {
    "patterns": (options.Patterns, None),
    "photos": (options.Photos, None),
    "noise": (options.Noise, None),
    "shape": (options.Shape, None),
    "psf": (options.Psf, None),
    "lens": (options.Lens, None),
    "seed": (options.Seed, None),
    "rig": (options.RigFile, None),
    "output": (options.Output, Path("evaluation")),
    "workers": (Workers, None),
    "scheduler": (Scheduler, None),
    "quick": (options.Quick, False),
    "force": (Force, False),
    "quiet": (Quiet, False),
}
# Options that are fields of every sweep.
_SWEEP_FIELDS = ("patterns", "photos", "noise", "shape", "psf", "lens", "seed")


def sweep_command(
    name: str,
    help_text: str,
    show: Callable[[tables.Lines], None],
    *,
    sweep_options: Mapping[str, Option],
    settings: Mapping[str, Option] | None = None,
) -> Callable[..., None]:
    """Build a command that runs an evaluation over a sweep.

    `sweep_options` are fields of this sweep only, `settings` are those of the evaluation.
    """
    own = {**(settings or {}), **sweep_options}
    fields = (*sweep_options, *_SWEEP_FIELDS)

    def command(**given: Any) -> None:
        from d3s.lab.evaluate.evaluation import result_files, run_evaluation, write_results

        evaluation = _evaluation(name)
        chosen = options.given(**{name: given[name] for name in fields})
        start = evaluation.sweep.quick() if given["quick"] else evaluation.sweep()
        with value_of("the sweep"):
            sweep = start.replace(**chosen)
        contenders = options.contenders_of(given["method"])
        rig = sweep.default_rig() if given["rig"] is None else options.rig_of(given["rig"])
        files = result_files(evaluation, given["output"])
        flags = {name: given[name] for name in ("workers", "scheduler", "force", "quiet")}
        with sweep_run(files, len(sweep.places), **flags) as run:
            results = run_evaluation(
                evaluation,
                contenders,
                sweep=sweep,
                rig=rig,
                settings={name: list(given[name]) for name in settings or {}},
                **run,
            )
            write_results(results, given["output"], overwrite=given["force"])
        if not given["quiet"]:
            show(results.summary())
            say_files(files)

    # Typer reads the options of a command from its signature.
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in {**_BEFORE, **own, **_AFTER}.items()
        ]
    )
    command.__doc__ = help_text
    return command


def _evaluation(name: str) -> "Evaluation":
    """Import the evaluations when a command runs, so that `d3s --help` stays fast."""
    from d3s.lab.evaluate.planes import PLANES, THRESHOLDS
    from d3s.lab.evaluate.scenes import SCENES

    return {one.name: one for one in (PLANES, SCENES, THRESHOLDS)}[name]


def show_planes(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    tables.show(
        *tables.split_to_width(summaries, _over_depth),
        *tables.split_to_width(summaries, _of_all_planes),
        notes="MAE: the mean over the textures, and that of the worst: inf if one that holds depth "
        "was left without any, which then is not in the mean. Density: retained textured pixels "
        "over textured ones. Range: of an MAE below 1 cm on every texture. Bound: "
        "Cramér-Rao, of a window of 31 x 31 px; at the bound, Gaussian errors have 0.8. Against a "
        "rival: the largest MAE ratio over depths, on the pixels that both retained. Gain: what "
        "leaving out the pixels of largest sigma wins, of what an oracle would win. Fill rate to "
        "sub-pixel RMS: as RealSense's depth quality tool has them, the median over the planes.",
    )


def _over_depth(summaries: tables.Lines) -> "Table":
    rows = (
        (
            [f"{depths[0]['depth_m']:.3f}"],
            [
                cell
                for row in depths
                for cell in (
                    tables.centimetres(row["mae_m"]),
                    tables.centimetres(row["worst_mae_m"]),
                    tables.number(100 * row["density"], ".1f"),
                )
            ],
        )
        for depths in zip(*(one["depths"] for one in summaries), strict=True)
    )
    title = "MAE and worst MAE (cm), density (%) over depth"
    return tables.by_method(title, ["depth\n(m)"], summaries, ("MAE", "worst", "dens."), rows)


def _of_all_planes(summaries: tables.Lines) -> "Table":
    from d3s.lab.evaluate.planes import BEYOND_M

    parts = ((0.0, ""), (BEYOND_M, f" beyond {BEYOND_M:g} m"))
    rows: list[tables.Figure] = [
        ("range (m)", lambda one: tables.ends(one["range_m"])),
        ("density in the range", lambda one: tables.percent(one["density"])),
        ("of its worst depth", lambda one: tables.percent(one["worst_density"])),
        ("MAE / bound", lambda one: tables.number(one["mae_over_bound"], ".2f")),
        *(
            (f"worst ratio to {rival}{words}", partial(_worst_ratio, rival, beyond_m))
            for rival in tables.rivals(summaries)
            for beyond_m, words in parts
        ),
        ("gain by sigma", lambda one: tables.percent(one["sigma_gain"])),
        ("fill rate", lambda one: tables.percent(one["fill_rate"])),
        ("Z-accuracy, size of", lambda one: tables.percent(one["z_accuracy"], ".2f")),
        ("plane-fit RMS", lambda one: tables.percent(one["plane_fit_rms"], ".2f")),
        ("sub-pixel RMS", lambda one: tables.number(one["subpixel_rms_px"], ".3f", " px")),
        ("CPU seconds a pair", lambda one: f"{one['time_s']:.2f}"),
    ]
    return tables.figures("All planes", {one["method"]: one for one in summaries}, rows)


def _worst_ratio(rival: str, beyond_m: float, summary: Mapping[str, Any]) -> str:
    ratios = [
        row["ratio_common"]
        for row in summary["rivals"]
        if row["rival"] == rival and row["depth_m"] >= beyond_m and row["common"]
    ]
    return f"{max(ratios):.2f}" if ratios else ""


planes = sweep_command(
    "planes",
    """Try methods on planes over depth and texture, all on the same images.

    Writes planes.csv, with a row for each plane and method, planes_duels.csv, with each method
    against sgbm and bm on the pixels that both retained, and planes.json, with all parameters and
    the summary. If it is stopped, the same command goes on where it was.
    """,
    show_planes,
    sweep_options={"depths_m": (options.Depths, None)},
)


_Count = Annotated[int | None, typer.Option("--scenes", help="How many random scenes; 30 if left.")]
_Near = Annotated[
    float | None,
    typer.Option(
        "--near", parser=length_m, metavar="LENGTH", help="Smallest depth; 0.4 m if left."
    ),
]
_Far = Annotated[
    float | None,
    typer.Option("--far", parser=length_m, metavar="LENGTH", help="Largest depth; 1.9 m if left."),
]
_Surfaces = Annotated[
    SurfaceName | None,
    typer.Option(
        help="Surfaces of the scenes: textured, or weak, with plain and weakly textured ones; "
        "textured if left.",
        show_default=False,
    ),
]


def show_scenes(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    tables.show(
        *tables.split_to_width(summaries, _of_all_scenes),
        *tables.split_to_width(summaries, _by_region),
        notes="MAE: over all retained pixels, also those that the right view does not show; the "
        "mean over scenes is over those with a depth, and the worst is inf if one that holds depth "
        "was left without any. "
        "Density: retained textured pixels over textured ones. Bound: Cramér-Rao, of a window of "
        "31 x 31 px. Ratio: of the MAE on the pixels that both retained. Gain: what leaving out "
        "the least trusted pixels wins, of what an oracle would win. Beside objects: background "
        "within 25 px of an object before it, with its depth, and of these without the "
        "flag of a depth carried over from elsewhere; shares of all of it.",
    )


def _of_all_scenes(summaries: tables.Lines) -> "Table":
    rows: list[tables.Figure] = [
        ("MAE (cm)", lambda one: tables.centimetres(one["mae_m"])),
        ("mean over scenes", lambda one: tables.centimetres(one["mean_mae_m"])),
        ("scenes with a depth", lambda one: f"{one['scenes_with_depth']} of {one['scenes']}"),
        ("worst scene", lambda one: tables.centimetres(one["worst_mae_m"])),
        ("density", lambda one: tables.percent(one["density"])),
        ("retained, of all pixels", lambda one: tables.percent(one["retained"])),
        ("error above 2 cm", lambda one: tables.percent(one["bad_2cm"])),
        ("MAE / bound", lambda one: tables.number(one["mae_over_bound"], ".2f")),
        *((f"ratio to {rival}", partial(_ratio, rival)) for rival in tables.rivals(summaries)),
        ("within 1 sigma", lambda one: tables.percent(one["coverage"])),
        ("within 3 sigma", lambda one: tables.percent(one["coverage_3"])),
        ("gain by sigma", lambda one: tables.percent(one["sigma_gain"])),
        ("gain by confidence", lambda one: tables.percent(one["confidence_gain"])),
        ("beside objects: retained", lambda one: tables.percent(one["beside_retained"])),
        ("with the object's depth", lambda one: tables.percent(one["fattened"])),
        ("and not flagged", lambda one: tables.percent(one["fattened_unflagged"])),
        ("CPU seconds a pair", lambda one: f"{one['time_s']:.2f}"),
    ]
    return tables.figures("All scenes", {one["method"]: one for one in summaries}, rows)


def _ratio(rival: str, summary: Mapping[str, Any]) -> str:
    ratios = {row["rival"]: row["ratio_common"] for row in summary["rivals"]}
    return tables.number(ratios[rival], ".2f") if rival in ratios else ""


def _by_region(summaries: tables.Lines) -> "Table":
    rows = (
        (
            [regions[0]["region"], tables.number(100 * regions[0]["share"], ".1f")],
            [
                cell
                for row in regions
                for cell in (
                    tables.centimetres(row["mae_m"]),
                    tables.number(100 * row["retained"], ".1f"),
                    tables.number(100 * row["coverage"], ".0f"),
                )
            ],
        )
        for regions in zip(*(one["regions"] for one in summaries), strict=True)
    )
    title = "By region: MAE (cm), share that is retained (%), and errors within 1 sigma (%)"
    headings = ("MAE", "kept", "1 sigma")
    return tables.by_method(title, ["region", "of all\npixels"], summaries, headings, rows)


scenes = sweep_command(
    "scenes",
    """Try methods on random scenes with edges and tilts, all on the same images.

    Writes scenes.csv, with a row for each scene, region and method, scenes_duels.csv, with each
    method against sgbm and bm on the pixels that both retained, and scenes.json, with all
    parameters and the summary. If it is stopped, the same command goes on where it was.
    """,
    show_scenes,
    sweep_options={
        "count": (_Count, None),
        "nearest_m": (_Near, None),
        "farthest_m": (_Far, None),
        "surfaces": (_Surfaces, None),
    },
)


def _confidences(text: str) -> tuple[float, ...]:
    found = numbers(text)
    if not found or not all(0 <= one <= 1 for one in found):
        raise typer.BadParameter(
            f"{text!r} must be numbers from 0 to 1 with commas between, such as 0,0.5,0.8."
        )
    return found


_Confidences = Annotated[
    Any,
    typer.Option(
        "--confidence",
        parser=_confidences,
        metavar="NUMBER,NUMBER...",
        help="Confidences that a depth must reach.",
    ),
]


def show_thresholds(summaries: tables.Lines) -> None:
    """Print the summary of all methods."""
    from rich.table import Table

    table = Table(title="Over all planes, by the confidence that a depth must reach")
    for name in ("method", "confidence", "density (%)", "MAE (cm)", "median (cm)", "range (m)"):
        is_name = name == "method"
        table.add_column(
            name if is_name else name.replace(" ", "\n"),
            justify="left" if is_name else "right",
            no_wrap=not is_name,
            overflow="fold",
        )
    for one in summaries:
        table.add_row(
            tables.escaped(one["method"]),
            f"{one['threshold']:g}",
            tables.number(100 * one["density"], ".1f"),
            tables.centimetres(one["mae_m"]),
            tables.centimetres(one["median_m"]),
            tables.ends(one["range_m"]),
        )
    tables.show(
        table,
        notes="Density: of the judged pixels. MAE: of all of them together. Median: the mean over "
        "the planes with a depth. Range: of an MAE below 1 cm on every texture.",
    )


thresholds = sweep_command(
    "thresholds",
    """See what a stricter filter buys: error and density on planes over thresholds of confidence.

    The methods' own filters are off. Writes thresholds.csv, with a row for each plane, method and
    threshold, and thresholds.json, with all parameters and the summary. If it is stopped, the same
    command goes on where it was.
    """,
    show_thresholds,
    sweep_options={"depths_m": (options.Depths, None)},
    settings={"thresholds": (_Confidences, "0,0.25,0.5,0.75,0.9")},
)
