"""`d3s evaluate planes`, `scenes`, `thresholds` and `rooms`: sweeps over simulated pairs."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from d3s.cli.camera import chosen_place, given_rig, rig_or_paper
from d3s.cli.options import FieldOptions, Given
from d3s.cli.output import goes_on, progress_bar, say_files, show, table, value_of
from d3s.cli.sweeps import (
    CM,
    CPU,
    NUMBER,
    PERCENT,
    REGION,
    RESULTS,
    SHARE,
    Figure,
    Form,
    Lines,
    by_method,
    contenders_of,
    figures,
    sweep_run,
)
from d3s.cli.values import Numbers, Pair, Range

if TYPE_CHECKING:
    from d3s.batch.running import Workers
    from d3s.lab.evaluate.rooms import RoomSweep
    from d3s.lab.twin.pair import Pair
    from d3s.rig import Rig

_EVALUATE = "d3s.lab.evaluate"
_PLANES = FieldOptions(
    f"{_EVALUATE}.sweep.PlaneSweep", "Pairs", leave=("beyond_px",), names={"depths_m": "distances"}
)
_SCENES = FieldOptions(f"{_EVALUATE}.sweep.SceneSweep", "Pairs", leave=("nearest_m", "farthest_m"))
_ROOMS = FieldOptions(f"{_EVALUATE}.rooms.RoomSweep", "Pairs")
_GAINS: tuple[Figure, ...] = (
    ("gain by sigma", "sigma_gain", PERCENT),
    ("gain by confidence", "confidence_gain", PERCENT),
)
_BOUND: Figure = ("MAE / bound", "mae_over_bound", NUMBER)


class SweepOptions(NamedTuple):
    """Methods, camera and files of a sweep, and where it runs."""

    method: list[str] | None = None
    rig: str | None = None
    output: Path = RESULTS
    workers: int | None = None
    scheduler: str | None = None
    quick: bool = False
    force: bool = False
    quiet: bool = False

    @property
    def place(self) -> "Workers":
        """Where it runs."""
        return chosen_place(self.workers, self.scheduler)


def planes(
    *,
    sweep: Annotated[Given, _PLANES],
    trials: SweepOptions,
) -> None:
    """Try methods on planes over depth and texture, all on the same images.

    Writes planes.csv, with a row for each plane and method, planes_duels.csv, with each method
    against sgbm and bm on the pixels that both retained, and planes.json, with all parameters and
    the summary. If it is stopped, the same command goes on where it was.
    """
    from d3s.lab.evaluate.planes import BEYOND_M, PLANES

    lines = _swept(PLANES, sweep, trials)
    if trials.quiet:
        return
    figures_of_depth: tuple[Figure, ...] = (
        ("MAE", "mae_m", CM),
        ("worst", "worst_mae_m", CM),
        ("dens.", "density", SHARE),
    )
    ratios: list[Figure] = [
        (f"worst ratio to {rival}{words}", partial(_worst_ratio, rival, beyond_m), NUMBER)
        for rival in _rivals(lines)
        for beyond_m, words in ((0.0, ""), (BEYOND_M, f" beyond {BEYOND_M:g} m"))
    ]
    of_all: list[Figure] = [
        ("range (m)", _range, NUMBER),
        ("density in the range", "density", PERCENT),
        ("of its worst depth", "worst_density", PERCENT),
        _BOUND,
        *ratios,
        _GAINS[0],
        ("fill rate", "fill_rate", PERCENT),
        ("Z-accuracy, size of", "z_accuracy", Form(100, ".2f", " %")),
        ("plane-fit RMS", "plane_fit_rms", Form(100, ".2f", " %")),
        ("sub-pixel RMS", "subpixel_rms_px", Form(1, ".3f", " px")),
        CPU,
    ]
    depth: Figure = ("depth\n(m)", "depth_m", Form(1, ".3f"))
    title = "MAE and worst MAE (cm), density (%) over depth"
    show(
        *by_method(title, lines, lambda one: one["depths"], [depth], figures_of_depth),
        *figures("All planes", lines, of_all),
        notes="MAE: the mean over the textures, and that of the worst: inf if one that holds depth "
        "was left without any, which then is not in the mean. Density: retained textured pixels "
        "over textured ones. Range: of an MAE below 1 cm on every texture. Bound: "
        "Cramér-Rao, of a window of 31 x 31 px; at the bound, Gaussian errors have 0.8. Against a "
        "rival: the largest MAE ratio over depths, on the pixels that both retained. Gain: what "
        "leaving out the pixels of largest sigma wins, of what an oracle would win. Fill rate to "
        "sub-pixel RMS: as RealSense's depth quality tool has them, the median over the planes.",
    )
    _say_results(PLANES, trials.output)


def scenes(
    *,
    sweep: Annotated[Given, _SCENES],
    depth_range: Range = None,
    trials: SweepOptions,
) -> None:
    """Try methods on random scenes with edges and tilts, all on the same images.

    Writes scenes.csv, with a row for each scene, region and method, scenes_duels.csv, with each
    method against sgbm and bm on the pixels that both retained, and scenes.json, with all
    parameters and the summary. If it is stopped, the same command goes on where it was.
    """
    from d3s.lab.evaluate.scenes import SCENES

    sweep |= dict(zip(("nearest_m", "farthest_m"), depth_range or (), strict=False))
    lines = _swept(SCENES, sweep, trials)
    if trials.quiet:
        return
    ratios: list[Figure] = [
        (f"ratio to {rival}", partial(_ratio, rival), NUMBER) for rival in _rivals(lines)
    ]
    of_all: list[Figure] = [
        ("MAE (cm)", "mae_m", CM),
        ("mean over scenes", "mean_mae_m", CM),
        ("scenes with a depth", _with_depth, NUMBER),
        ("worst scene", "worst_mae_m", CM),
        ("density", "density", PERCENT),
        ("retained, of all pixels", "retained", PERCENT),
        ("error above 2 cm", "bad_2cm", PERCENT),
        _BOUND,
        *ratios,
        ("within 1 sigma", "coverage", PERCENT),
        ("within 3 sigma", "coverage_3", PERCENT),
        *_GAINS,
        ("beside objects: retained", "beside_retained", PERCENT),
        ("with the object's depth", "fattened", PERCENT),
        ("and not flagged", "fattened_unflagged", PERCENT),
        CPU,
    ]
    of_regions: tuple[Figure, ...] = (
        ("MAE", "mae_m", CM),
        ("kept", "retained", SHARE),
        ("1 sigma", "coverage", Form(100, ".0f")),
    )
    title = "By region: MAE (cm), share that is retained (%), and errors within 1 sigma (%)"
    show(
        *figures("All scenes", lines, of_all),
        *by_method(title, lines, lambda one: one["regions"], REGION, of_regions),
        notes="MAE: over all retained pixels, also those that the right view does not show; the "
        "mean over scenes is over those with a depth, and the worst is inf if one that holds depth "
        "was left without any. "
        "Density: retained textured pixels over textured ones. Bound: Cramér-Rao, of a window of "
        "31 x 31 px. Ratio: of the MAE on the pixels that both retained. Gain: what leaving out "
        "the least trusted pixels wins, of what an oracle would win. Beside objects: background "
        "within 25 px of an object before it, with its depth, and of these without the "
        "flag of a depth carried over from elsewhere; shares of all of it.",
    )
    _say_results(SCENES, trials.output)


def thresholds(
    *,
    confidence: Numbers = "0,0.25,0.5,0.75,0.9",
    sweep: Annotated[Given, _PLANES],
    trials: SweepOptions,
) -> None:
    """See what a stricter filter buys: error and density on planes over thresholds of confidence.

    The methods' own filters are off. Writes thresholds.csv, with a row for each plane, method and
    threshold, and thresholds.json, with all parameters and the summary. If it is stopped, the same
    command goes on where it was.

    Options:
        confidence: Confidences that a depth must reach.
    """
    from d3s.lab.evaluate.planes import THRESHOLDS

    if not all(0 <= one <= 1 for one in confidence):
        raise typer.BadParameter(
            f"{confidence} must be numbers from 0 to 1.", param_hint="--confidence"
        )
    lines = _swept(THRESHOLDS, sweep, trials, {"thresholds": list(confidence)})
    if trials.quiet:
        return
    columns: tuple[Figure, ...] = (
        ("method", "method", NUMBER),
        ("confidence", "threshold", Form(1, "g")),
        ("density\n(%)", "density", SHARE),
        ("MAE\n(cm)", "mae_m", CM),
        ("median\n(cm)", "median_m", CM),
        ("range\n(m)", _range, NUMBER),
    )
    rows = [
        [form.cell(key(one) if callable(key) else one[key]) for _, key, form in columns]
        for one in lines
    ]
    title = "Over all planes, by the confidence that a depth must reach"
    show(
        table([heading for heading, _, _ in columns], rows, title=title),
        notes="Density: of the judged pixels. MAE: of all of them together. Median: the mean over "
        "the planes with a depth. Range: of an MAE below 1 cm on every texture.",
    )
    _say_results(THRESHOLDS, trials.output)


def rooms(
    *,
    sweep: Annotated[Given, _ROOMS],
    keep: Path | None = None,
    pictures: bool = False,
    trials: SweepOptions,
) -> None:
    """Try methods on path-traced rooms, half of them with plain walls, all on the same images.

    Mitsuba 3 (the extra render) renders the rooms through two thin lenses. A room takes
    minutes, and is kept in a folder to be used again. Rooms with report textures and rooms with
    tuning textures (--patterns tuning) have different seeds.

    Writes rooms.csv, with a row for each room, region and method, rooms_duels.csv, with each method
    against sgbm and bm on the pixels that both retained, and rooms.json, with all parameters and
    the summary. If it is stopped, the same command goes on where it was.

    Options:
        keep (FOLDER): Folder for rendered rooms, to be used again; rooms in the output folder if
            left.
        pictures: Also draw each room: both views and the truth.
    """
    from d3s.lab.evaluate.evaluation import check_absent, result_files, write_results
    from d3s.lab.evaluate.rooms import ROOMS, RoomSweep, evaluate_rooms

    output, force = trials.output, trials.force
    with value_of("the sweep"):
        chosen = (RoomSweep.quick() if trials.quick else RoomSweep()).replace(**_patterns(sweep))
        chosen.check()
    contenders, camera = contenders_of(trials.method), rig_or_paper(trials.rig)
    files, kept = result_files(ROOMS, output), keep or output / "rooms"
    drawings = [output / f"room_{chosen.room(number).seed}.png" for (number,) in chosen.places]
    if not force:
        check_absent(*files.values(), *(drawings if pictures else ()))
    pairs = _render(chosen, camera, kept, quiet=trials.quiet)
    with sweep_run(files, len(pairs), trials.place, force=force, quiet=trials.quiet) as run:
        results = evaluate_rooms(contenders, keep=kept, sweep=chosen, rig=camera, **run)
        write_results(results, output, overwrite=force)
    if pictures:
        _draw(pairs, drawings, force=force)
    if not trials.quiet:
        _show_rooms(results.summary())
        _say_results(ROOMS, output)


def _swept(
    evaluation: Any, given: Given, trials: SweepOptions, settings: Given | None = None
) -> Lines:
    """Run an evaluation over a sweep and write its files; the lines of its summary."""
    from d3s.lab.evaluate.evaluation import result_files, run_evaluation, write_results

    start = evaluation.sweep.quick() if trials.quick else evaluation.sweep()
    with value_of("the sweep"):
        sweep = start.replace(**_patterns(given))
    contenders = contenders_of(trials.method)
    camera = given_rig(trials.rig) or sweep.default_rig()
    files = result_files(evaluation, trials.output)
    pairs = len(sweep.places)
    with sweep_run(files, pairs, trials.place, force=trials.force, quiet=trials.quiet) as run:
        results = run_evaluation(
            evaluation, contenders, sweep=sweep, rig=camera, settings=settings, **run
        )
        write_results(results, trials.output, overwrite=trials.force)
    found: Lines = results.summary()
    return found


def _patterns(given: Given) -> Given:
    """FieldOptions of a sweep; report and tuning name sets of textures."""
    from d3s.lab.evaluate.sweep import REPORT_PATTERNS, TUNING_PATTERNS

    sets = {("report",): REPORT_PATTERNS, ("tuning",): TUNING_PATTERNS}
    return given | {
        name: sets.get(given[name], given[name]) for name in given if name == "patterns"
    }


def _say_results(evaluation: Any, output: Path) -> None:
    from d3s.lab.evaluate.evaluation import result_files

    say_files({name.capitalize(): path for name, path in result_files(evaluation, output).items()})


def _rivals(lines: Lines) -> list[str]:
    return list(dict.fromkeys(row["rival"] for one in lines for row in one["rivals"]))


def _range(line: Mapping[str, Any]) -> Any:
    return line["range_m"] or "none"


def _with_depth(line: Mapping[str, Any]) -> str:
    return f"{line['scenes_with_depth']} of {line['scenes']}"


def _worst_ratio(rival: str, beyond_m: float, line: Mapping[str, Any]) -> Any:
    return max(
        (
            row["ratio_common"]
            for row in line["rivals"]
            if row["rival"] == rival and row["depth_m"] >= beyond_m and row["common"]
        ),
        default=None,
    )


def _ratio(rival: str, line: Mapping[str, Any]) -> Any:
    return next((one["ratio_common"] for one in line["rivals"] if one["rival"] == rival), None)


def _render(sweep: "RoomSweep", rig: "Rig", keep: Path, *, quiet: bool) -> "list[Pair]":
    from d3s.lab.evaluate.rooms import render_rooms
    from d3s.lab.rooms.mitsuba import STEPS, check_installed

    check_installed()
    words = f"Rendering {sweep.count} rooms, or loading them from {keep}."
    with (
        goes_on(lambda: f"The same command goes on from here: finished rooms are kept in {keep}."),
        progress_bar(STEPS * sweep.count, words, quiet=quiet) as progress,
    ):
        return render_rooms(sweep, rig, keep, progress=progress)


def _draw(pairs: "list[Pair]", paths: list[Path], *, force: bool) -> None:
    from d3s.estimate.plot.save import save_figure
    from d3s.lab.view.truth import plot_pair

    for pair, path in zip(pairs, paths, strict=True):
        save_figure(plot_pair(pair), path, overwrite=force)


def _show_rooms(lines: Lines) -> None:
    """Print the summary of all methods."""
    of_all: list[Figure] = [
        ("MAE (cm)", "mae_m", CM),
        ("rooms with a depth", _with_depth, NUMBER),
        ("worst room", "worst_mae_m", CM),
        ("density", "density", PERCENT),
        _BOUND,
        *_GAINS,
        CPU,
    ]
    columns: tuple[Figure, ...] = (
        ("MAE", "mae_m", CM),
        ("kept", "retained", SHARE),
        ("1 s", "coverage", SHARE),
        ("3 s", "coverage_3", SHARE),
    )
    parts = {"All rooms": lambda one: one["regions"]}
    for walls in dict.fromkeys(walls for one in lines for walls in one["walls"]):
        parts[f"Rooms with {walls} walls"] = partial(_of_walls, walls)
    show(
        *figures("All rooms", lines, of_all),
        *(
            each
            for name, part in parts.items()
            for each in by_method(
                f"{name}, by region: MAE (cm); kept, 1 s, 3 s (%)", lines, part, REGION, columns
            )
        ),
        notes="MAE: over all retained pixels. Kept: their share of the pixels of the region. "
        "1 s, 3 s: share of the errors below one and three sigma; 68.3 and 99.7 % if sigma is "
        "true. Near edges: within 12 px of a jump of depth. Density: retained textured pixels over "
        "textured ones. Gain: what leaving out the least trusted pixels wins, of what an oracle "
        "would win.",
    )


def _of_walls(walls: str, line: Mapping[str, Any]) -> Lines:
    found: Lines = line["walls"][walls]
    return found
