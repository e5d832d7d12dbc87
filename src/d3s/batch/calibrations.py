"""Calibrations of many cameras: a folder of captures each, a rig file and a report of each out."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
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
    named = _by_name(folders)
    make_folder(target)
    there = [name for name in named if target.joinpath(f"{name}.html").exists()]
    if there and not (overwrite or skip_done):
        raise OutputError(
            f"{target / there[0]}.html exists. Choose another folder, or replace with --force."
        )
    skipped = there if skip_done else []
    names = [name for name in named if name not in skipped]
    work = partial(calibrate_folder, target, settings or {}, overwrite or skip_done)
    where = checked_workers(workers, len(names))
    done: dict[str, Calibrated] = {}
    refused: dict[str, Refused] = {}
    read = [os.fspath(named[one] / "distances.csv") for one in names]
    jobs = (named[one] for one in names)
    with closing(run(work, jobs, where, read=read, written=[os.fspath(target)])) as outcomes:
        for count, (number, result, error) in enumerate(outcomes if names else (), 1):
            if isinstance(error, OutputError):
                raise error
            if error is None:
                done[names[number]] = result
            else:
                one = Refused(path_text(named[names[number]]), str(error))
                refused[names[number]] = one
                if on_refused is not None:
                    on_refused(one)
            if progress is not None:
                progress(len(skipped) + count, len(named))
    return Calibrations(
        done=tuple(done[name] for name in names if name in done),
        refused=tuple(refused[name] for name in names if name in refused),
        skipped=tuple(skipped),
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


def calibrate_folder(
    target: Path, settings: Mapping[str, Any], overwrite: bool, folder: Path
) -> Calibrated:
    """Calibrate one camera, and write its rig file and its report; returns what was written."""
    design = settings.get("design")
    given = {**settings, "design": None if design is None else Rig.load(design)}
    rig, report, problem = attempt(folder, name=folder.name, **given)
    rig_file, page = target / f"{folder.name}.toml", target / f"{folder.name}.html"
    if rig is not None:
        rig.save(rig_file, overwrite=overwrite)
    registered("reports", "calibration")(report, page, overwrite=overwrite)
    return Calibrated(
        name=folder.name,
        grade=report.verdict.grade,
        summary=report.verdict.summary,
        rig=None if rig is None else rig_file,
        report=page,
        problem=problem,
    )


def _by_name(folders: Sequence[str | os.PathLike[str]]) -> dict[str, Path]:
    named: dict[str, Path] = {}
    for folder in folders:
        path = Path(os.path.abspath(os.fsdecode(folder)))  # noqa: PTH100
        if path.name in named:
            raise InputError(
                f"{path_text(folder)} and {named[path.name]} have one name, which names "
                "the rig. Rename one, or calibrate them apart."
            )
        named[path.name] = path
    return named
