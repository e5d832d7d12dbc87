"""Calibrations of many cameras: a folder of captures each, a rig file and a report of each out."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from d3s.atomic import make_folder
from d3s.batch.running import Workers, checked_workers, run
from d3s.calibrate import calibrate
from d3s.calibrate.calibration_report import Report
from d3s.errors import CalibrationError, InputError, OutputError
from d3s.files.raw import path_text
from d3s.frames import Refused
from d3s.registry import registered
from d3s.rig import Rig
from d3s.types import Progress

_TABLE = "distances.csv"


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Calibration of one camera."""

    name: str
    grade: str  # good, provisional or none
    summary: str
    rig: Path | None  # None: nothing could be fitted
    report: Path
    problem: str = ""  # why there is no rig


@dataclass(frozen=True, kw_only=True)
class Calibrations:
    """Outcomes of all folders: calibrations, and folders that could not be used at all."""

    done: tuple[Calibrated, ...]
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...] = ()


def calibrate_folders(
    folders: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    settings: Mapping[str, Any] | None = None,
    workers: Workers = None,
    overwrite: bool = False,
    skip_done: bool = False,
    progress: Progress | None = None,
    on_refused: Callable[[Refused], None] | None = None,
) -> Calibrations:
    """Calibrate many cameras; each rig file and report is written as soon as it is made.

    Folders of captures, one for each camera, name the rigs: two of one name are an `InputError`.
    `settings` are arguments of `d3s.calibrate` for all, as JSON holds them; `design` is the path of
    a rig file. With `skip_done`, folders whose report is there are left alone; otherwise results
    that are there are an `OutputError`, unless `overwrite`. `workers` and the others are those of
    `estimate_files`.
    """
    target = Path(os.path.abspath(os.fsdecode(output)))  # noqa: PTH100 - workers may be elsewhere
    jobs = _jobs(folders, target, settings or {}, overwrite or skip_done)
    make_folder(target)
    there = [name for name, job in jobs.items() if Path(job["report"]).exists()]
    if there and not (overwrite or skip_done):
        raise OutputError(
            f"{target / there[0]}.html exists. Choose another folder, or replace with --force."
        )
    to_do = {name: job for name, job in jobs.items() if not (skip_done and name in there)}
    names, done, refused = list(to_do), {}, {}
    tables = [f"{job['folder']}/{_TABLE}" for job in to_do.values()]
    where = checked_workers(workers, len(to_do))
    work = run(calibrate_folder, to_do.values(), where, read=tables, written=[os.fspath(target)])
    with closing(work) as outcomes:
        for count, outcome in enumerate(outcomes if to_do else (), 1):
            name = names[outcome.number]
            if outcome.error is None:
                done[name] = outcome.result
            elif isinstance(outcome.error, OutputError):
                raise outcome.error
            else:
                refused[name] = Refused(path_text(to_do[name]["folder"]), str(outcome.error))
                if on_refused is not None:
                    on_refused(refused[name])
            if progress is not None:
                progress(len(jobs) - len(to_do) + count, len(jobs))
    return Calibrations(
        done=tuple(done[name] for name in jobs if name in done),
        refused=tuple(refused[name] for name in jobs if name in refused),
        skipped=tuple(name for name in jobs if name not in to_do),
    )


def attempt(folder: str | os.PathLike[str], **settings: Any) -> tuple[Rig | None, Report, str]:
    """Rig, report, and why there is no rig; `settings` are arguments of `d3s.calibrate`.

    An error without a report, of captures that cannot be read, is raised.
    """
    try:
        return *calibrate(folder, **settings), ""
    except CalibrationError as error:
        if not isinstance(error.report, Report):
            raise
        return None, error.report, str(error)


def calibrate_folder(job: Mapping[str, Any]) -> Calibrated:
    """Calibrate one camera, and write its rig file and its report; returns what was written."""
    settings = dict(job["settings"])
    design = settings.pop("design", None)
    rig_file, page = Path(job["rig"]), Path(job["report"])
    built = None if design is None else Rig.load(design)
    rig, report, problem = attempt(job["folder"], design=built, name=job["name"], **settings)
    if rig is not None:
        rig.save(rig_file, overwrite=job["overwrite"])
    registered("reports", "calibration")(report, page, overwrite=job["overwrite"])
    return Calibrated(
        name=job["name"],
        grade=report.verdict.grade,
        summary=report.verdict.summary,
        rig=None if rig is None else rig_file,
        report=page,
        problem=problem,
    )


def _jobs(
    folders: Sequence[str | os.PathLike[str]],
    target: Path,
    settings: Mapping[str, Any],
    overwrite: bool,
) -> dict[str, dict[str, Any]]:
    """Job of each folder, by the name of its rig."""
    jobs: dict[str, dict[str, Any]] = {}
    for folder in folders:
        path = Path(os.path.abspath(os.fsdecode(folder)))  # noqa: PTH100
        if path.name in jobs:
            raise InputError(
                f"{path_text(folder)} and {jobs[path.name]['folder']} have one name, which names "
                "the rig. Rename one, or calibrate them apart."
            )
        jobs[path.name] = {
            "name": path.name,
            "folder": os.fspath(path),
            "rig": os.fspath(target / f"{path.name}.toml"),
            "report": os.fspath(target / f"{path.name}.html"),
            "settings": dict(settings),
            "overwrite": overwrite,
        }
    return jobs
