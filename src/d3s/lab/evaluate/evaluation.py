"""A kind of evaluation, its run over all pairs of a sweep, and its results as files."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from d3s.atomic import make_folder, write_text
from d3s.batch.running import Workers, results
from d3s.errors import OutputError
from d3s.lab.evaluate.contender import Contender, as_contenders
from d3s.lab.evaluate.sweep import Sweep
from d3s.lab.evaluate.table import SweepTable, csv_text, for_json
from d3s.lab.evaluate.truth import EDGE_REACH_PX, TEXTURED_BELOW_M, WINDOW_PX
from d3s.rig import Rig
from d3s.runtime.versions import versions
from d3s.types import Progress

Methods = str | Contender | Sequence[str | Contender]
"""Names of methods, with options as `Contender.parse` reads them, or each as a `Contender`."""
Rows = dict[str, list[dict[str, Any]]]
"""Rows of one pair by table: "rows", and "duels" for an evaluation that has these."""
Job = Mapping[str, Any]
"""Everything that decides the rows of a pair beside the code, as JSON can hold it."""
Measure = Callable[..., Rows]
"""Rows of one pair, from its `Trial`, the contenders, and further settings by name."""


class Run(TypedDict, total=False):
    """How an evaluation runs: its figures are the same everywhere."""

    workers: Workers  # number of processes, one for each core if left out; or a Dask scheduler
    folder: str | os.PathLike[str] | None  # of finished pairs, so that the same call resumes
    progress: Progress | None  # called with the number of finished pairs, and of all


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A kind of evaluation: what is measured on each pair, and how the rows are summarised."""

    name: str  # of the files of results, and of the trials that are kept on disk
    sweep: type[Sweep]  # its defaults are those of the evaluation
    measure: Measure  # a function of a module: worker processes import it
    summarise: Callable[["SweepResults"], list[dict[str, Any]]]
    has_duels: bool = True  # whether `measure` also compares methods where both have a depth


