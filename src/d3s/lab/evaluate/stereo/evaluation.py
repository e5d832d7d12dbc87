"""`evaluate_stereo`: methods on the scenes of a stereo data set, and the results as files."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from d3s.batch.running import Workers, results
from d3s.errors import InputError
from d3s.estimate import Options
from d3s.lab.evaluate.contender import Contender, as_contenders
from d3s.lab.evaluate.evaluation import Job, Methods, Rows, contenders_of, join_rows, write_texts
from d3s.lab.evaluate.stereo.measures import (
    CAP_PX,
    DisparityResult,
    curve_rows,
    level_trust,
    matches_of,
    stereo_score,
    summarise_stereo,
)
from d3s.lab.evaluate.stereo.scene import (
    AS_STORED,
    DEFAULT_DISPARITIES,
    JUMP_REACH_PX,
    WEAK_BELOW,
    WEAK_WINDOW_PX,
    FoundScenes,
    LightChange,
    SceneFiles,
    StereoScene,
    find_scenes,
    read_scene,
)
from d3s.lab.evaluate.sweep import run_contender
from d3s.lab.evaluate.table import SweepTable, csv_text, for_json
from d3s.record import short_repr
from d3s.runtime.versions import versions
from d3s.types import Image, Progress

STEREO_METHODS = ("joint", "sgbm", "bm")
"""Methods that are compared if none is named."""


@dataclass(frozen=True, kw_only=True)
class StereoResults:
    """Rows of all scenes, and everything that decides them."""

    found: FoundScenes  # and those that were left out
    contenders: tuple[Contender, ...]  # with the options for stereo data sets
    lights: tuple[LightChange, ...]  # changes of the right view; the first changes nothing
    disparities: int | None  # that were searched; None for those of the calibration files
    with_occluded: bool  # whether occluded pixels are judged as well
    rows: SweepTable  # for each `scene`, `light`, `region` and `method`: figures of `stereo_score`
    curves: SweepTable  # for each `scene`, `light`, `method`, `order` and `density`

    def summary(self) -> list[dict[str, Any]]:
        """Summarise all scenes: a line for each light and method."""
        return summarise_stereo(self.rows, self.curves)


def evaluate_stereo(
    folder: str | os.PathLike[str],
    methods: Methods = STEREO_METHODS,
    *,
    lights: Sequence[str | LightChange] = (),
    disparities: int | None = None,
    with_occluded: bool = False,
    workers: Workers = None,
    kept: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> StereoResults:
    """Evaluate methods on a stereo data set in the layout of Middlebury, ETH3D or KITTI 2015.

    All methods get the same grey views, as they are stored (gamma is not undone), and search the
    same disparities.

    Parameters
    ----------
    folder
        One scene, or a folder of scenes.
    methods
        Names of methods, with options as `Contender.parse` reads them, or each as a `Contender`.
        "sgbm" and "bm" start from `d3s.lab.evaluate.stereo.evaluation.STEREO_OPTIONS`.
    lights
        Changes of the right view for further trials: "gain=0.6", "gamma=1.3", "ramp=0.3".
    disparities
        Number of whole disparities to search, from 0; that of each calibration file if left out,
        or 256 if it has none.
    with_occluded
        Whether pixels that the right view does not show are judged as well.
    workers, progress
        As for `evaluate_planes`.
    kept
        Folder in which finished trials are kept and found again; nowhere if left out.
    """
    contenders = tuple(for_stereo(one) for one in as_contenders(methods))
    for one in contenders:
        one.checked_options()
    trials = checked_lights(lights)
    if disparities is not None and not (isinstance(disparities, int) and 2 <= disparities <= 2000):
        raise InputError(
            f"disparities={short_repr(disparities)} must be a whole number from 2 to 2000, or left "
            "for that of the calibration files."
        )
    if isinstance(workers, str):  # a cluster, which may have another working folder
        folder = os.path.abspath(folder)  # noqa: PTH100 - links stay as they are
    found = find_scenes(folder)
    answers = results(
        _measure,
        stereo_jobs(found, contenders, trials, disparities, with_occluded=with_occluded),
        workers=workers,
        folder=kept,
        progress=progress,
        read=[os.fspath(found.scenes[0].left)],
    )
    return StereoResults(
        found=found,
        contenders=contenders,
        lights=trials,
        disparities=disparities,
        with_occluded=with_occluded,
        rows=join_rows(answers, "rows"),
        curves=join_rows(answers, "curves"),
    )


def checked_lights(lights: Sequence[str | LightChange]) -> tuple[LightChange, ...]:
    """Lights of all trials, each once; the first changes nothing."""
    given = [one if isinstance(one, LightChange) else LightChange.parse(str(one)) for one in lights]
    return tuple(dict.fromkeys([LightChange(), *given]))


def stereo_jobs(
    found: FoundScenes,
    contenders: Sequence[Contender],
    lights: Sequence[LightChange],
    disparities: int | None = None,
    *,
    with_occluded: bool = False,
) -> list[Job]:
    """Return a job for each scene and light."""
    common = {
        "work": "stereo",
        "methods": [one.as_table() for one in contenders],
        "disparities": disparities,
        "with_occluded": with_occluded,
    }
    return [
        {**common, "files": asdict(one), "digest": digest, "light": light.name}
        for one in found.scenes
        for digest in (one.digest(),)
        for light in lights
    ]


def _measure(job: Job) -> Rows:
    """Measure all contenders on one scene in one light."""
    scene = read_scene(SceneFiles(**job["files"]), job["disparities"])
    light = LightChange.parse(job["light"])
    right = light.apply(scene.right)
    regions = scene.regions(with_occluded=job["with_occluded"])
    key = {"scene": scene.name, "light": light.name}
    tables: Rows = {"rows": [], "curves": []}
    for contender in contenders_of(job):
        own, full, time_s = _matches(over_range(contender, scene.depth_range_m), scene, right)
        method = {"method": contender.name}
        tables["rows"] += [
            {
                **key,
                "region": name,
                **method,
                "time_s": time_s,  # for the whole scene
                **stereo_score(own, full, scene.disparity_px, region),
            }
            for name, region in regions.items()
        ]
        if "all" in regions:
            curves = curve_rows(full, scene.disparity_px, regions["all"])
            tables["curves"] += [{**key, **method, **row} for row in curves]
    return tables


def _matches(
    contender: Contender, scene: StereoScene, right: Image
) -> tuple[DisparityResult, DisparityResult, float]:
    """Result with the own filter and with filters off, and the time of the former.

    A method of OpenCV has no confidence. Its pixels are ordered by the largest
    `uniqueness_percent` at which they still have a disparity.
    """
    outcome = run_contender(contender, scene.left, right, scene.rig)
    full = contender.unfiltered().estimate(scene.left, right, scene.rig)
    stricter = [one.estimate(scene.left, right, scene.rig) for one in at_levels(contender)]
    trust = level_trust(stricter, LEVELS) if stricter else None
    return matches_of(outcome.depth_map, trust), matches_of(full, trust), outcome.time_s


def stereo_files(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Paths of the results: "rows", "curves", "summary" and "chart"."""
    ends = {"rows": ".csv", "curves": "_curves.csv", "summary": ".json", "chart": ".png"}
    return {what: Path(folder, f"stereo{end}") for what, end in ends.items()}