@dataclass(frozen=True, kw_only=True)
class SweepResults:
    """Rows of an evaluation, with the sweep, camera and methods that decide them.

    `rows` has one for each pair and method; of scenes, also for each region; of thresholds, also
    for each threshold. `duels` has one for each pair, method and rival, on the pixels that both
    retained; none for thresholds. `settings` are further ones, such as thresholds.
    """

    evaluation: Evaluation
    sweep: Sweep
    rig: Rig
    contenders: tuple[Contender, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: SweepTable
    duels: SweepTable = field(default_factory=SweepTable)

    def summary(self) -> list[dict[str, Any]]:
        """Summarise the rows: lines in the order in which the methods were given."""
        return self.evaluation.summarise(self)


def run_evaluation(
    evaluation: Evaluation,
    methods: Methods,
    *,
    sweep: Sweep | None = None,
    rig: Rig | None = None,
    settings: Mapping[str, Any] | None = None,
    work: Callable[[Job], Rows] | None = None,
    written: Sequence[str] = (),
    **run: Unpack[Run],
) -> SweepResults:
    """Evaluate every method on every pair of a sweep, all on the same images.

    `settings` are further arguments of `evaluation.measure`, values that JSON can hold. `work`
    measures the pair of a job; if left out, it is simulated. `written` are folders that workers of
    a cluster must see. The others are as for `evaluate_planes`; what is wrong is refused before
    anything is rendered.
    """
    contenders = as_contenders(methods)
    sweep = sweep or evaluation.sweep()
    rig = rig or sweep.default_rig()
    sweep.check()
    answers = results(
        work or partial(measure_pair, evaluation.measure, type(sweep)),
        pair_jobs(evaluation.name, sweep, rig, contenders, settings or {}),
        written=written,
        **run,
    )
    return SweepResults(
        evaluation=evaluation,
        sweep=sweep,
        rig=rig,
        contenders=contenders,
        settings=settings or {},
        rows=join_rows(answers, "rows"),
        duels=join_rows(answers, "duels"),
    )


def pair_jobs(
    name: str, sweep: Sweep, rig: Rig, contenders: Sequence[Contender], settings: Mapping[str, Any]
) -> list[Job]:
    """Return a job for each pair of a sweep; `name` is in the digest of a kept result."""
    common = {
        "work": name,
        "sweep": sweep.model_dump(mode="json"),
        "rig": rig.model_dump(mode="json", exclude_none=True),
        "methods": [one.as_table() for one in contenders],
        "settings": dict(settings),
    }
    return [{**common, "place": list(place)} for place in sweep.places]


def measure_pair(measure: Measure, sweep: type[Sweep], job: Job) -> Rows:
    """Simulate the pair of a job, and measure all contenders on it."""
    trial = sweep(**job["sweep"]).trial(job["place"], Rig(**job["rig"]))
    return measure(trial, contenders_of(job), **job["settings"])


def contenders_of(job: Job) -> tuple[Contender, ...]:
    """Return the contenders of a job."""
    return tuple(
        Contender(method=one["method"], options=one["options"], label=one["name"])
        for one in job["methods"]
    )


def join_rows(answers: Sequence[Rows], table: str) -> SweepTable:
    """Join one table of all pairs."""
    return SweepTable(row for answer in answers for row in answer.get(table, ()))


def result_files(evaluation: Evaluation, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Paths of the results: "rows", "duels" where there are any, and "summary"."""
    endings = {"rows": ".csv", "duels": "_duels.csv", "summary": ".json"}
    if not evaluation.has_duels:
        del endings["duels"]
    return {what: Path(folder, evaluation.name + ending) for what, ending in endings.items()}


def write_results(
    results: SweepResults, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> dict[str, Path]:
    """Write all rows as CSV, and the parameters and the summary as JSON."""
    parameters = sweep_parameters(results.sweep, results.rig, results.contenders)
    document = {
        "parameters": {**parameters, **results.settings},
        "summary": for_json(results.summary()),
    }
    texts = {
        "rows": csv_text(results.rows),
        "duels": csv_text(results.duels),
        "summary": json.dumps(document, indent=1) + "\n",
    }
    return write_texts(result_files(results.evaluation, folder), texts, overwrite=overwrite)


def sweep_parameters(sweep: Sweep, rig: Rig, contenders: Sequence[Contender]) -> dict[str, Any]:
    """Return everything that decides the figures of a sweep, as JSON can hold it."""
    return {
        **common_parameters(rig),
        "sweep": sweep.model_dump(mode="json"),
        "methods": [one.as_table() for one in contenders],
    }


def common_parameters(rig: Rig) -> dict[str, Any]:
    """Return what decides the figures of every sweep: versions, camera, and which pixels count."""
    return {
        "versions": versions(),
        "window_px": WINDOW_PX,
        "textured_below_m": TEXTURED_BELOW_M,
        "edge_reach_px": EDGE_REACH_PX,
        "rig": rig.model_dump(mode="json", exclude_none=True),
    }


def write_texts(
    files: Mapping[str, Path], texts: Mapping[str, str], *, overwrite: bool
) -> dict[str, Path]:
    """Write those of the files that have a text, or none if one exists and may not be replaced."""
    written = {what: path for what, path in files.items() if what in texts}
    if not overwrite:
        check_absent(*written.values())
    for what, path in written.items():
        make_folder(path.parent)
        write_text(path, texts[what], overwrite=overwrite)
    return written


def consecutive(progress: Progress | None, sizes: Sequence[int]) -> list[Progress | None]:
    """Progress callbacks of consecutive works, with their sizes, that report to one callback."""
    if progress is None:
        return [None] * len(sizes)

    def after(begun: int) -> Progress:
        return lambda done, _: progress(begun + done, sum(sizes))

    return [after(sum(sizes[:number])) for number in range(len(sizes))]


def check_absent(*paths: Path) -> None:
    """Refuse to go on if one of these files exists."""
    for path in paths:
        if os.path.lexists(path):
            raise OutputError(
                f"{path} exists. Choose another folder, or allow it to be replaced: --force on the "
                "command line, overwrite=True in Python."
            )