def write_stereo(
    results: StereoResults, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> dict[str, Path]:
    """Write rows and curves as CSV, and the parameters and the summary as JSON."""
    document = {"parameters": stereo_parameters(results), "summary": for_json(results.summary())}
    texts = {
        "rows": csv_text(results.rows),
        "curves": csv_text(results.curves),
        "summary": json.dumps(document, indent=1) + "\n",
    }
    write_texts(stereo_files(folder), texts, overwrite=overwrite)
    return stereo_files(folder)


def stereo_parameters(results: StereoResults) -> dict[str, Any]:
    """Return everything that decides the figures, as JSON can hold it."""
    return {
        "versions": versions(),
        "scenes": [{**asdict(one), "digest": one.digest()} for one in results.found.scenes],
        "left_out": dict(results.found.left_out),
        "methods": [one.as_table() for one in results.contenders],
        "lights": [one.name for one in results.lights],
        "disparities": results.disparities,
        "disparities_if_unknown": DEFAULT_DISPARITIES,
        "with_occluded": results.with_occluded,
        "uniqueness_levels_percent": list(LEVELS),
        "cap_px": CAP_PX,
        "jump_reach_px": JUMP_REACH_PX,
        "weak_window_px": WEAK_WINDOW_PX,
        "weak_below": WEAK_BELOW,
    }


def lines_of(summary: Sequence[Mapping[str, Any]], light: str = AS_STORED) -> list[Any]:
    """Lines of a summary in one light."""
    return [one for one in summary if one["light"] == light]


STEREO_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "sgbm": {
        "block_size_px": 3,
        "p1": 72,
        "p2": 400,
        "pre_filter_cap": 31,
        "prefilter_sigma_px": 0.0,
        "disp12_max_diff_px": 1,
        "speckle_window_px": 200,
        "uniqueness_percent": 10,
        "mode": "hh",
        "disparity_sigma_px": 0.30,
    },
    "bm": {
        "block_size_px": 15,
        "pre_filter_cap": 15,
        "prefilter_sigma_px": 0.0,
        "disp12_max_diff_px": 1,
        "speckle_window_px": 0,
        "uniqueness_percent": 15,
        "disparity_sigma_px": 0.26,
    },
}
"""Options of the methods of OpenCV on sharp stereo pairs, by method."""

LEVELS = (0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 60, 80)
"""Values of `uniqueness_percent` at which a method of OpenCV runs, to order its pixels."""


def for_stereo(contender: Contender) -> Contender:
    """Contender with the options for stereo data sets, under the same name.

    Options that are given stay; an object of an options class is taken as it is.
    """
    if isinstance(contender.options, Options):
        return contender
    options = {**STEREO_OPTIONS.get(contender.method, {}), **(contender.options or {})}
    return replace(contender, options=options, label=contender.name)


def over_range(contender: Contender, depth_range_m: tuple[float, float]) -> Contender:
    """Contender that searches a depth range, unless its own options have one."""
    options = contender.checked_options()
    if options.depth_range_m is not None or options.candidates_m is not None:
        return contender
    return replace(contender, options=options.replace(depth_range_m=depth_range_m))


def at_levels(contender: Contender) -> tuple[Contender, ...]:
    """Contender at each of `LEVELS`; none if the method has no `uniqueness_percent`."""
    options = contender.checked_options()
    if "uniqueness_percent" not in type(options).model_fields:
        return ()
    return tuple(
        replace(contender, options=options.replace(uniqueness_percent=level)) for level in LEVELS
    )
